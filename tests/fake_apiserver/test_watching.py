"""Watches, as a client of the fake API server gets them."""

import httpx
import msgspec

from tests.fake_apiserver.asking import (
    FILLS_SOCKETS,
    NOT_TERMINAL,
    PARTIAL,
    PARTIAL_LIST,
    WATCH_LIST,
    pod,
    served,
    watching,
)
from tests.fake_apiserver.resources import NODES, PODS, REPLICA_SETS
from tests.fake_apiserver.server import FakeApiServer


@served()
async def test_the_events_after_a_version_are_followed_by_live_ones(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    for name in ("a", "b"):
        server.create(PODS.path, pod(name))
    server.create(NODES.path, {"metadata": {"name": "n"}})
    async with watching(client, resourceVersion="2") as watch:
        assert await watch.told(1) == ["ADDED b"]
        server.create(NODES.path, {"metadata": {"name": "m"}})
        server.update(PODS.path, pod("a", "Failed"))
        server.delete(PODS.path, "b", "default")
        server.create(PODS.path, pod("c"))
        assert await watch.told(3) == ["MODIFIED a", "DELETED b", "ADDED c"]


@served()
async def test_an_event_carries_the_object_with_kind_and_version(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    async with watching(client, REPLICA_SETS.path, resourceVersion="1") as watch:
        created = server.create(REPLICA_SETS.path, {"metadata": {"name": "r"}, "spec": {"replicas": 2}})
        (event,) = await watch.events(1)
        assert {
            "type": "ADDED",
            "object": {"kind": "ReplicaSet", "apiVersion": "apps/v1", **created},
        } == event
        assert created["metadata"]["resourceVersion"] == "2"


@served()
async def test_a_deletion_tells_the_last_state_under_its_own_version(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    created = server.create(PODS.path, pod('"resourceVersion":"2"', labels={"app": "x"}))
    server.delete(PODS.path, created["metadata"]["name"], "default")
    async with watching(client, resourceVersion="2") as watch:
        (event,) = await watch.events(1)
    assert event["type"] == "DELETED"
    assert {**created["metadata"], "resourceVersion": "3"} == event["object"]["metadata"]


@served()
async def test_an_object_made_again_has_another_uid_and_an_update_keeps_it(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    server.update(PODS.path, pod("a", "Failed"))
    server.delete(PODS.path, "a", "default")
    server.create(PODS.path, pod("a"))
    async with watching(client, resourceVersion="1") as watch:
        events = await watch.events(4)
    uids = [event["object"]["metadata"]["uid"] for event in events]
    assert uids[0] == uids[1] == uids[2] != uids[3]
    assert [event["object"]["metadata"]["resourceVersion"] for event in events] == ["2", "3", "4", "5"]


@served()
async def test_an_object_that_leaves_the_selector_is_deleted_and_one_that_enters_added(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a", labels={"is": "before"}))
    server.create(PODS.path, pod("b", "Succeeded"))
    async with watching(client, fieldSelector=NOT_TERMINAL, **WATCH_LIST) as watch:
        assert await watch.told(2) == ["ADDED a", "BOOKMARK 3!"]
        server.update(PODS.path, pod("a", "Failed", labels={"is": "after"}))
        server.update(PODS.path, pod("b", "Running"))
        server.update(PODS.path, pod("b", "Pending"))
        server.delete(PODS.path, "a", "default")  # of no interest
        server.delete(PODS.path, "b", "default")
        gone, *others = await watch.events(4)
        assert gone["type"] == "DELETED"
        metadata, status = gone["object"]["metadata"], gone["object"]["status"]
        assert (
            metadata["labels"],
            metadata["resourceVersion"],
            status["phase"],
        ) == ({"is": "before"}, "4", "Running")
        assert [event["type"] for event in others] == ["ADDED", "MODIFIED", "DELETED"]


@served()
async def test_watches_with_and_without_a_selector_see_one_event_differently(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    async with (
        watching(client, resourceVersion="2") as plain,
        watching(client, resourceVersion="2", fieldSelector="spec.nodeName=n") as selecting,
        watching(client, accept=PARTIAL, resourceVersion="2") as partial,
    ):
        server.update(PODS.path, pod("a", node="n"))
        assert await plain.told(1) == ["MODIFIED a"]
        assert await selecting.told(1) == ["ADDED a"]
        (reduced,) = await partial.events(1)
        assert {"kind", "apiVersion", "metadata"} == reduced["object"].keys()


@served()
async def test_metadata_alone_is_watched_on_demand(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, accept=PARTIAL, **WATCH_LIST) as watch:
        server.delete(PODS.path, "a", "default")
        added, bookmark, deleted = await watch.events(3)
    assert added["object"].keys() == deleted["object"].keys() == {"kind", "apiVersion", "metadata"}
    assert {("PartialObjectMetadata", "meta.k8s.io/v1")} == {
        (event["object"]["kind"], event["object"]["apiVersion"]) for event in (added, bookmark, deleted)
    }
    assert [event["object"]["metadata"]["resourceVersion"] for event in (added, bookmark, deleted)] == ["2", "2", "3"]


@served()
async def test_a_watch_cannot_be_asked_for_as_a_list(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    response = await client.get(PODS.path, params={"watch": "true"}, headers={"Accept": PARTIAL_LIST})
    assert response.status_code == server.requests[0].status == 406


@served(history=2)
async def test_a_client_that_is_too_slow_for_the_history_is_let_go(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    async with watching(client, resourceVersion="1") as watch:
        # The server waits for the client, and meanwhile the history moves on.
        server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
        await server.until(lambda: server.requests[0].events > 0)
        for name in ("b", "c", "d", "e"):
            server.create(PODS.path, pod(name))
        assert await watch.told(1) == ["ADDED a"]
        assert await watch.rest() == b""
    async with watching(client, resourceVersion="2") as watch:
        assert [event["object"]["code"] for event in await watch.events(1)] == [410]
    async with watching(client, resourceVersion="4") as watch:
        assert await watch.told(2) == ["ADDED d", "ADDED e"]


@served(chunk_bytes=7)
async def test_events_are_split_over_chunk_borders(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1") as watch:
        server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"text": "\u0085\u2028"}}})
        server.create(PODS.path, pod("b"))
        sizes = []
        received = b""
        async for chunk in watch.response.aiter_raw():
            sizes.append(len(chunk))
            received += chunk
            if received.count(b"\n") == 2:
                break
    assert max(sizes) == 7
    assert "\u0085\u2028".encode() in received
    assert [msgspec.json.decode(line)["object"]["metadata"]["name"].encode() for line in received.splitlines()] == [
        b"a",
        b"b",
    ]


@served()
async def test_an_object_of_a_megabyte_is_one_line(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1") as watch:
        server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * 1_000_000}}})
        server.create(PODS.path, pod("b"))
        lines = await watch.lines(2)
    assert len(lines[0]) > 1_000_000
    assert len(lines[1]) < 1_000


@served()
async def test_a_client_that_goes_away_ends_its_watch(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1"):
        await server.until_watching(PODS.path)
        assert (server.watching(PODS.path), server.watching(NODES.path)) == (1, 0)
    await server.until(lambda: server.watching() == 0)
    await server.until(lambda: server.requests[0].ended)
