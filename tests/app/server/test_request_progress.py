"""What may be around a body, over real connections: trailers, extensions and tiny chunks count as head, and as held."""

import asyncio
import contextlib
import json
from typing import Final

import pytest

from app.main import create_service
from app.objects.limits import Body
from app.server.connections import Connections, Refusal
from app.server.ports import Port, extender_port
from app.server.request_progress import _FALSE_ENDS
from app.settings import Settings
from app.verbs.admission import Admission
from app.verbs.observation import VerbResponse
from app.verbs.routes import ExtenderApp
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, answer, connected, request, serving, until
from tests.app.verbs.receptions import reception, verb_route
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
LIMIT: Final = 1024


def head(path: str, *headers: bytes) -> bytes:
    lines = (b"POST %b HTTP/1.1" % path.encode(), b"Host: k", *headers, b"Transfer-Encoding: chunked", b"", b"")
    return b"\r\n".join(lines)


def chunk(body: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(body), extension, body)


def verbs(**settings: float) -> Port:
    values = {"listen": "127.0.0.1:0", "max_header_bytes": LIMIT, **settings}
    return create_service(Settings.model_validate(values), shop(), None).ports[0]


def told(port: Port, sent: bytes, piece: int = 1 << 20) -> tuple[int, bytes]:
    """Send a request, in packets of that many bytes; give status and body of the answer."""
    found: list[tuple[int, bytes]] = []

    async def write(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(sent), piece):
                writer.write(sent[start : start + piece])
                await writer.drain()
                await asyncio.sleep(0.001)

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number) as (reader, writer):
            writing = asyncio.create_task(write(writer))
            status, _, body = await answer(reader)
            found.append((status, body))
            await writing

    asyncio.run(talked())
    return found[0]


FRAMINGS: Final = {
    "trailer": chunk(QUESTION) + b"0\r\nX: " + b"a" * LIMIT + b"\r\n\r\n",
    "trailers": chunk(QUESTION) + b"0\r\n" + b"a:\r\n" * 100 + b"\r\n",
    "extension": chunk(QUESTION, b";" + b"e" * LIMIT) + b"0\r\n\r\n",
    "last-extension": chunk(QUESTION) + b"0;" + b"e" * LIMIT + b"\r\n\r\n",
    "zeros": b"0" * LIMIT + chunk(QUESTION) + b"0\r\n\r\n",
    "tiny-chunks": b"".join(chunk(QUESTION[i : i + 1]) for i in range(len(QUESTION))) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("piece", [1 << 20, 50], ids=["at-once", "in-pieces"])
@pytest.mark.parametrize("path", ["/filter", "/filter?by=asgi"])
def test_what_is_around_a_body_counts_as_head(path: str, framing: bytes, piece: int) -> None:
    port = verbs()
    expected = b"The head of the request, with the framing of its body, is larger than 1024 bytes."
    assert told(port, head(path) + framing, piece) == (431, expected)
    assert port.connections.refused[Refusal.LARGE_HEAD] == 1


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("path", ["/filter", "/filter?by=asgi"])
def test_what_fits_a_head_may_be_around_a_body(path: str, framing: bytes) -> None:
    status, body = told(verbs(max_header_bytes=16 * LIMIT), head(path) + framing)
    assert (status, json.loads(body)["NodeNames"]) == (200, ["a1"])


def test_a_head_and_its_trailers_share_one_limit() -> None:
    headers, trailers = b"X: " + b"a" * 500, b"0\r\nX: " + b"a" * 500 + b"\r\n\r\n"
    assert told(verbs(), head("/filter", headers) + chunk(QUESTION) + b"0\r\n\r\n")[0] == 200
    assert told(verbs(), head("/filter") + chunk(QUESTION) + trailers)[0] == 200
    assert told(verbs(), head("/filter", headers) + chunk(QUESTION) + trailers)[0] == 431


def test_many_small_headers_count_for_the_objects_that_they_are() -> None:
    small = [f"{number:x}:" for number in range(30)]
    assert told(verbs(), request("/filter", QUESTION, *small))[0] == 431
    assert told(verbs(max_header_bytes=2 * LIMIT), request("/filter", QUESTION, *small))[0] == 200


def test_small_headers_count_for_what_they_are_though_they_come_in_pieces() -> None:
    small = [f"{number:x}:" for number in range(30)]
    assert told(verbs(), request("/filter", QUESTION, *small), 40)[0] == 431


def test_a_large_body_may_come_in_as_many_chunks_as_it_takes() -> None:
    body = QUESTION + b" " * 100_000
    chunks = b"".join(chunk(body[start : start + 128]) for start in range(0, len(body), 128))
    assert told(verbs(), head("/filter") + chunks + b"0\r\n\r\n")[0] == 200


@pytest.mark.parametrize("lines", [1, _FALSE_ENDS - 1, _FALSE_ENDS, 3 * _FALSE_ENDS])
def test_a_body_in_chunks_may_hold_empty_lines(lines: int) -> None:
    sent = head("/filter") + chunk(QUESTION + b"\r\n\r\n" * lines) + b"0\r\n\r\n"
    found = told(verbs(), sent)
    assert (found[0], json.loads(found[1])["NodeNames"]) == (200, ["a1"])


def endless(begun: bytes, **settings: float) -> Connections:
    """Begin a request and go on with it until the connection is closed."""
    port = verbs(**settings)

    async def drip(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.02)

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(port) as (_, number), connected(number) as (reader, writer):
            writer.write(begun)
            dripping = asyncio.create_task(drip(writer))
            assert b" 408 " in await reader.readuntil(b"\r\n")
            dripping.cancel()

    asyncio.run(talked())
    return port.connections


@pytest.mark.parametrize("around", [b"0\r\nX: ", b"1;"], ids=["trailer", "extension"])
def test_what_is_around_a_body_has_no_more_time_than_the_body(around: bytes) -> None:
    begun = head("/filter") + chunk(QUESTION) + around
    assert endless(begun, read_timeout=0.4).refused[Refusal.SLOW_REQUEST] == 1


def test_a_body_without_end_is_told_to_be_too_large() -> None:
    port = verbs(max_body_bytes=1024, max_header_bytes=1 << 20)
    assert told(port, head("/filter") + b"0\r\n" + b"a:\r\n" * 2000) == (413, b"The request is too large.")


def preempting(admission: Admission) -> Port:
    def verb(_: Body) -> VerbResponse:
        return VerbResponse(b"{}")

    app = ExtenderApp()
    app.add_verbs(verb_route(verb, reception(admission=admission)))
    return extender_port(Settings(listen="127.0.0.1:0"), app)


@pytest.mark.parametrize("end", [b"\r\n\r\n", b""], ids=["complete", "client-gone"])
@pytest.mark.parametrize("around", [b"0\r\nX: ", b"1;"], ids=["trailer", "extension"])
def test_what_is_around_a_body_is_held_until_the_end(around: bytes, end: bytes) -> None:
    admission = Admission(deadline=PATIENCE, queue_limit=1, max_bytes=1 << 20, clock=lambda: 0.0)

    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), serving(preempting(admission)) as (_, number):
            async with connected(number) as (reader, writer):
                writer.write(head("/preempt"))
                writer.write(around + b"a" * 5000)
                await until(lambda: admission.bytes_held >= 5000)
                assert admission.bytes_held < 6000
                if end and around.startswith(b"0"):
                    writer.write(end)
                    assert (await answer(reader))[0] == 200
                    assert admission.bytes_held == 0
            await until(lambda: admission.bytes_held == 0)
        assert admission.in_flight == 0

    asyncio.run(talked())


def test_a_question_is_turned_away_for_the_bytes_around_it() -> None:
    admission = Admission(deadline=PATIENCE, queue_limit=1, max_bytes=4000, clock=lambda: 0.0)
    sent = head("/preempt") + b"0\r\nX: " + b"a" * 10_000 + b"\r\n\r\n"
    assert b"KINDRED_QUEUE_MAX_BYTES" in told(preempting(admission), sent)[1]
    assert (admission.shed["bytes"], admission.bytes_held, admission.in_flight) == (1, 0, 0)
