"""More questions than can be answered, over real connections: who waits, who is turned away, and who is not held up."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from app.objects.decode import Body
from app.server.ports import extender_port
from app.settings.settings import Settings
from app.verbs.admission import Admission
from app.verbs.request import VerbResponse
from tests.app.server.conversations import PATIENCE, Connection, connected, read_response, request, serving, until
from tests.app.verbs.receptions import app_of, reception

EMPTY: Final = b'{"NodeNameToMetaVictims":{}}'


class Slow:
    """An app whose verb holds the loop for a while."""

    def __init__(self, seconds: float, **bounds: float) -> None:
        self.requested: list[bytes] = []
        self._seconds = seconds
        limits = {"deadline": 60.0, "queue_limit": 100, "max_bytes": 10**6, **bounds}
        self.admission = Admission(clock=time.monotonic, **limits)  # type: ignore[arg-type]  # by their names
        self.app = app_of(self._response, reception(admission=self.admission))

        @self.app.get("/livez")
        async def livez() -> str:
            return "ok"

    def _response(self, body: Body) -> VerbResponse:
        time.sleep(self._seconds)
        self.requested.append(bytes(body))
        return VerbResponse(EMPTY)

    @property
    def is_idle(self) -> bool:
        return (self.admission.in_flight, self.admission.waiting, self.admission.buffered_bytes) == (0, 0, 0)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, PATIENCE))


def port_of(slow: Slow) -> Any:  # noqa: ANN401 - a Port
    return extender_port(Settings(listen="127.0.0.1:0"), slow.app)


@asynccontextmanager
async def crowd(port: int, count: int) -> AsyncIterator[list[Connection]]:
    """Connect so many times."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connected(port)) for _ in range(count)]


async def shed(connection: Connection) -> str:
    """Read an answer; give why the question was shed, or nothing."""
    status, headers, text = await read_response(connection[0])
    assert status == 200
    reason = headers.get("kindred-shed", "")
    assert json.loads(text).get("Error", "").startswith("shed: ") == bool(reason)
    return reason


async def ask_at_once(connections: list[Connection]) -> list[str]:
    """Ask once by each, all before any is answered, as they are in one loop with the server."""
    for _, writer in connections:
        writer.write(request("/preempt", b"{}"))
    return await asyncio.gather(*map(shed, connections))


def test_who_finds_the_queue_full_is_turned_away_while_the_others_are_answered() -> None:
    async def story() -> None:
        slow = Slow(0.2, queue_limit=3)
        async with serving(port_of(slow)) as (_, port), crowd(port, 12) as connections:
            reasons = await ask_at_once(connections)
        assert set(reasons) == {"", "queue_full"}
        assert reasons.count("") == len(slow.requested)
        assert slow.admission.shed["queue_full"] == reasons.count("queue_full")
        assert slow.is_idle

    run(story())


def test_who_waits_too_long_is_turned_away() -> None:
    async def story() -> None:
        slow = Slow(0.2, deadline=0.5)
        async with serving(port_of(slow)) as (_, port), crowd(port, 8) as connections:
            reasons = await ask_at_once(connections)
        assert set(reasons) == {"", "deadline"}
        assert reasons.count("") == len(slow.requested)
        assert len(slow.requested) <= 4
        assert slow.is_idle

    run(story())


def test_a_flood_of_questions_does_not_hold_up_what_is_no_question() -> None:
    async def story() -> None:
        slow = Slow(0.05)
        async with serving(port_of(slow)) as (_, port), crowd(port, 30) as connections, connected(port) as prober:
            questions = asyncio.create_task(ask_at_once(connections))
            await until(lambda: slow.admission.waiting > 25)
            prober[1].write(request("/livez", method="GET"))
            assert (await read_response(prober[0]))[2] == b'"ok"'
            assert slow.admission.waiting > 5, "it did not wait for the queue"
            assert await questions == [""] * 30

    run(story())


def test_who_brings_too_many_bytes_is_turned_away_and_keeps_its_connection() -> None:
    async def story() -> None:
        slow = Slow(0.0, max_bytes=150_000)
        body = b'"%s"' % (b"a" * 99_998)
        whole = request("/preempt", body)
        async with serving(port_of(slow)) as (_, port), connected(port) as first, connected(port) as second:
            first[1].write(whole[:-1])
            await until(lambda: slow.admission.buffered_bytes == len(body) - 1)
            second[1].write(whole)
            _, headers, _ = await read_response(second[0])
            assert headers["kindred-shed"] == "bytes"
            assert slow.admission.buffered_bytes == len(body) - 1
            first[1].write(whole[-1:])
            assert (await read_response(first[0]))[2] == EMPTY
            second[1].write(whole)
            assert (await read_response(second[0]))[2] == EMPTY
        assert slow.requested == [body, body]
        assert slow.is_idle

    run(story())


def test_who_goes_away_while_it_waits_is_not_asked_for() -> None:
    async def story() -> None:
        slow = Slow(0.1)
        async with serving(port_of(slow)) as (_, port), crowd(port, 12) as connections:
            questions = asyncio.create_task(ask_at_once(connections[:-1]))
            await asyncio.sleep(0)  # until they have asked
            connections[-1][1].write(request("/preempt", b'"gone"'))
            await until(lambda: slow.admission.waiting > 8)
            connections[-1][1].transport.abort()
            assert await questions == [""] * 11
            await until(lambda: slow.is_idle)
        assert slow.requested == [b"{}"] * 11

    run(story())


def test_who_goes_away_before_its_request_is_complete_leaves_nothing_behind() -> None:
    async def story() -> None:
        slow = Slow(0.0)
        async with serving(port_of(slow)) as (_, port):
            async with connected(port) as (_, writer):
                writer.write(request("/preempt", b'"gone"')[:-1])
                await until(lambda: (slow.admission.in_flight, slow.admission.buffered_bytes) == (1, 5))
            await until(lambda: slow.is_idle)
        assert slow.requested == []

    run(story())
