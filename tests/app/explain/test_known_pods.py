"""Pods by what people call them, and names by a part of them: which are found, in which order."""

import asyncio

import pytest

from app.explain.explain_request import UnknownError
from app.explain.known_pods import FoundNames, FoundPod, NameSearch, the_one
from app.process.long_work import LongWork
from app.verbs.request import RecentPods
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
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


def cluster() -> ClusterMirror:
    mirror = ClusterMirror()
    for thing in (
        Node("web-node"),
        Node("node-1"),
        Pod("u1", "shop", "web-0", {}, "node-1"),
        Pod("u2", "shop", "old-web", {}, "node-1"),
        Pod("u3", "web", "db", {}, "node-1"),
        Pod("u4", "shop", "web-9"),
    ):
        mirror.apply(ClusterEvent("Add", thing))
    return mirror


def find(text: str, limit: int = 10, mirror: ClusterMirror | None = None) -> FoundNames:
    recent = RecentPods()
    recent.add(Pod("u7", "shop", "asked-web"), b"{}")
    return asyncio.run(NameSearch(mirror or cluster(), recent, LongWork()).find(text, limit))


def test_names_that_begin_with_the_text_come_before_those_that_have_it_in_them() -> None:
    found = find("web")
    assert found.nodes == ["web-node"]
    assert [each.pod for each in found.pods] == ["shop/web-0", "shop/web-9", "web/db", "shop/asked-web", "shop/old-web"]
    assert not found.more


def test_a_pod_is_found_by_its_namespace_too() -> None:
    assert [FoundPod("shop/web-0", "node-1"), FoundPod("shop/web-9", "")] == find("shop/web").pods


def test_capitals_and_blanks_around_the_text_do_not_matter() -> None:
    assert find("web") == find("  WEB ")


def test_what_is_left_out_is_said() -> None:
    found = find("web", 2)
    assert [each.pod for each in found.pods] == ["shop/web-0", "shop/web-9"]
    assert found.more


def test_nothing_is_found_of_a_name_that_there_is_not() -> None:
    assert FoundNames([], [], more=False) == find("nobody")


@pytest.mark.parametrize(("limit", "pods"), [(1, 2), (100, 7)], ids=["full", "all"])
def test_a_search_gives_way_at_each_name_and_ends_when_it_has_enough(limit: int, pods: int) -> None:
    work, mirror = ShortPieces(), ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1")))
    for number in range(7):
        mirror.apply(ClusterEvent("Add", Pod(f"u{number}", "shop", f"web-{number}", {}, "n1")))
    asyncio.run(NameSearch(mirror, RecentPods(), work).find("web", limit))
    turn, nodes, last = 1, 1, int(limit == 1)  # after the last pod it has enough
    assert turn + nodes + pods - last == work.gave_way
