"""Pods by what people call them, and names by a part of them: which are found, in which order."""

import asyncio

import pytest
from msgspec.structs import replace

from app.explain.explain_request import UnknownError, decode_explain_request
from app.explain.known_pods import KnownPods, NameSearch, the_one
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import ControllerRef
from core.objects.node import Node
from core.objects.pod import Pod, Waiting
from tests.app.short_pieces import ShortPieces

WEB, AGAIN = (Pod(uid, "default", "web") for uid in ("u1", "u2"))


def test_a_pod_that_alone_has_the_name_is_the_one() -> None:
    assert the_one({"default/web": [WEB]}, "default/web", "pod") is WEB


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ([], "pod default/web: neither in the mirror nor in a recent request"),
        ([WEB, AGAIN], "pod default/web: there are several of that name: u1, u2"),
    ],
    ids=["none", "two"],
)
def test_none_and_several_are_told(pods: list[Pod], problem: str) -> None:
    with pytest.raises(UnknownError, match=problem):
        the_one({"default/web": pods}, "default/web", "pod")


def owned(name: str, namespace: str, kind: str, owner: str, created: str) -> Pod:
    labels = {"pod-template-hash": "5c"} if kind == "ReplicaSet" else {}
    controller, waiting = ControllerRef(kind, owner, owner), Waiting(created=created)
    return Pod(f"u-{namespace}-{name}", namespace, name, labels, controller=controller, waiting=waiting)


OWNED = (
    owned("web-5c-new", "shop", "ReplicaSet", "web-5c", "2026-01-02T00:00:00Z"),
    owned("web-5c-old", "shop", "ReplicaSet", "web-5c", "2026-01-01T00:00:00Z"),
    replace(owned("web-5c-gone", "shop", "ReplicaSet", "web-5c", "2025-01-01T00:00:00Z"), terminating=True),
    owned("db-0", "shop", "StatefulSet", "db", ""),
    owned("db-0", "test", "StatefulSet", "db", ""),
    owned("report-29-x", "shop", "Job", "report-29", ""),
    Pod("u1", "shop", "bound", {}, "node-1"),
    Pod("u2", "test", "bound", {}, "node-1"),
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("report-29-x", ["shop/report-29-x"]),
        ("bound", ["shop/bound", "test/bound"]),
        ("test/bound", ["test/bound"]),
        ("test/po/bound", ["test/bound"]),
        ("u2", ["test/bound"]),
        ("elsewhere/u2", ["test/bound"]),
        ("deploy/web", ["shop/web-5c-old"]),
        ("Deployments.apps/web", ["shop/web-5c-old"]),
        ("rs/web-5c", ["shop/web-5c-old"]),
        ("shop/deploy/web", ["shop/web-5c-old"]),
        ("test/deploy/web", []),
        ("sts/db", ["shop/db-0", "test/db-0"]),
        ("job/report-29", ["shop/report-29-x"]),
        ("cronjob/report", ["shop/report-29-x"]),
        ("rc/db", []),
        ("nobody", []),
    ],
)
def test_a_text_means_these_pods(text: str, names: list[str]) -> None:
    mirror = ClusterMirror()
    for thing in (Node("node-1"), *OWNED):
        mirror.apply(ClusterEvent("Add", thing))
    recent = RecentPods()
    recent.add(OWNED[-1], b"{}")
    known = KnownPods(mirror, recent)
    (found,) = asyncio.run(known.find([text])).values()
    assert sorted(pod.full_name for pod in found) == names
    (seen,) = asyncio.run(known.find([text], lambda namespace: namespace == "test")).values()
    assert [pod.full_name for pod in seen] == [name for name in names if name.startswith("test/")]


def test_a_workload_without_a_pending_pod_and_several_namespaces_are_told() -> None:
    with pytest.raises(UnknownError, match="pod: Deployment shop/web: no pending pod is of it; its "):
        the_one({"shop/deploy/web": []}, "shop/deploy/web", "pod")
    many = [Pod(f"u{number}", f"ns-{number:02}", "db-0") for number in range(12)]
    with pytest.raises(UnknownError, match="ns-09/db-0 and 2 more"):
        the_one({"db-0": many}, "db-0", "pod")
    with pytest.raises(UnknownError, match="pod db-0: there are several of that name: shop/db-0, test/db-0"):
        the_one({"db-0": [*OWNED[3:5]]}, "db-0", "pod")


@pytest.mark.parametrize("text", ["deploy/web", "nobody"])
def test_a_search_among_waiting_pods_gives_way_at_each(text: str) -> None:
    work, mirror = ShortPieces(), ClusterMirror()
    for thing in OWNED[:6]:
        mirror.apply(ClusterEvent("Add", thing))
    asyncio.run(KnownPods(mirror, RecentPods(), work).find([text]))
    assert work.gave_way == 6


def test_a_request_by_the_name_of_a_workload_is_read_without_a_look_at_every_waiting_pod() -> None:
    mirror = ClusterMirror()
    del mirror.pending
    assert decode_explain_request(b'{"pod": "deploy/web"}', mirror).pod == "deploy/web"


NAMED = ["shop/web-0", "shop/web-9", "web/db", "shop/asked-web", "shop/old-web"]


@pytest.mark.parametrize(
    ("text", "limit", "found"),
    [
        ("  WEB ", 5, (["web-node"], NAMED, False)),
        ("web", 2, (["web-node"], NAMED[:2], True)),
        ("shop/web", 5, ([], NAMED[:2], False)),
        ("nobody", 5, ([], [], False)),
    ],
)
def test_names_that_begin_with_the_text_come_before_those_that_have_it_in_them(
    text: str, limit: int, found: tuple[list[str], list[str], bool]
) -> None:
    mirror, recent = ClusterMirror(), RecentPods()
    recent.add(Pod("u7", "shop", "asked-web"), b"{}")
    pods = (("shop", "web-0", "node-1"), ("shop", "old-web", "node-1"), ("web", "db", "node-1"), ("shop", "web-9", ""))
    for node in ("web-node", "node-1"):
        mirror.apply(ClusterEvent("Add", Node(node)))
    for there, name, node in pods:
        mirror.apply(ClusterEvent("Add", Pod(name, there, name, {}, node)))
    reported = asyncio.run(NameSearch(mirror, recent, LongWork()).find(text, limit))
    assert (reported.nodes, [each.pod for each in reported.pods], reported.more) == found
    assert all(bool(each.node) == (each.pod in {"shop/web-0", "web/db", "shop/old-web"}) for each in reported.pods)


@pytest.mark.parametrize(("limit", "pods"), [(1, 2), (100, 7)], ids=["full", "all"])
def test_a_search_gives_way_at_each_name_and_ends_when_it_has_enough(limit: int, pods: int) -> None:
    work, mirror = ShortPieces(), ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1")))
    for number in range(7):
        mirror.apply(ClusterEvent("Add", Pod(f"u{number}", "shop", f"web-{number}", {}, "n1")))
    asyncio.run(NameSearch(mirror, RecentPods(), work).find("web", limit))
    turn, nodes, last = 1, 1, int(limit == 1)  # after the last pod it has enough
    assert turn + nodes + pods - last == work.gave_way
