"""Where watches begin: versions, WatchList, initial events; and bookmarks, which say how far they have come."""

import asyncio

import httpx
import msgspec
import pytest

from tests.fake_apiserver.asking import FILLS_SOCKETS, WATCH_LIST, pod, served, watching
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.server import FakeApiServer


@served()
async def test_a_watch_list_sends_the_state_then_its_bookmark_then_live_events(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    for name in ("b", "a"):
        server.create(PODS.path, pod(name))
    server.create(NODES.path, {"metadata": {"name": "n"}})
    async with watching(client, **WATCH_LIST) as watch:
        assert await watch.told(3) == ["ADDED a", "ADDED b", "BOOKMARK 4!"]
        server.update(PODS.path, pod("a", "Failed"))
        assert await watch.told(1) == ["MODIFIED a"]
    assert [request.kind for request in server.requests] == ["watch-list"]


@served()
async def test_the_bookmark_is_an_object_of_the_resource(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, **WATCH_LIST) as watch:
        (line,) = await watch.lines(1)
        assert server.requests[0].events == 1
    assert msgspec.json.decode(line) == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}},
        },
    }


@served()
async def test_a_long_watch_list_comes_whole(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    expected = [f"ADDED p-{number:03d}" for number in range(321)]
    for number in range(321):
        server.create(PODS.path, pod(f"p-{number:03d}"))
    async with watching(client, **WATCH_LIST) as watch:
        assert [*expected, "BOOKMARK 322!"] == await watch.told(322)


@served()
async def test_events_during_the_initial_ones_follow_the_bookmark(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
    server.create(PODS.path, pod("b"))
    async with watching(client, **WATCH_LIST) as watch:
        server.delete(PODS.path, "b", "default")
        assert await watch.told(4) == ["ADDED a", "ADDED b", "BOOKMARK 3!", "DELETED b"]


@served()
async def test_without_bookmarks_initial_events_have_no_end_mark(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, **(WATCH_LIST | {"allowWatchBookmarks": "false"})) as watch:
        assert await watch.told(1) == ["ADDED a"]
        server.create(PODS.path, pod("b"))
        assert await watch.told(1) == ["ADDED b"]


@pytest.mark.parametrize("version", [{}, {"resourceVersion": "0"}], ids=["unset", "0"])
@served()
async def test_a_watch_from_no_version_is_a_watch_list(
    server: FakeApiServer, client: httpx.AsyncClient, version: dict[str, str]
) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, allowWatchBookmarks="true", **version) as watch:
        assert await watch.told(2) == ["ADDED a", "BOOKMARK 2!"]


@served()
async def test_declined_initial_events_are_not_sent(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, **(WATCH_LIST | {"sendInitialEvents": "false", "resourceVersion": "0"})) as watch:
        server.create(PODS.path, pod("b"))
        assert await watch.told(1) == ["ADDED b"]


@served()
async def test_a_watch_list_may_name_a_version_that_it_is_not_older_than(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    server.compact(PODS.path)
    async with watching(client, resourceVersion="1", **WATCH_LIST) as watch:
        assert await watch.told(2) == ["ADDED a", "BOOKMARK 2!"]


@served(watch_list="off")
async def test_a_server_with_watch_list_switched_off_refuses_it(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    response = await client.get(PODS.path, params={"watch": "true", **WATCH_LIST})
    reason = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert response.status_code == 422
    assert response.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: {reason}',
        "reason": "Invalid",
        "details": {
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [
                {
                    "reason": "FieldValueForbidden",
                    "message": f"Forbidden: {reason}",
                    "field": "sendInitialEvents",
                }
            ],
        },
        "code": 422,
    }
    assert [request.status for request in server.requests] == [422]


@pytest.mark.parametrize("mode", ["off", "ignored"])
@served(bookmark_interval=0.05)
async def test_an_older_server_sends_the_state_without_an_end_mark(
    server: FakeApiServer, client: httpx.AsyncClient, mode: str
) -> None:
    server.behaviour.watch_list = "off" if mode == "off" else "ignored"
    server.create(PODS.path, pod("a"))
    asked = {"allowWatchBookmarks": "true"} if mode == "off" else WATCH_LIST
    async with watching(client, **asked) as watch:
        assert await watch.told(3) == ["ADDED a", "BOOKMARK 2", "BOOKMARK 2"]
        server.create(PODS.path, pod("b"))
        assert await watch.told(1) == ["ADDED b"]


@served(watch_list="ignored")
async def test_a_server_that_does_not_know_watch_list_watches_from_the_version(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    async with watching(client, resourceVersion="2", **WATCH_LIST) as watch:
        server.create(PODS.path, pod("b"))
        assert await watch.told(1) == ["ADDED b"]


@served()
async def test_a_compacted_version_is_told_in_the_stream_which_then_ends(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    server.compact(PODS.path)
    async with watching(client, resourceVersion="1") as watch:
        (event,) = await watch.events(1)
        assert await watch.rest() == b""
    assert event == {
        "type": "ERROR",
        "object": {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "too old resource version: 1 (2)",
            "reason": "Expired",
            "code": 410,
        },
    }
    assert [(request.status, request.events, request.ended) for request in server.requests] == [(200, 1, True)]


@served()
async def test_the_version_of_the_compaction_itself_can_be_watched_from(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    server.create(PODS.path, pod("a"))
    server.compact(PODS.path)
    server.create(PODS.path, pod("b"))
    async with watching(client, resourceVersion="2") as watch:
        assert await watch.told(1) == ["ADDED b"]


@served()
async def test_a_watch_list_from_the_future_is_an_error_in_the_stream(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    async with watching(client, resourceVersion="99", **WATCH_LIST) as watch:
        (event,) = await watch.events(1)
        assert await watch.rest() == b""
    assert server.requests[0].status == 200
    assert event["type"] == "ERROR"
    assert (event["object"]["reason"], event["object"]["code"]) == ("Timeout", 504)
    assert event["object"]["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


@served(bookmark_interval=0.02)
async def test_a_plain_watch_from_the_future_waits_for_it_in_silence(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    async with watching(client, resourceVersion="3", allowWatchBookmarks="true") as watch:
        await asyncio.sleep(0.1)
        for name in ("a", "b", "c"):
            server.create(PODS.path, pod(name))
        assert await watch.told(2) == ["ADDED c", "BOOKMARK 4"]


@served(bookmark_interval=0.05)
async def test_bookmarks_tell_the_version_of_the_whole_cluster(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    async with watching(client, resourceVersion="1", allowWatchBookmarks="true") as watch:
        assert await watch.told(2) == ["BOOKMARK 1", "BOOKMARK 1"]
        server.create(NODES.path, {"metadata": {"name": "n"}})
        assert await watch.told(1) == ["BOOKMARK 2"]


@served(bookmark_interval=0.02)
async def test_bookmarks_are_not_sent_unasked(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1") as watch:
        await asyncio.sleep(0.1)
        server.create(PODS.path, pod("a"))
        assert await watch.told(1) == ["ADDED a"]


@served(bookmark_before_deadline=0.8)
async def test_a_last_bookmark_comes_before_the_deadline_and_the_end_is_clean(
    server: FakeApiServer, client: httpx.AsyncClient
) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    async with watching(client, resourceVersion="1", allowWatchBookmarks="true", timeoutSeconds="1") as watch:
        server.create(PODS.path, pod("a"))
        assert await watch.told(2) == ["ADDED a", "BOOKMARK 2"]
        assert clock() - began > 0.1
        assert await watch.rest() == b""
        assert clock() - began > 0.95
    assert server.watching() == 0


@served(bookmark_interval=0.02)
async def test_a_bookmark_never_runs_ahead_of_the_events(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    async with watching(client, resourceVersion="1", allowWatchBookmarks="true") as watch:
        # The server still waits when the next event and bookmark are due.
        server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
        await server.until(lambda: server.requests[0].events > 0)
        await asyncio.sleep(0.05)
        server.create(PODS.path, pod("b"))
        told = await watch.told(4)
    assert told[0] == "ADDED a"
    assert "BOOKMARK 3" not in told[: told.index("ADDED b")]
