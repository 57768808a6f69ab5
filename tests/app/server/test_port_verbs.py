"""The verbs over real connections."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest
from fastapi import FastAPI

from app.objects.decode import Body
from app.server.ports import extender_port
from app.server.server import Server
from app.settings.limits import Limits
from app.settings.settings import Settings
from app.verbs.endpoint import ExtenderApp
from app.verbs.request import VerbResponse
from app.wiring.main import create_service
from tests.app.asgi import ask
from tests.app.questions import NEAR_WEB, by_name, shop
from tests.app.server.conversations import PATIENCE, connected, read_response, request, serving
from tests.app.verbs.receptions import app_of, reception
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "c1")
LARGEST: Final = 100_000


def service() -> ExtenderApp:
    app = create_service(Settings(), shop(), None, limits=Limits(max_body_bytes=LARGEST)).app
    assert isinstance(app, ExtenderApp)
    return app


def served(app: FastAPI) -> AbstractAsyncContextManager[tuple[Server, int]]:
    return serving(extender_port(Settings(listen="127.0.0.1:0"), app))


def talk(app: FastAPI, say: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> Server:
    """Serve an app and talk to it over one connection; give the server, which has ended."""

    async def talked() -> Server:
        async with asyncio.timeout(PATIENCE), served(app) as (server, port), connected(port) as (reader, writer):
            await say(reader, writer)
            return server

    return asyncio.run(talked())


def requested(app: FastAPI, *requests: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """Send requests, each after the answer to the one before."""
    responses = []

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for each in requests:
            writer.write(each)
            responses.append(await read_response(reader))

    talk(app, say)
    return responses


@pytest.mark.parametrize("path", ["/filter", "/prioritize", "/bind", "/preempt"])
@pytest.mark.parametrize(
    ("body", "headers"),
    [(QUESTION, {}), (QUESTION, {"kindred-cache": "off"}), (b"{", {}), (b"", {})],
    ids=["good", "afresh", "bad", "empty"],
)
def test_a_connection_answers_as_the_app_does(path: str, body: bytes, headers: dict[str, str]) -> None:
    by_asgi = ask(service(), "POST", path, body, headers)
    lines = [f"{name}: {value}" for name, value in headers.items()]
    assert [(200, dict(by_asgi.headers), by_asgi.content)] == requested(service(), request(path, body, *lines))


def test_a_connection_is_kept_from_answer_to_answer() -> None:
    responses = requested(service(), *[request("/filter", QUESTION)] * 3)
    assert [json.loads(body)["NodeNames"] for _, _, body in responses] == [["a1"]] * 3
    assert not any("connection" in headers for _, headers, _ in responses)


def test_a_connection_of_http_1_0_ends_with_its_answer_though_it_asks_to_be_kept() -> None:
    ((status, headers, _),) = requested(
        service(), request("/filter", QUESTION, "Connection: keep-alive", version="1.0")
    )
    assert (status, headers["connection"]) == (200, "close")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("/filter", b"", method="GET"), 405),
        (request("/nowhere", QUESTION), 404),
        (request("/filter?timeout=5s", QUESTION), 200),
        (request("/livez", b"", method="GET"), 200),
    ],
    ids=["another-method", "another-path", "a-query", "not-a-verb"],
)
def test_what_is_no_plain_question_is_answered_too(sent: bytes, status: int) -> None:
    first, second = requested(service(), sent, request("/filter", QUESTION))
    assert (status, 200) == (first[0], second[0])


def test_a_body_may_come_in_pieces() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = request("/filter", QUESTION)
        for start in range(0, len(sent), 100):
            writer.write(sent[start : start + 100])
            await writer.drain()
            await asyncio.sleep(0.001)
        assert json.loads((await read_response(reader))[2])["NodeNames"] == ["a1"]

    talk(service(), say)


def test_requests_that_do_not_wait_for_answers_are_answered_in_order() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request("/filter", QUESTION) + request("/livez", b"", method="GET") + request("/filter", b"{"))
        bodies = [(await read_response(reader))[2] for _ in range(3)]
        assert b'"NodeNames":["a1"]' in bodies[0]
        assert bodies[1] == b'"ok"'
        assert b"malformed JSON" in bodies[2]

    talk(service(), say)


def test_a_client_whose_body_is_too_large_is_not_told_to_continue() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = request("/filter", b" " * (LARGEST + 1), "Expect: 100-continue")
        writer.write(sent[: sent.index(b"\r\n\r\n") + 4])
        status, headers, body = await read_response(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert "larger than" in json.loads(body)["Error"]

    talk(service(), say)


def test_a_client_that_expects_to_be_told_to_continue_is_told() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, _, body = request("/filter", QUESTION, "Expect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read_response(reader))[0] == 200

    talk(service(), say)


@pytest.mark.parametrize(
    "sent",
    [request("/filter", QUESTION, "Connection: close"), request("/filter", QUESTION, version="1.0")],
    ids=["asked-to", "http-1.0"],
)
def test_a_connection_that_is_not_to_be_kept_is_closed(sent: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        assert (await read_response(reader))[1]["connection"] == "close"
        assert await reader.read() == b""

    talk(service(), say)


@pytest.mark.parametrize("times", [1, 3], ids=["a-little", "much"])
def test_a_body_that_is_too_large_is_refused_and_the_connection_closed(times: int) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request("/filter", b" " * (times * LARGEST + 1)))
        status, headers, body = await read_response(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert json.loads(body)["Error"] == f"body: larger than {LARGEST} bytes"
        assert await reader.read() == b""

    talk(service(), say)


def test_a_client_that_goes_on_writing_is_cut_off_before_its_end() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f"POST /filter HTTP/1.1\r\nHost: kindred\r\nContent-Length: {100 * LARGEST}\r\n\r\n"
        writer.write(head.encode() + b" " * (4 * LARGEST + 1))  # and no more, so that only a cut ends it
        # What was not read yet makes the system reset the connection, and the answer may be lost with it.
        with contextlib.suppress(ConnectionError):
            assert (await read_response(reader))[1]["connection"] == "close"
            assert await reader.read() == b""

    talk(service(), say)


def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), served(service()) as (server, port):
            async with connected(port) as (_, writer):
                writer.write(request("/filter", QUESTION)[:-10])
                await writer.drain()
            async with connected(port) as (reader, writer):
                writer.write(request("/filter", QUESTION))
                assert (await read_response(reader))[0] == 200
            while server.server_state.connections:  # noqa: ASYNC110 - uvicorn tells nobody
                await asyncio.sleep(0.01)

    asyncio.run(talked())
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_request_under_way_is_answered_when_the_server_ends() -> None:
    async def talked() -> None:
        async with asyncio.timeout(PATIENCE), served(service()) as (server, port), connected(port) as (reader, writer):
            sent = request("/filter", QUESTION)
            writer.write(sent[:-10])
            await writer.drain()
            while not server.server_state.connections:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            server.should_exit = True
            await asyncio.sleep(0.3)  # uvicorn looks for it every 0.1 s
            writer.write(sent[-10:])
            assert (await read_response(reader))[1]["connection"] == "close"

    asyncio.run(talked())


def late(responded: Callable[[], VerbResponse]) -> ExtenderApp:
    """Make an app whose `preempt` answers after a moment."""

    async def later(_: Body) -> VerbResponse:
        await asyncio.sleep(0.05)
        return responded()

    return app_of(later, reception(max_body_bytes=LARGEST))


def fails() -> VerbResponse:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("responded", "expected"),
    [(lambda: VerbResponse(b"late"), [b"late", b"late"]), (fails, [b"ZeroDivisionError", b"ZeroDivisionError"])],
    ids=["an-answer", "a-fault"],
)
def test_a_verb_may_answer_later_also_while_the_next_request_waits(
    responded: Callable[[], VerbResponse], expected: list[bytes]
) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request("/preempt", b"{}") * 2)
        bodies = [(await read_response(reader))[2] for _ in expected]
        assert all(part in body for part, body in zip(expected, bodies, strict=True))

    talk(late(responded), say)


def test_head_and_body_arrive_together() -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request("/filter", QUESTION))
        received = await reader.read(64 * 1024)
        assert received.startswith(b"HTTP/1.1 200 OK\r\n")
        assert received.endswith(b'"Error":""}')

    talk(service(), say)


@pytest.mark.parametrize(
    ("more", "outcome"), [(0, ""), (1, f"body: larger than {LARGEST} bytes")], ids=["most", "more"]
)
def test_a_body_may_be_as_large_as_it_says(more: int, outcome: str) -> None:
    body = QUESTION + b" " * (LARGEST + more - len(QUESTION))
    [(status, _, stated)] = requested(service(), request("/filter", body))
    assert (status, json.loads(stated)["Error"].partition(" (")[0]) == (200, outcome)
