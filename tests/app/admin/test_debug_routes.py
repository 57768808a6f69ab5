"""The settings, and what the mirror holds, over HTTP."""

import json

import msgspec
import pytest
from fastapi import FastAPI

from app.admin.debug_routes import debug_router
from app.process.long_work import LongWork
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.asgi import ask, bodies_of
from tests.app.short_pieces import ShortPieces
from tests.builders import Object


def small_cluster() -> ClusterMirror:
    """Two nodes, of which one is empty, two pods of one name, and pods on nodes that are not known."""
    mirror = ClusterMirror()
    for thing in (
        Node("n1", {"zone": "a"}, {"cpu": 4000}),
        Node("n2"),
        Pod("u1", "shop", "web", {}, "n1", requests={"cpu": 250}, best_effort=False),
        Pod("u2", "shop", "batch", {}, "n1"),
        Pod("u3", "shop", "twin", {}, "n1"),
        Pod("u4", "shop", "twin", {}, "n2"),
        Pod("u5", "shop", "early", {}, "n8"),
        Pod("u6", "shop", "early-too", {}, "n9"),
    ):
        mirror.apply(ClusterEvent("Add", thing))
    mirror.assume(Pod("u7", "shop", "new"), "n1", 12.5)
    return mirror


def served(mirror: ClusterMirror, work: LongWork | None = None) -> FastAPI:
    app = FastAPI()
    app.include_router(debug_router(mirror, None, tuple, work or LongWork()))
    return app


def dump(mirror: ClusterMirror, query: str = "") -> Object:
    response = ask(served(mirror), "GET", f"/debug/mirror{query}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    content: Object = response.json()
    return content


def error(mirror: ClusterMirror, query: str, status: int) -> Object:
    response = ask(served(mirror), "GET", f"/debug/mirror{query}")
    assert response.status_code == status
    content: Object = response.json()
    return content


def pods_in(response: Object) -> list[str]:
    on_nodes = [pod["uid"] for node in response["nodes"] for pod in node["pods"]]
    return on_nodes + [pod["uid"] for pod in response["pods_of_unknown_nodes"]]


# The dump.


@pytest.mark.parametrize(
    "mirror", [pytest.param(ClusterMirror(), id="empty"), pytest.param(small_cluster(), id="small")]
)
def test_the_whole_dump_is_the_mirrors_own_though_it_is_written_node_by_node(mirror: ClusterMirror) -> None:
    response = dump(mirror)
    assert response == json.loads(msgspec.json.encode(mirror.dump()))
    assert len(pods_in(response)) == mirror.pod_count()


def test_a_large_dump_is_sent_in_chunks() -> None:
    mirror = small_cluster()
    for number in range(2000):
        mirror.apply(ClusterEvent("Add", Node(f"node-{number:04}", {"zone": "a"}, {"cpu": 4000})))

    bodies = bodies_of(served(mirror), "/debug/mirror")
    assert len(bodies) > 5
    assert max(map(len, bodies)) < 80_000
    assert len(json.loads(b"".join(bodies))["nodes"]) == 2002


def test_one_node_is_dumped_by_its_name() -> None:
    response = dump(small_cluster(), "?node=n1")
    assert [node["name"] for node in response["nodes"]] == ["n1"]
    assert pods_in(response) == ["u2", "u7", "u3", "u1"]
    assert response["nodes"][0]["pods"][1]["state"] == "Assumed"


def test_a_node_that_only_pods_name_is_dumped_as_its_pods() -> None:
    response = dump(small_cluster(), "?node=n8")
    assert response["nodes"] == []
    assert pods_in(response) == ["u5"]


@pytest.mark.parametrize(
    ("query", "pods"),
    [
        pytest.param("u1", ["u1"], id="by-uid"),
        pytest.param("shop/web", ["u1"], id="by-name"),
        pytest.param("shop/twin", ["u3", "u4"], id="two-pods-of-one-name"),
        pytest.param("shop/early", ["u5"], id="on-an-unknown-node"),
        pytest.param("u6", ["u6"], id="on-an-unknown-node-by-uid"),
        pytest.param("shop/new", ["u7"], id="assumed"),
        pytest.param("shop/twin&node=n2", ["u4"], id="with-its-node"),
        pytest.param("u5&node=n8", ["u5"], id="with-its-unknown-node"),
    ],
)
def test_one_pod_is_dumped_with_its_node(query: str, pods: list[str]) -> None:
    mirror = small_cluster()
    response = dump(mirror, f"?pod={query}")
    assert pods_in(response) == pods
    assert response["generation"] == mirror.generation
    assert response["figures"] == json.loads(msgspec.json.encode(mirror.figures))


@pytest.mark.parametrize("query", ["u8", "shop/next"])
def test_a_pending_pod_is_dumped_with_its_nomination(query: str) -> None:
    mirror = small_cluster()
    mirror.apply(ClusterEvent("Add", Pod("u8", "shop", "next", nominated_node_name="n1", priority=3)))
    response = dump(mirror, f"?pod={query}")
    assert (response["nodes"], response["pods_of_unknown_nodes"]) == ([], [])
    assert response["pending_pods"] == [{"uid": "u8", "name": "shop/next", "nominated_node": "n1", "priority": 3}]
    assert dump(mirror)["pending_pods"] == dump(mirror, "?node=n1")["pending_pods"] == response["pending_pods"]
    assert error(mirror, f"?pod={query}&node=n1", 404) == {"detail": f"pod {query}: not in the mirror"}


def test_the_victims_that_a_pod_waits_for_are_dumped_with_either() -> None:
    mirror = small_cluster()
    mirror.apply(ClusterEvent("Add", Pod("u8", "shop", "next", nominated_node_name="n1", priority=3)))
    mirror.apply(ClusterEvent("Add", Pod("u9", "shop", "batch", node_name="n1", terminating=True)))
    mirror.preemptors.follow(40.0)
    waiting = [{"uid": "u8", "name": "shop/next", "since": 40.0}]
    victims = [{"uid": "u9", "name": "shop/batch", "node": "n1", "preemptors": waiting}]
    for query in ("", "?node=n1", "?pod=shop/batch", "?pod=u8", "?pod=shop/next"):
        assert dump(mirror, query)["victims"] == victims
    assert dump(mirror, "?node=n2")["victims"] == []


def test_others_have_their_turns_while_a_pod_is_looked_for_by_its_name() -> None:
    mirror, work = small_cluster(), ShortPieces()
    assert ask(served(mirror, work), "GET", "/debug/mirror?pod=shop/none").status_code == 404
    assert work.gave_way >= mirror.pod_count()


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        pytest.param("?node=n7", "node n7: not in the mirror", id="node"),
        pytest.param("?pod=shop/none", "pod shop/none: not in the mirror", id="name"),
        pytest.param("?pod=web", "pod web: not in the mirror", id="name-without-namespace"),
        pytest.param("?pod=u1&node=n7", "node n7: not in the mirror", id="node-of-a-pod"),
        pytest.param("?pod=u1&node=n2", "pod u1: not on node n2, but on n1", id="pod-of-another-node"),
        pytest.param(
            "?pod=shop/twin&node=n8", "pod shop/twin: not on node n8, but on n1, n2", id="pods-of-other-nodes"
        ),
    ],
)
def test_what_is_not_there_is_named(query: str, detail: str) -> None:
    assert error(small_cluster(), query, 404) == {"detail": detail}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("?nodes=n1", "nodes", id="unknown-parameter"),
        pytest.param("?node=n1&node=n2", "node", id="node-twice"),
        pytest.param("?node=", "node", id="empty-node"),
        pytest.param("/diff?settle=-1", "settle", id="settle-negative"),
        pytest.param("/diff?settle=61", "settle", id="settle-too-long"),
    ],
)
def test_a_query_that_is_not_clear_is_refused_by_its_field(query: str, field: str) -> None:
    (problem, *_) = error(small_cluster(), query, 422)["detail"]
    assert problem["loc"][:2] == ["query", field]


# The comparison with the API server.


def test_a_mirror_from_a_dump_has_nothing_to_be_compared_with() -> None:
    detail = "the mirror comes from a dump, so there is nothing to compare it with"
    assert error(small_cluster(), "/diff", 409) == {"detail": detail}


def test_every_setting_is_told_with_its_source() -> None:
    settings = Settings(admin="127.0.0.1:0", max_score=20, bypass_namespaces=("a", "b"))
    sources = {"max_score": "KINDRED_MAX_SCORE", "bypass_namespaces": "kindred.yaml: bypassNamespaces"}
    admin = create_service(settings, ClusterMirror(), None, sources).admin
    assert admin is not None
    reported = ask(admin, "GET", "/debug/config").json()
    assert len(Settings.model_fields) == len(reported)
    assert reported["maxScore"] == {"value": 20, "source": "KINDRED_MAX_SCORE"}
    assert reported["bypassNamespaces"] == {"value": ["a", "b"], "source": "kindred.yaml: bypassNamespaces"}
    assert reported["profile"] == {"value": "affinity", "source": "default"}


# Turns.
