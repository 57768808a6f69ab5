"""The mirror held against fresh lists of an API server."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, cast

import msgspec

from app.admin.debug_routes import mirror_diff
from app.api_server.client import ApiClient
from app.api_server.cluster_access import ClusterAccess
from app.api_server.credentials import Credentials
from app.objects.resources import RESOURCES, Resource
from app.process.long_work import LongWork
from core.events import ClusterEvent
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Difference, Differences
from core.objects.kinds import DeviceClass, Namespace, ReplicaSet
from core.objects.node import Node
from core.objects.pod import Pod
from tests.builders import labelled, make_namespace, make_node, make_pod
from tests.fake_apiserver.faults import Undecodable
from tests.fake_apiserver.server import FakeApiServer

NODES, PODS, NAMESPACES = RESOURCES[Node], RESOURCES[Pod], RESOURCES[Namespace]
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


def small_cluster() -> FakeApiServer:
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
    server = small_cluster()
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
    server = small_cluster()
    server.behaviour.absent = {CLASSES.path}
    gpu = CLASSES.decode(b'{"metadata":{"name":"gpu"},"spec":{"extendedResourceName":"example.com/gpu"}}')
    mirror = followed(server)
    assert not asyncio.run(diff(server, mirror, [NODES, CLASSES]))["deviceclasses"]
    mirror.apply(ClusterEvent("Add", gpu))
    found = asyncio.run(diff(small_cluster(), mirror, [CLASSES]))
    assert [each.name for each in found["deviceclasses"].redundant] == ["gpu"]


def test_only_resources_with_differences_are_listed_again() -> None:
    server = small_cluster()
    mirror = followed(server)
    server.delete(PODS.path, "web", "shop")
    asyncio.run(diff(server, mirror))
    assert [request.path for request in server.requests] == [NODES.path, PODS.path, NAMESPACES.path, PODS.path]


def test_what_settles_meanwhile_is_not_told() -> None:
    server = small_cluster()
    mirror = followed(server)
    created = server.create(PODS.path, make_pod("late").uid("u-late").in_namespace("shop").on("n1").obj())

    async def sleep(_: float) -> None:
        mirror.apply(ClusterEvent("Add", PODS.decode(json.dumps(created).encode())))

    found = asyncio.run(diff(server, mirror, sleep=sleep))
    assert found["pods"] == Differences(listed=5)


def test_what_only_the_second_list_shows_is_not_told() -> None:
    server = small_cluster()
    mirror = followed(server)
    server.delete(PODS.path, "web", "shop")

    async def sleep(_: float) -> None:
        server.delete(PODS.path, "batch", "shop")

    found = asyncio.run(diff(server, mirror, sleep=sleep))
    assert found["pods"].redundant == (Difference("shop/web", "u-web"),)


def test_lists_come_in_pages_and_leave_out_what_has_ended() -> None:
    server = small_cluster()
    for number in range(1000):
        server.create(PODS.path, make_pod(f"p{number}").in_namespace("shop").on("n1").obj())
    mirror = followed(server)
    server.create(PODS.path, make_pod("done").in_namespace("shop").on("n1").phase("Succeeded").obj())
    found = asyncio.run(diff(server, mirror, [PODS, NODES]))
    assert not any(found.values())
    assert found["pods"].listed == 1004
    asked = requests(server, PODS)
    assert [request["limit"] for request in asked] == ["500", "500", "500"]
    assert {request["fieldSelector"] for request in asked} == {PODS.field_selector}
    assert ["continue" in request for request in asked] == [False, True, True]
    assert requests(server, NODES) == [{"limit": "500"}]


def test_a_selector_of_a_replica_set_is_compared() -> None:
    server = small_cluster()
    path, metadata = RESOURCES[ReplicaSet].path, {"name": "web", "namespace": "shop"}
    uid = server.create(path, {"metadata": metadata})["metadata"]["uid"]
    mirror = followed(server)
    server.update(path, {"metadata": metadata, "spec": {"selector": labelled(app="web")}})
    found = asyncio.run(diff(server, mirror, [RESOURCES[ReplicaSet]]))["replicasets"]
    assert found.differing == (Difference("shop/web", uid, ("selector", "resource_version")),)


def test_an_object_that_cannot_be_read_is_counted_and_not_redundant() -> None:
    server = small_cluster()
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


async def turns_of_others(client: InstantClient, mirror: ClusterMirror) -> int:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await mirror_diff(cast("ApiClient", client), [PODS], mirror, SETTLE, no_sleep, LongWork())
    task.cancel()
    return turns


def pods(number: int) -> Iterator[Pod]:
    return (Pod(f"u{index}", "shop", f"p{index}", {}, "n1") for index in range(number))


def test_others_have_their_turns_while_a_page_is_compared() -> None:
    item = make_pod("web").on("n1").json()
    assert asyncio.run(turns_of_others(InstantClient(*[item] * 20_000), ClusterMirror())) > 10


def test_others_have_their_turns_while_redundant_objects_are_looked_for() -> None:
    mirror = ClusterMirror()
    for pod in pods(50_000):
        mirror.apply(ClusterEvent("Add", pod))
    assert asyncio.run(turns_of_others(InstantClient(), mirror)) > 5
