"""What the mirror holds, and where it differs, over HTTP."""

import asyncio
import json
from collections.abc import Sequence
from urllib.parse import quote

import httpx
import msgspec
import pytest
from fastapi import FastAPI
from starlette.types import Message

from app.admin.debug_routes import debug_router
from app.admin.partition import NodePartition
from app.api_server.client import ApiClient
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.objects.resources import RESOURCES
from app.process.long_work import LongWork
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.asgi import ASGI_REQUEST, ask
from tests.builders import Object, make_pod
from tests.fake_apiserver.faults import Action, Answer, Close, Stall, refuse
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.statuses import too_many_requests

PODS, NODES = RESOURCES[Pod], RESOURCES[Node]


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


def served(mirror: ClusterMirror) -> FastAPI:
    app = FastAPI()
    app.include_router(debug_router(mirror, NodePartition(mirror), None, tuple, LongWork()))
    return app


def dump(mirror: ClusterMirror, query: str = "") -> Object:
    response = ask(served(mirror), "GET", f"/debug/mirror{query}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer: Object = response.json()
    return answer


def error(mirror: ClusterMirror, query: str, status: int) -> Object:
    response = ask(served(mirror), "GET", f"/debug/mirror{query}")
    assert response.status_code == status
    answer: Object = response.json()
    return answer


def pods_in(answer: Object) -> list[str]:
    on_nodes = [pod["uid"] for node in answer["nodes"] for pod in node["pods"]]
    return on_nodes + [pod["uid"] for pod in answer["pods_of_unknown_nodes"]]


# The dump.


@pytest.mark.parametrize(
    "mirror", [pytest.param(ClusterMirror(), id="empty"), pytest.param(small_cluster(), id="small")]
)
def test_the_whole_dump_is_the_mirrors_own_though_it_is_written_node_by_node(mirror: ClusterMirror) -> None:
    answer = dump(mirror)
    assert answer == json.loads(msgspec.json.encode(mirror.dump()))
    assert len(pods_in(answer)) == mirror.pod_count()


def test_a_large_dump_is_sent_in_chunks() -> None:
    mirror = small_cluster()
    for number in range(2000):
        mirror.apply(ClusterEvent("Add", Node(f"node-{number:04}", {"zone": "a"}, {"cpu": 4000})))

    bodies: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    scope = {**ASGI_REQUEST, "method": "GET", "path": "/debug/mirror", "asgi": {"spec_version": "2.4"}}
    asyncio.run(served(mirror)(scope, receive, send))
    assert len(bodies) > 5
    assert max(map(len, bodies)) < 80_000
    assert len(json.loads(b"".join(bodies))["nodes"]) == 2002


def test_one_node_is_dumped_by_its_name() -> None:
    answer = dump(small_cluster(), "?node=n1")
    assert [node["name"] for node in answer["nodes"]] == ["n1"]
    assert pods_in(answer) == ["u2", "u7", "u3", "u1"]
    assert answer["nodes"][0]["pods"][1]["state"] == "Assumed"


def test_a_node_that_only_pods_name_is_dumped_as_its_pods() -> None:
    answer = dump(small_cluster(), "?node=n8")
    assert answer["nodes"] == []
    assert pods_in(answer) == ["u5"]


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
    answer = dump(mirror, f"?pod={query}")
    assert pods_in(answer) == pods
    assert answer["generation"] == mirror.generation
    assert answer["figures"] == json.loads(msgspec.json.encode(mirror.figures))


@pytest.mark.parametrize("query", ["u8", "shop/next"])
def test_a_pending_pod_is_dumped_with_its_nomination(query: str) -> None:
    mirror = small_cluster()
    mirror.apply(ClusterEvent("Add", Pod("u8", "shop", "next", nominated_node_name="n1", priority=3)))
    answer = dump(mirror, f"?pod={query}")
    assert (answer["nodes"], answer["pods_of_unknown_nodes"]) == ([], [])
    assert answer["pending_pods"] == [{"uid": "u8", "name": "shop/next", "nominated_node": "n1", "priority": 3}]
    assert dump(mirror)["pending_pods"] == dump(mirror, "?node=n1")["pending_pods"] == answer["pending_pods"]
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
    mirror = ClusterMirror()
    for number in range(50_000):
        mirror.apply(ClusterEvent("Add", Pod(f"u{number}", "shop", f"p{number}", {}, "n1")))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def look() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(served(mirror)), base_url="http://kindred"
        ) as client:
            await client.get("/debug/mirror?pod=u1")  # what a request takes anyway, on a path without the search
            task = asyncio.create_task(others())
            await client.get("/debug/mirror?pod=u1")
            nonlocal turns
            turns_of_a_request, turns = turns, 0
            response = await client.get("/debug/mirror?pod=shop/none")
            task.cancel()
            turns -= turns_of_a_request
            return response

    assert asyncio.run(look()).status_code == 404
    assert turns >= 2


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        pytest.param("?node=n7", "node n7: not in the mirror", id="node"),
        pytest.param("?pod=u9", "pod u9: not in the mirror", id="uid"),
        pytest.param("?pod=shop/none", "pod shop/none: not in the mirror", id="name"),
        pytest.param("?pod=web", "pod web: not in the mirror", id="name-without-namespace"),
        pytest.param("?pod=u1&node=n7", "node n7: not in the mirror", id="node-of-a-pod"),
        pytest.param("?pod=u1&node=n2", "pod u1: not on node n2, but on n1", id="pod-of-another-node"),
        pytest.param(
            "?pod=shop/twin&node=n8", "pod shop/twin: not on node n8, but on n1, n2", id="pods-of-other-nodes"
        ),
        pytest.param("?node=" + quote("a b&c"), "node a b&c: not in the mirror", id="odd-name"),
    ],
)
def test_what_is_not_there_is_named(query: str, detail: str) -> None:
    assert error(small_cluster(), query, 404) == {"detail": detail}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("?nodes=n1", "nodes", id="unknown-parameter"),
        pytest.param("?node=n1&node=n2", "node", id="node-twice"),
        pytest.param("?pod=u1&pod=u2", "pod", id="pod-twice"),
        pytest.param("?node=", "node", id="empty-node"),
        pytest.param("?pod=", "pod", id="empty-pod"),
        pytest.param("/diff?settle=x", "settle", id="settle-no-number"),
        pytest.param("/diff?settle=-1", "settle", id="settle-negative"),
        pytest.param("/diff?settle=61", "settle", id="settle-too-long"),
        pytest.param("/diff?settle=nan", "settle", id="settle-nan"),
        pytest.param("/diff?wait=1", "wait", id="unknown-parameter-of-diff"),
    ],
)
def test_a_query_that_is_not_clear_is_refused_by_its_field(query: str, field: str) -> None:
    (problem, *_) = error(small_cluster(), query, 422)["detail"]
    assert problem["loc"][:2] == ["query", field]


def test_the_partition_is_there_too() -> None:
    assert ask(served(small_cluster()), "GET", "/debug/partition").json()["nodes"] == {"in": 2, "out": 0}


# The comparison with the API server.


def test_a_mirror_from_a_dump_has_nothing_to_be_compared_with() -> None:
    detail = "the mirror comes from a dump, so there is nothing to compare it with"
    assert error(small_cluster(), "/diff", 409) == {"detail": detail}


async def ask_following(server: FakeApiServer, mirror: ClusterMirror, *paths: str) -> Sequence[httpx.Response]:
    """Send requests at the same time to an app whose mirror follows a server."""
    async with server:
        api = ApiClient(Credentials(ClusterAccess("test", server.url, None), None))
        app = FastAPI()
        app.include_router(debug_router(mirror, NodePartition(mirror), api, lambda: [NODES, PODS], LongWork()))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
            async with asyncio.timeout(3):
                responses = await asyncio.gather(*(client.get(path) for path in paths))
        await api.close()
        return responses


def one_node_server() -> FakeApiServer:
    server = FakeApiServer()
    server.create(NODES.path, {"metadata": {"name": "n1", "uid": "u-n1"}})
    server.create(PODS.path, make_pod("web").uid("u1").on("n1").obj())
    return server


def test_differences_are_told_by_resource() -> None:
    mirror = ClusterMirror()
    mirror.apply(ClusterEvent("Add", Node("n1", {"zone": "a"}, uid="u-n1")))
    mirror.apply(ClusterEvent("Add", Pod("u2", "default", "gone", {}, "n1")))
    (response,) = asyncio.run(ask_following(one_node_server(), mirror, "/debug/mirror/diff?settle=0"))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    nothing: Object = {
        "listed": 1,
        "missed": [],
        "redundant": [],
        "differing": [],
        "assumed": [],
        "unreadable": 0,
        "other_versions": 0,
    }
    assert response.json() == {
        "nodes": nothing | {"differing": [{"name": "n1", "uid": "u-n1", "fields": ["labels", "resource_version"]}]},
        "pods": nothing
        | {
            "missed": [{"name": "default/web", "uid": "u1", "fields": []}],
            "redundant": [{"name": "default/gone", "uid": "u2", "fields": []}],
        },
    }


def test_the_second_list_comes_after_the_settle_time_that_is_asked_for() -> None:
    server = one_node_server()
    asyncio.run(ask_following(server, ClusterMirror(), "/debug/mirror/diff?settle=0.2"))
    first, second = server.requests.of(NODES.path)
    assert 0.2 <= second.time - first.time < 1.0


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(refuse(too_many_requests()), "429 TooManyRequests", id="refused"),
        pytest.param(Close(), f"GET {PODS.path}", id="connection-lost"),
        pytest.param(
            Answer(200, b'{"items": []}', {"Content-Type": "application/json"}), f"GET {PODS.path}", id="not-a-list"
        ),
    ],
)
def test_a_list_that_fails_is_503_and_says_why(fault: Action, why: str) -> None:
    server = one_node_server()
    server.faults.add(fault, PODS.path)
    (response,) = asyncio.run(ask_following(server, ClusterMirror(), "/debug/mirror/diff?settle=0"))
    assert response.status_code == 503
    assert response.json()["detail"].startswith("no fresh list: ")
    assert why in response.json()["detail"]


def test_one_comparison_at_a_time() -> None:
    server = one_node_server()
    server.faults.add(Stall(seconds=0.2), NODES.path)
    path = "/debug/mirror/diff?settle=0"
    responses = asyncio.run(ask_following(server, ClusterMirror(), path, path))
    assert sorted(response.status_code for response in responses) == [200, 409]
    assert {"detail": "another comparison is under way"} in [response.json() for response in responses]


def test_after_a_comparison_that_failed_another_can_begin() -> None:
    async def twice() -> list[int]:
        server = one_node_server()
        async with server:
            api = ApiClient(Credentials(ClusterAccess("test", server.url, None), None))
            app = FastAPI()
            mirror = ClusterMirror()
            app.include_router(debug_router(mirror, NodePartition(mirror), api, lambda: [NODES], LongWork()))
            server.faults.add(refuse(too_many_requests()), NODES.path)
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://kindred") as client:
                codes = [(await client.get("/debug/mirror/diff?settle=0")).status_code for _ in range(2)]
            await api.close()
            return codes

    assert asyncio.run(twice()) == [503, 200]
