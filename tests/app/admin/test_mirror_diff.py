"""The mirror held against fresh lists of an API server, also over HTTP."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from app.admin.debug_routes import debug_router, mirror_diff
from app.api_server.client import ApiClient
from app.api_server.credentials import Credentials
from app.api_server.tls import ClusterAccess
from app.objects.resources import RESOURCES, Resource
from app.process.long_work import LongWork
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Difference, Differences
from core.objects.kinds import DeviceClass, Namespace, ReplicaSet
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.short_pieces import ShortPieces
from tests.builders import Object, make_namespace, make_node, make_pod
from tests.fake_apiserver.faults import Action, Close, Response, Stall, Undecodable, refuse
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.statuses import too_many_requests

PODS, NODES = RESOURCES[Pod], RESOURCES[Node]


async def ask_following(server: FakeApiServer, mirror: ClusterMirror, *paths: str) -> Sequence[httpx.Response]:
    """Send requests at the same time to an app whose mirror follows a server."""
    async with server:
        api = ApiClient(Credentials(ClusterAccess("test", server.url, None), None))
        app = FastAPI()
        app.include_router(debug_router(mirror, api, lambda: [NODES, PODS], LongWork()))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://kindred") as client:
            async with asyncio.timeout(60):
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
    asyncio.run(ask_following(server, ClusterMirror(), "/debug/mirror/diff?settle=1.2"))
    first, second = server.requests.of(NODES.path)
    assert second.time - first.time >= 1.2, "1 s by default"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(refuse(too_many_requests()), "429 TooManyRequests", id="refused"),
        pytest.param(Close(), f"GET {PODS.path}", id="connection-lost"),
        pytest.param(
            Response(200, b'{"items": []}', {"Content-Type": "application/json"}), f"GET {PODS.path}", id="not-a-list"
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


NAMESPACES = RESOURCES[Namespace]
CLASSES = RESOURCES[DeviceClass]
Sleep = Callable[[float], Awaitable[None]]
SETTLE: Final = 1.5


async def no_sleep(_: float) -> None:
    """Settle in no time."""


def followed(server: FakeApiServer) -> ClusterMirror:
    """Return a mirror that was told everything that the server has."""
    mirror = ClusterMirror()
    for resource in RESOURCES.values():
        for stored in server.objects(resource.path):
            mirror.apply(ClusterEvent("Add", resource.decode(json.dumps(stored).encode())))
    return mirror


def small_server() -> FakeApiServer:
    server = FakeApiServer()
    server.create(NAMESPACES.path, make_namespace("shop").label("team", "a").obj())
    server.create(NODES.path, make_node("n1").label("zone", "a").obj())
    for name, node in (("web", "n1"), ("batch", "n1"), ("early", "n9"), ("pending", "")):
        server.create(PODS.path, make_pod(name).uid(f"u-{name}").in_namespace("shop").on(node).obj())
    return server


async def diff(
    server: FakeApiServer,
    mirror: ClusterMirror,
    resources: Sequence[Resource] = (NODES, PODS, NAMESPACES),
    sleep: Sleep = no_sleep,
) -> dict[str, Differences]:
    async with server:
        client = ApiClient(Credentials(ClusterAccess("test", server.url, None), None))
        try:
            return await mirror_diff(client, resources, mirror, SETTLE, sleep, LongWork())
        finally:
            await client.close()


def requests(server: FakeApiServer, resource: Resource) -> list[dict[str, str]]:
    return [dict(request.query) for request in server.requests.of(resource.path)]


def test_a_mirror_that_has_followed_differs_in_nothing_and_each_resource_is_listed_once() -> None:
    server = small_server()
    server.create(RESOURCES[ReplicaSet].path, {"metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}}})
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    found = asyncio.run(diff(server, followed(server), tuple(RESOURCES.values()), sleep))
    assert found.keys() == {resource.name for resource in RESOURCES.values()}
    assert not any(found.values())
    assert {plural: each.listed for plural, each in found.items() if each.listed} == {
        "nodes": 1,
        "pods": 4,
        "namespaces": 1,
        "replicasets": 1,
    }
    assert [request.path for request in server.requests] == [resource.path for resource in RESOURCES.values()]
    assert slept == []


def test_a_resource_that_the_server_does_not_have_is_compared_with_nothing() -> None:
    server = small_server()
    server.behaviour.absent = {CLASSES.path}
    gpu = CLASSES.decode(b'{"metadata":{"name":"gpu"},"spec":{"extendedResourceName":"example.com/gpu"}}')
    mirror = followed(server)
    assert not asyncio.run(diff(server, mirror, [NODES, CLASSES]))["deviceclasses"]
    mirror.apply(ClusterEvent("Add", gpu))
    found = asyncio.run(diff(small_server(), mirror, [CLASSES]))
    assert [each.name for each in found["deviceclasses"].redundant] == ["gpu"]


def test_only_resources_with_differences_are_listed_again() -> None:
    server = small_server()
    mirror = followed(server)
    server.delete(PODS.path, "web", "shop")
    asyncio.run(diff(server, mirror))
    assert [request.path for request in server.requests] == [NODES.path, PODS.path, NAMESPACES.path, PODS.path]


def test_what_settles_meanwhile_is_not_told() -> None:
    server = small_server()
    mirror = followed(server)
    created = server.create(PODS.path, make_pod("late").uid("u-late").in_namespace("shop").on("n1").obj())

    async def sleep(_: float) -> None:
        mirror.apply(ClusterEvent("Add", PODS.decode(json.dumps(created).encode())))

    found = asyncio.run(diff(server, mirror, sleep=sleep))
    assert found["pods"] == Differences(listed=5)


def test_what_only_the_second_list_shows_is_not_told() -> None:
    server = small_server()
    mirror = followed(server)
    server.delete(PODS.path, "web", "shop")

    async def sleep(_: float) -> None:
        server.delete(PODS.path, "batch", "shop")

    found = asyncio.run(diff(server, mirror, sleep=sleep))
    assert found["pods"].redundant == [Difference("shop/web", "u-web")]


def test_lists_come_in_pages_and_leave_out_what_has_ended() -> None:
    server = small_server()
    for number in range(1000):
        server.create(PODS.path, make_pod(f"p{number}").in_namespace("shop").on("n1").obj())
    mirror = followed(server)
    server.create(PODS.path, make_pod("done").in_namespace("shop").on("n1").phase("Succeeded").obj())
    found = asyncio.run(diff(server, mirror, [PODS, NODES]))
    assert not any(found.values())
    assert found["pods"].listed == 1004
    requested = requests(server, PODS)
    assert [request["limit"] for request in requested] == ["500", "500", "500"]
    assert {request["fieldSelector"] for request in requested} == {PODS.field_selector}
    assert ["continue" in request for request in requested] == [False, True, True]
    assert requests(server, NODES) == [{"limit": "500"}]


def test_an_object_that_cannot_be_read_is_counted_and_not_redundant() -> None:
    server = small_server()
    mirror = followed(server)
    server.faults.add(Undecodable(after=0), PODS.path)
    found = asyncio.run(diff(server, mirror, [PODS]))
    assert not found["pods"]
    assert found["pods"].unreadable == 1


# Turns.


class InstantClient:
    """Answers every list at once, so that no turn is given by waiting for an answer."""

    def __init__(self, *items: bytes) -> None:
        raws = [msgspec.Raw(item) for item in items]
        self._body = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": raws})

    async def get(self, *_: object, **__: object) -> bytes:
        return self._body


def gave_way(client: InstantClient, mirror: ClusterMirror) -> int:
    work = ShortPieces()
    asyncio.run(mirror_diff(cast("ApiClient", client), [PODS], mirror, SETTLE, no_sleep, work))
    return work.gave_way


def test_others_have_their_turns_after_each_object_that_is_read_or_looked_for() -> None:
    mirror = ClusterMirror()
    for number in range(20):
        mirror.apply(ClusterEvent("Add", Pod(f"u{number}", "shop", f"p{number}", {}, "n1")))
    assert gave_way(InstantClient(*[make_pod("web").on("n1").json()] * 20), ClusterMirror()) >= 20
    assert gave_way(InstantClient(), mirror) >= 20
