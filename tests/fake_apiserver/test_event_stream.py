"""What can befall a watch, as its client sees it."""

import asyncio

import httpx
import msgspec
import pytest

from tests.fake_apiserver.asking import FILLS_SOCKETS, WATCH_LIST, pod, served, watching
from tests.fake_apiserver.faults import Close, Cut, End, Gzip, Replay, SendLine, Stall, StreamError, Undecodable
from tests.fake_apiserver.resources import NODES, PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.statuses import Status, expired_watch, internal_error


def put(server: FakeApiServer, *pod_names: str) -> None:
    for name in pod_names:
        server.create(PODS.path, pod(name))


@pytest.mark.parametrize("status", [expired_watch(1, 9), internal_error()], ids=["expired", "internal-error"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
@served
async def test_an_error_event_ends_a_watch_where_it_is_told_to(
    server: FakeApiServer, client: httpx.AsyncClient, after: int, status: Status
) -> None:
    server.faults.add(StreamError(status, after=after))
    put(server, "a", "b")
    async with watching(client, resourceVersion="1") as watch:
        expected = ["ADDED a", "ADDED b", "ADDED c"][:after]
        assert await watch.told(min(after, 2)) == expected[:2]
        put(server, "c", "d")
        assert await watch.told(len(expected[2:])) == expected[2:]
        (error,) = await watch.events(1)
        assert await watch.rest() == b""
    assert error == {"type": "ERROR", "object": status}


@served
async def test_an_error_in_the_midst_of_initial_events(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(StreamError(internal_error(), after=1), PODS.path, "watch-list")
    put(server, "a", "b")
    async with watching(client, **WATCH_LIST) as watch:
        assert [event["type"] for event in await watch.events(2)] == ["ADDED", "ERROR"]
        assert await watch.rest() == b""


@served
async def test_a_fault_befalls_as_many_requests_as_it_says(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(End(), times=2)
    put(server, "a")
    for expected in (b"", b""):
        async with watching(client, resourceVersion="1") as watch:
            assert await watch.rest() == expected
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.told(1) == ["ADDED a"]


@served
async def test_a_normal_end_after_some_events(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(End(after=2))
    put(server, "a", "b", "c")
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.told(2) == ["ADDED a", "ADDED b"]
        assert await watch.rest() == b""
    assert server.requests[0].ended


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@served
async def test_a_cut_leaves_a_piece_of_a_line(server: FakeApiServer, client: httpx.AsyncClient, reset: bool) -> None:  # noqa: FBT001 - one of two cases
    server.faults.add(Cut(after=1, extra=25, reset=reset))
    put(server, "a", "b")
    async with watching(client, resourceVersion="1") as watch:
        with pytest.raises(httpx.ReadError if reset else httpx.RemoteProtocolError):
            await watch.rest()
        if not reset:  # a reset may take with it what has been sent
            assert await watch.told(1) == ["ADDED a"]
            assert watch.received == b'{"type":"ADDED","object":{"kind"'[:25]


@served
async def test_a_cut_waits_for_its_line(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Cut())
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.silent()
    assert not server.faults.pending


@pytest.mark.parametrize("after", [0, 1])
@served
async def test_a_stall_sends_nothing_until_it_is_released(
    server: FakeApiServer, client: httpx.AsyncClient, after: int
) -> None:
    stall = Stall(after=after)
    server.faults.add(stall)
    put(server, "a", "b")
    async with watching(client, resourceVersion="1", timeoutSeconds="1") as watch:
        assert await watch.told(after) == ["ADDED a"][:after]
        assert await watch.silent()
        assert not server.requests[0].ended
        stall.release()
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.told(2) == ["ADDED a", "ADDED b"]


@served
async def test_a_stall_goes_on_where_it_was(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Stall(seconds=0.1, after=1))
    put(server, "a", "b")
    clock = asyncio.get_running_loop().time
    began = clock()
    async with watching(client, resourceVersion="1") as watch:
        put(server, "c")
        assert await watch.told(3) == ["ADDED a", "ADDED b", "ADDED c"]
    assert clock() - began >= 0.1


@served
async def test_a_stall_does_not_heed_the_deadline(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Stall())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.3), watching(client, resourceVersion="1", timeoutSeconds="1") as watch:
            await watch.rest()
    assert server.requests[0].status == 200


@served
async def test_a_stall_before_the_head_answers_nothing(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    stall = Stall(before_head=True)
    server.faults.add(stall)
    put(server, "a")
    asked = asyncio.create_task(client.get(PODS.path))
    await server.until(lambda: len(server.requests) == 1)
    await asyncio.sleep(0.05)
    assert (server.requests[0].status, asked.done()) == (0, False)
    stall.release()
    assert (await asked).status_code == 200


@served
async def test_clearing_releases_what_is_stalled(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Stall())
    server.faults.add(End(), times=None)
    put(server, "a")
    async with watching(client, resourceVersion="1") as watch:
        await server.until_watching(PODS.path)
        server.faults.clear()
        assert await watch.told(1) == ["ADDED a"]
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.told(1) == ["ADDED a"]


@pytest.mark.parametrize("line", [b"<html>", b'{"type":"STRANGE","object":{}}', b""], ids=["no-json", "type", "empty"])
@served
async def test_a_line_that_does_not_belong_there(server: FakeApiServer, client: httpx.AsyncClient, line: bytes) -> None:
    server.faults.add(SendLine(line, after=1))
    put(server, "a", "b")
    async with watching(client, resourceVersion="1") as watch:
        first, strange, last = await watch.lines(3)
    assert strange == line
    assert [b'"name":"a"' in first, b'"name":"b"' in last] == [True, True]


@served
async def test_events_are_sent_again(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Replay(after=3))
    put(server, "a", "b")
    async with watching(client, resourceVersion="1") as watch:
        assert await watch.told(2) == ["ADDED a", "ADDED b"]
        put(server, "c", "d")
        assert await watch.told(5) == ["ADDED c", "ADDED a", "ADDED b", "ADDED c", "ADDED d"]
    assert server.requests[0].events == 7


@served
async def test_one_event_is_undecodable(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Undecodable(after=1))
    put(server, "a", "b", "c")
    async with watching(client, **WATCH_LIST) as watch:
        events = await watch.events(4)
    labels = [event["object"]["metadata"].get("labels") for event in events]
    assert labels == [None, ["not", "a", "map"], None, None]
    assert [event["object"]["metadata"].get("name") for event in events] == ["a", "b", "c", None]


@served
async def test_a_stream_is_compressed_though_nobody_asked(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Gzip())
    put(server, "a")
    async with watching(client, resourceVersion="1", timeoutSeconds="1") as watch:
        assert watch.response.headers["content-encoding"] == "gzip"
        decoded = watch.response.aiter_bytes()
        assert msgspec.json.decode(await anext(decoded))["object"]["metadata"]["name"] == "a"
        put(server, "b")  # each event can be read when it comes
        assert msgspec.json.decode(await anext(decoded))["object"]["metadata"]["name"] == "b"
        assert [chunk async for chunk in decoded if chunk] == []


@served
async def test_a_watch_is_closed_behind_its_head(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.faults.add(Close(after_head=True), None, "watch")
    with pytest.raises(httpx.RemoteProtocolError):
        async with watching(client, resourceVersion="1") as watch:
            await watch.rest()
    assert server.requests[0].status == 200


@served
async def test_a_running_watch_is_disturbed_from_where_it_is(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    put(server, "a")
    async with (
        watching(client, resourceVersion="1") as disturbed,
        watching(client, NODES.path, resourceVersion="1") as other,
    ):
        assert await disturbed.told(1) == ["ADDED a"]
        await server.until_watching(NODES.path)
        assert server.disturb(StreamError(expired_watch(1, 9), after=1), PODS.path) == 1
        assert await disturbed.silent()
        put(server, "b", "c")
        assert [event["type"] for event in await disturbed.events(2)] == ["ADDED", "ERROR"]
        assert await disturbed.rest() == b""
        assert server.end_watches() == 1
        assert await other.rest() == b""


@served
async def test_a_watch_is_disturbed_amid_its_initial_events(server: FakeApiServer, client: httpx.AsyncClient) -> None:
    server.create(PODS.path, {"metadata": {"name": "a", "annotations": {"long": "x" * FILLS_SOCKETS}}})
    for number in range(200):
        put(server, f"b{number:03d}")
    async with watching(client, **WATCH_LIST) as watch:
        await server.until(lambda: server.requests[0].events > 0)
        assert server.end_watches() == 1
        told = (await watch.rest()).count(b"\n")
    assert told == 100  # what was under way
