"""`GET /events`: the state of the mirror whenever it changes, to as many clients as may be, until the process ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI

from app.admin import cluster_routes
from app.admin.access import is_reading
from app.admin.cluster_routes import events_router
from app.explain.explainer import MirrorState
from app.server.port import Refusal
from app.server.ports import Port, admin_port
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings
from app.verbs.admission import ServingState
from tests.app.server.conversations import PATIENCE, answer, connected, request, serving, until

GET = request("/events", method="GET")


class Source:
    """A mirror's state that a test changes, and how often it was looked at."""

    def __init__(self) -> None:
        self.generation = 1
        self.looks = 0
        self.text = "fresh"

    def __call__(self) -> MirrorState:
        self.looks += 1
        return MirrorState(self.generation, 3, 5, self.text, ())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "_TICK", 0.01)


@asynccontextmanager
async def served(source: Source, state: ServingState, limits: Limits = DEFAULTS) -> AsyncIterator[tuple[Port, int]]:
    app = FastAPI()
    app.include_router(events_router(source, state))
    port = admin_port(Settings(admin="127.0.0.1:0"), app, limits, is_reading=is_reading)
    async with serving(port) as (_, number):
        yield port, number


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await story()

    asyncio.run(bounded())


async def begun(reader: asyncio.StreamReader) -> str:
    """Read the head of a stream, and give its type."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert head.startswith("HTTP/1.1 200 ")
    assert "transfer-encoding: chunked" in head.lower()
    return next(line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("content-type"))


async def chunk(reader: asyncio.StreamReader) -> bytes:
    """Read what was sent at once; nothing at the end of the stream."""
    size = int(await reader.readline(), 16)
    text = await reader.readexactly(size)
    await reader.readline()
    return text


async def event(reader: asyncio.StreamReader) -> Any:  # noqa: ANN401  # decoded JSON
    text = await chunk(reader)
    assert text.startswith(b"data: ")
    assert text.endswith(b"\n\n")
    return json.loads(text.removeprefix(b"data: "))


def test_the_state_comes_at_once_and_again_when_it_has_changed() -> None:
    async def story() -> None:
        source = Source()
        async with served(source, ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            assert await begun(reader) == "text/event-stream; charset=utf-8"
            assert await event(reader) == {"generation": 1, "nodes": 3, "pods": 5, "standing": "fresh", "problems": []}
            looks = source.looks
            await until(lambda: source.looks > looks + 2)
            source.generation = 7
            assert (await event(reader))["generation"] == 7

    run(story)


def test_the_state_is_looked_at_once_in_five_ticks_however_often_it_changes() -> None:
    async def story() -> None:
        source = Source()
        async with served(source, ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            for generation in range(2, 200):
                source.generation = generation
                await asyncio.sleep(0.001)
            assert source.looks < 198 / 5

    run(story)


def test_a_comment_is_sent_where_nothing_changes_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "_SILENCE", 3)

    async def story() -> None:
        async with served(Source(), ServingState()) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            await event(reader)
            assert [await chunk(reader), await chunk(reader)] == [b": nothing has changed\n\n"] * 2

    run(story)


def test_the_streams_end_when_the_process_is_about_to_and_no_other_begins() -> None:
    async def story() -> None:
        state = ServingState()
        async with served(Source(), state) as (_, number), connected(number) as (reader, writer):
            writer.write(GET)
            await begun(reader)
            await event(reader)
            state.draining = True
            assert await chunk(reader) == b""
            writer.write(GET)
            status, _, body = await answer(reader)
            assert (status, json.loads(body)) == (503, {"detail": "the service is ending"})

    run(story)


def test_a_client_more_than_may_be_is_refused_until_another_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_routes, "MAX_FOLLOWERS", 1)

    async def story() -> None:
        async with served(Source(), ServingState()) as (port, number):
            async with connected(number) as (reader, writer):
                writer.write(GET)
                await begun(reader)
                await event(reader)
                async with connected(number) as (second, asking):
                    asking.write(GET)
                    assert (await answer(second))[0] == 503
            await until(lambda: not port.connections.connections)
            async with connected(number) as (reader, writer):
                writer.write(GET)
                await begun(reader)

    run(story)


def test_a_client_that_reads_nothing_is_closed() -> None:
    async def story() -> None:
        source = Source()
        source.text = "x" * 1_000_000
        limits = Limits(read_timeout=0.2)
        async with served(source, ServingState(), limits) as (port, number), connected(number) as (_, writer):
            writer.write(GET)
            while not port.connections.refused[Refusal.ANSWER_NOT_TAKEN]:
                source.generation += 1
                await asyncio.sleep(0.05)
            await until(lambda: not port.connections.connections)

    run(story)
