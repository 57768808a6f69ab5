"""What a connection may cost: bytes of a head, and the time for a request, for an answer, and between them."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop
from fastapi import FastAPI
from starlette.responses import StreamingResponse

from app.process.logs import LineRate
from app.server.connections import Connections, RejectReason
from app.server.ports import Port, extender_port
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, Connection, connected, read_response, request, serving, until
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
QUICK: Final = Limits(read_timeout=0.4)
Say = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(talked: Coroutine[Any, Any, None], loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(talked)


def verbs(limits: Limits = DEFAULTS) -> Port:
    return create_service(Settings(listen="127.0.0.1:0"), shop(), None, limits=limits).ports[0]


def talk(port: Port, say: Say, loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> Connections:
    """Serve a port and talk to it over one connection; give what it knows of its connections afterwards."""

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number) as (reader, writer):
            await say(reader, writer)

    run(talked(), loop)
    return port.connections


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Read until the connection is closed, or reset as there was something that nobody had read."""
    read = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(64 * 1024):
            read += piece
    return bytes(read)


def streams(pieces: int) -> Port:
    """Make a port whose answer is a megabyte a piece."""
    app = FastAPI()

    @app.get("/much")
    async def much() -> StreamingResponse:
        async def reported() -> AsyncIterator[bytes]:
            for _ in range(pieces):
                yield bytes(1024 * 1024)

        return StreamingResponse(reported())

    return extender_port(Settings(listen="127.0.0.1:0"), app, QUICK)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    "begun",
    [
        b"P",
        b"POST /filter HTTP/1.1\r\nHost: kindred\r\nX-Slow: a",
        request("/filter", QUESTION)[:-1],
        request("/nowhere", QUESTION)[:-1],
    ],
    ids=["first-byte", "head", "body", "body-not-read"],
)
def test_a_request_that_is_not_complete_in_time_is_ended(
    begun: bytes, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(begun)
        status, headers, _ = await read_response(reader)
        if begun.startswith(b"POST /nowhere"):
            assert status == 404  # before the body was read
        else:
            assert (status, headers["connection"]) == (408, "close")
        assert await closed(reader) == b""

    assert talk(verbs(QUICK), say, loop).rejected[RejectReason.SLOW_REQUEST] == 1


def test_a_request_that_comes_byte_by_byte_has_no_more_time_than_others() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                for byte in request("/filter", QUESTION):
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        assert b"408 Request Timeout" in await closed(reader)
        dripping.cancel()

    talk(verbs(QUICK), say)


def test_empty_lines_before_a_request_keep_no_connection_open() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.1)

        dripping = asyncio.create_task(drip())
        assert await closed(reader) == b""
        dripping.cancel()

    talk(verbs(Limits(idle_timeout=1)), say)


@pytest.mark.parametrize("before", [b"", request("/filter", QUESTION)], ids=["never-asked", "asked-before"])
def test_a_connection_without_a_request_is_closed_after_a_while(before: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        if before:
            assert (await read_response(reader))[0] == 200
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await closed(reader) == b""
        assert loop.time() - began >= 0.5  # it began a moment ago; the time to read a request is 0.1 s

    connections = talk(verbs(Limits(idle_timeout=1, read_timeout=0.1)), say)
    assert not connections.rejected.total()


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_an_answer_that_nobody_takes_is_thrown_away(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    port = streams(64)

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number):
            with socket.create_connection(("127.0.0.1", number)) as client:
                client.sendall(request("/much", method="GET"))
                await until(lambda: port.connections.rejected[RejectReason.RESPONSE_NOT_READ] == 1)
                await until(lambda: port.connections.open == 0)

    run(talked(), loop)


def test_an_answer_that_is_taken_slowly_but_in_time_is_whole() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request("/much", b"", "Connection: close", method="GET"))
        read = 0
        while piece := await reader.read(1024 * 1024):
            read += len(piece)
            await asyncio.sleep(0.02)
        assert read > 16 * 1024 * 1024

    assert not talk(streams(16), say).rejected.total()


@pytest.mark.parametrize(
    "head",
    [
        b"POST /filter HTTP/1.1\r\nX-Large: " + b"a" * 4096,
        b"POST /filter HTTP/1.1\r\nX-Large: " + b"a" * 4096 + b"\r\n\r\n",
        b"POST /filter HTTP/1.1\r\n" + b"X: y\r\n" * 500,
        b"POST /" + b"a" * 4096,
    ],
    ids=["endless-header", "large-header", "many-headers", "long-path"],
)
@pytest.mark.parametrize("piece", [1 << 20, 100], ids=["at-once", "in-pieces"])
def test_a_head_that_is_too_large_is_refused(head: bytes, piece: int) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write() -> None:
            with contextlib.suppress(ConnectionError):
                for start in range(0, len(head), piece):
                    writer.write(head[start : start + piece])
                    await writer.drain()
                    await asyncio.sleep(0.001)

        writing = asyncio.create_task(write())
        with contextlib.suppress(ConnectionError):  # or a reset came before it, as not all was read
            status, headers, body = await read_response(reader)
            assert (status, headers["connection"]) == (431, "close")
            assert body == b"The head of the request is larger than 1024 bytes."
        await closed(reader)
        writing.cancel()

    assert talk(verbs(Limits(max_header_bytes=1024)), say).rejected[RejectReason.LARGE_HEAD] == 1


def test_a_small_head_before_a_large_body_is_none_too_large() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            writer.write(request("/filter", QUESTION + b" " * 10_000))
            assert json.loads((await read_response(reader))[2])["NodeNames"] == ["a1"]

    talk(verbs(Limits(max_header_bytes=1024)), say)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        b"POST /filter HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nHost : kindred\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nX: a\r\n folded\r\nX\x00: b\r\n\r\n",
    ],
    ids=[
        "tls",
        "no-version",
        "version",
        "url",
        "bytes",
        "smuggled",
        "two-lengths",
        "negative",
        "space",
        "nul",
    ],
)
def test_what_is_no_http_1_1_gets_400_and_leaves_no_trace_back(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert (await read_response(reader))[0] == 400
        assert await closed(reader) == b""

    assert talk(verbs(), say).rejected[RejectReason.MALFORMED] == 1
    assert [record.exc_info for record in caplog.records] == [None]
    assert "malformed request" in caplog.text


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_connections_past_the_limit_are_closed_at_once(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    port = verbs(Limits(max_connections=2))

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number):
            async with connected(number) as first, connected(number) as second:
                for reader, writer in (first, second):
                    writer.write(request("/filter", QUESTION))
                    assert (await read_response(reader))[0] == 200
                assert port.connections.open == 2
                async with connected(number) as (reader, _):
                    assert await closed(reader) == b""
                assert await requested(first) == 200
            await until(lambda: port.connections.open == 0)
            async with connected(number) as third:
                assert await requested(third) == 200

    run(talked(), loop)
    assert port.connections.rejected[RejectReason.TOO_MANY] == 1


async def requested(connection: Connection) -> int:
    reader, writer = connection
    writer.write(request("/filter", QUESTION))
    return (await read_response(reader))[0]


def test_who_stands_in_the_way_does_not_keep_others_from_being_answered() -> None:
    port = verbs(Limits(max_connections=300, read_timeout=PATIENCE))

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), contextlib.AsyncExitStack() as stack:
            for _ in range(200):
                _, writer = await stack.enter_async_context(connected(number))
                writer.write(b"POST /filter HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{")
            async with connected(number) as connection:
                assert await requested(connection) == 200

    run(talked())


def test_many_refusals_are_one_line_a_second(caplog: pytest.LogCaptureFixture) -> None:
    port = verbs()

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number):
            for _ in range(50):
                async with connected(number) as (reader, writer):
                    writer.write(b"no http\r\n\r\n")
                    await closed(reader)

    run(talked())
    assert port.connections.rejected[RejectReason.MALFORMED] == 50
    rate = LineRate(time.monotonic)
    assert [rate.allows(line) for line in caplog.records] == [True, *49 * [False]]
