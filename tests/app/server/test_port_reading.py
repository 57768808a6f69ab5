"""How a connection reads: what is behind a request waits for its response, and a flood gives way to other work."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterable
from typing import Any, Final

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.objects.decode import Body
from app.server.connections import Connections
from app.server.port import Connection
from app.server.ports import Port
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.verbs.request import VerbResponse
from app.wiring.main import create_service
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving
from tests.app.verbs.receptions import app_of, reception
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
GET: Final = request("/livez", method="GET")
POST: Final = request("/filter", QUESTION)
WITH_A_QUERY: Final = request("/filter?timeout=5s", QUESTION)
SMALL: Final = request("/filter", QUESTION).replace(b"Content-Length", b"content-length")
REQUESTS: Final = {"get": GET, "verb": POST, "query": WITH_A_QUERY, "small-letters": SMALL}


def verbs() -> Port:
    return create_service(Settings(listen="127.0.0.1:0"), shop(), None).ports[0]


def talk(pieces: list[bytes], responses: int) -> list[tuple[int, bytes]]:
    """Send pieces, one packet each; give so many answers, behind which the connection is closed."""
    found: list[tuple[int, bytes]] = []

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(verbs()) as (_, number), connected(number) as (reader, writer):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
            for _ in range(responses):
                status, _, body = await read_response(reader)
                found.append((status, body))
            assert await reader.read() == b""

    asyncio.run(talked())
    return found


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize(
    "garbage", [b"garbage\r\n\r\n", b"\0", b"GET / HTTP/9.9\r\n\r\n"], ids=["text", "nul", "version"]
)
def test_a_request_is_answered_before_the_garbage_behind_it(sent: bytes, garbage: bytes) -> None:
    found = talk([sent + garbage], 2)
    assert [status for status, _ in found] == [200, 400]
    assert found[0][1] == b'"ok"' or json.loads(found[0][1])["NodeNames"] == ["a1"]
    assert [status for status, _ in talk([sent[:-2], sent[-2:] + garbage], 2)] == [200, 400]
    assert [status for status, _ in talk([sent + GET + garbage], 3)] == [200, 200, 400]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(REQUESTS, repeat=2)))
@pytest.mark.parametrize("piece", [1 << 20, 50], ids=["at-once", "in-pieces"])
def test_requests_in_a_row_are_answered_in_order(first: str, second: str, piece: int) -> None:
    sent = b"\r\n" + REQUESTS[first] + b"\r\n\r\n" + REQUESTS[second]
    last = request("/nowhere", b"", "Connection: close", method="GET")
    found = talk([(sent + last)[start : start + piece] for start in range(0, len(sent + last), piece)], 3)
    assert [status for status, _ in found] == [200, 200, 404]
    for name, (_, body) in zip((first, second), found, strict=False):
        assert (body == b'"ok"') == (name == "get")


class Wire(asyncio.Transport):
    """A transport that keeps what is written and whether reading is paused."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.paused = False
        self.closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401, ARG002 - as asyncio has it
        return default

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def write(self, data: Any) -> None:  # noqa: ANN401 - the types of asyncio differ by version
        self.written += data

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.written += b"".join(list_of_data)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


def wired(connections: Connections) -> tuple[Connection, Wire]:
    """Make a connection to a verb that does nothing."""

    def verb(_: Body) -> VerbResponse:
        return VerbResponse(b"{}")

    app = app_of(verb, reception(max_body_bytes=1 << 24))
    config = uvicorn.Config(app, ws="none", log_config=None)
    protocol, wire = Connection(app, connections, config=config, server_state=ServerState(), app_state={}), Wire()
    protocol.connection_made(wire)
    return protocol, wire


def port_state(head: int = 1 << 15) -> Connections:
    return Connections("extender", Limits(max_header_bytes=head, max_body_bytes=1 << 24, read_timeout=PATIENCE))


def test_a_large_body_is_read_in_many_rounds_of_the_loop() -> None:
    async def run() -> int:
        flood = b"POST /preempt HTTP/1.1\r\nContent-Length: 16000000\r\n\r\n" + b" " * 16_000_000
        protocol, wire = wired(port_state())
        rounds = 0
        for start in range(0, len(flood), 256_000):
            protocol.data_received(flood[start : start + 256_000])
            while wire.paused:
                await asyncio.sleep(0)
                rounds += 1
        await asyncio.sleep(0.01)
        assert wire.written.startswith(b"HTTP/1.1 200 ")
        return rounds

    assert asyncio.run(run()) >= 6


@pytest.mark.parametrize("flood", [b"a: b\r\n" * 50_000, b"a: " + b"b" * 300_000], ids=["headers", "a-header"])
def test_of_a_flood_in_a_head_no_more_is_read_than_a_head_may_have(flood: bytes) -> None:
    async def run() -> None:
        protocol, wire = wired(port_state())
        began = time.process_time()
        protocol.data_received(b"POST /preempt HTTP/1.1\r\nContent-Length: 0\r\n" + flood + b"\r\n")
        assert time.process_time() - began < 0.05  # all of these headers take 0.2 s and more
        assert wire.written.startswith(b"HTTP/1.1 431 ")
        assert wire.closing

    asyncio.run(run())


def test_pipelined_requests_are_answered_one_in_a_round() -> None:
    async def run() -> None:
        protocol, wire = wired(port_state())
        protocol.data_received(request("/preempt", b"{}") * 1000)
        rounds = 0
        while wire.written.count(b"HTTP/1.1 200 ") < 1000:
            assert wire.written.count(b"HTTP/1.1 200 ") <= rounds + 2
            await asyncio.sleep(0)
            rounds += 1
            assert rounds < 5000
        assert not wire.paused

    asyncio.run(run())


def test_clients_with_large_heads_are_read_one_after_the_other_and_the_loop_goes_round() -> None:
    async def run() -> None:
        port = verbs().connections  # with the limits of the product
        large = request("/preempt", b"{}", *("a: b",) * 800)
        talks = [wired(port) for _ in range(50)]

        def responded() -> list[bool]:
            return [wire.written.startswith(b"HTTP/1.1 200 ") for _, wire in talks]

        for protocol, _ in talks:
            protocol.data_received(large)
        counts = [sum(responded())]
        while not all(responded()):
            assert responded() == sorted(responded(), reverse=True), "first come, first served"
            assert [wire.paused for _, wire in talks] == [not each for each in responded()]
            await asyncio.sleep(0)
            counts.append(sum(responded()))
            assert len(counts) < 1000
        assert max(now - before for before, now in itertools.pairwise([0, *counts])) <= 10
        assert not any(wire.paused for _, wire in talks)

    asyncio.run(run())


def test_a_client_that_left_before_its_turn_is_not_read() -> None:
    async def run() -> None:
        port = verbs().connections
        talks = [wired(port) for _ in range(50)]
        for protocol, _ in talks:
            protocol.data_received(request("/preempt", b"{}", *("a: b",) * 800))
        protocol, wire = talks[-1]
        protocol.connection_lost(None)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not wire.written
        assert all(each.written for _, each in talks[:-1])

    asyncio.run(run())


def test_nothing_is_read_of_a_connection_that_went_away_before_the_next_round() -> None:
    async def run() -> None:
        state = port_state()
        protocol, wire = wired(state)
        protocol.data_received(request("/preempt", b"{}") * 2)
        assert wire.written.count(b"HTTP/1.1 200 ") == 1
        protocol.connection_lost(None)
        for _ in range(3):
            await asyncio.sleep(0)
        assert wire.written.count(b"HTTP/1.1 200 ") == 1
        assert not state.connections

    asyncio.run(run())


def test_a_client_that_does_not_take_its_answers_is_not_read_on() -> None:
    async def run() -> None:
        protocol, wire = wired(port_state())
        protocol.data_received(request("/preempt", b"{}"))
        protocol.pause_writing()
        protocol.data_received(request("/preempt", b"{}"))
        assert (wire.paused, wire.written.count(b"HTTP/1.1 200 ")) == (True, 1)
        protocol.resume_writing()
        for _ in range(3):
            await asyncio.sleep(0)
        assert (wire.paused, wire.written.count(b"HTTP/1.1 200 ")) == (False, 2)

    asyncio.run(run())
