"""Long bodies in chunks, with turns for others, and copies that those who ask meanwhile share."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from weakref import ref

import pytest
from fastapi import FastAPI, HTTPException, Response

from app.admin import responses
from app.admin.responses import MAX_READERS, SharedCopy, in_chunks, streamed
from app.process.long_work import LongWork
from app.server.ports import admin_port
from app.settings.settings import Settings
from tests.app.server.conversations import PATIENCE, connected, request, serving, until
from tests.app.short_pieces import ShortPieces

KIB = 1024


def chunks_of(pieces: Iterable[bytes]) -> list[bytes]:
    async def gather() -> list[bytes]:
        return [chunk async for chunk in in_chunks(pieces, LongWork())]

    return asyncio.run(gather())


def test_pieces_are_joined_to_chunks_that_are_worth_sending() -> None:
    pieces = [bytes([n % 256]) * KIB for n in range(200)]
    chunks = chunks_of(pieces)
    assert b"".join(chunks) == b"".join(pieces)
    assert [len(chunk) for chunk in chunks] == [64 * KIB, 64 * KIB, 64 * KIB, 8 * KIB]


def test_no_more_pieces_are_made_than_are_sent() -> None:
    made = 0

    def pieces() -> Iterator[bytes]:
        nonlocal made
        for _ in range(1000):
            made += 1
            yield b"." * KIB

    async def first() -> None:
        chunks = in_chunks(pieces(), LongWork())
        await anext(chunks)
        assert made == 64
        await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator

    asyncio.run(first())


def test_others_have_their_turns_while_pieces_are_made() -> None:
    work = ShortPieces()

    async def gather() -> None:
        assert [chunk async for chunk in in_chunks([b""] * 100, work)] == []

    asyncio.run(gather())
    assert work.gave_way >= 100


def test_a_client_that_does_not_read_on_keeps_nobody_from_the_turn() -> None:
    async def story() -> None:
        work = LongWork()
        slow = in_chunks([b"." * 64 * KIB] * 3, work)
        await anext(slow)
        assert len([chunk async for chunk in in_chunks([b"." * 64 * KIB] * 3, work)]) == 3

    asyncio.run(asyncio.wait_for(story(), 60))


def test_long_texts_are_sent_to_few_clients_at_a_time() -> None:
    """Each client that reads slowly holds what its text is made of."""

    async def story() -> None:
        work = LongWork()
        slow = [in_chunks([b"." * 64 * KIB] * 3, work) for _ in range(MAX_READERS)]
        for each in slow:
            await anext(each)
        with pytest.raises(HTTPException) as caught:
            streamed([b"{}"], work)
        assert (caught.value.status_code, caught.value.detail) == (503, "32 clients already read long texts: try again")
        await slow[0].aclose()  # type: ignore[attr-defined]  # it is a generator
        assert streamed([b"{}"], work).status_code == 200
        assert [len(chunk) async for chunk in slow[1]] == [64 * KIB] * 2
        assert work.readers == MAX_READERS - 2

    asyncio.run(asyncio.wait_for(story(), 60))


def test_clients_that_leave_in_the_middle_of_a_long_text_count_no_more() -> None:
    work, app = LongWork(), FastAPI()

    @app.get("/long")
    async def long() -> Response:
        return streamed((b"." * 64 * KIB for _ in range(1000)), work)

    async def story() -> None:
        async with serving(admin_port(Settings(admin="127.0.0.1:0"), app)) as (_, number):
            for _ in range(3):
                async with connected(number) as (reader, writer):
                    writer.write(request("/long", method="GET"))
                    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
                    await until(lambda: work.readers == 1)
                await until(lambda: work.readers == 0)

    asyncio.run(asyncio.wait_for(story(), PATIENCE))


class Copied:
    """What a copy is of here."""


class Maker:
    """Makes copies, and counts them."""

    def __init__(self, cpu_seconds: float = 0.01) -> None:
        self.made = 0
        self.at_once = 0
        self.most_at_once = 0
        self._cpu_seconds = cpu_seconds

    async def __call__(self) -> Copied:
        self.made += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        until = time.thread_time() + self._cpu_seconds
        while time.thread_time() < until:
            pass
        self.at_once -= 1
        return Copied()


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(story(), 60)

    asyncio.run(bounded())


def test_all_who_ask_meanwhile_have_the_same_copy() -> None:
    maker = Maker()

    async def story() -> None:
        shared = SharedCopy(maker)
        copies = await asyncio.gather(*(shared.get() for _ in range(8)))
        assert len(set(copies)) == 1
        assert await shared.get() is copies[0]

    run(story)
    assert maker.made == 1


def test_a_copy_is_made_again_and_released_when_it_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "_OLDEST", 0.05)
    maker = Maker()

    async def story() -> None:
        shared = SharedCopy(maker)
        first = ref(await shared.get())
        assert first() is not None
        await asyncio.sleep(0.1)
        assert first() is None
        await shared.get()

    run(story)
    assert maker.made == 2


def test_a_cheap_copy_is_made_for_each_request_and_still_one_at_a_time() -> None:
    maker = Maker(cpu_seconds=0)

    async def story() -> None:
        shared = SharedCopy(maker)
        assert len(set(await asyncio.gather(*(shared.get() for _ in range(4))))) == 4

    run(story)
    assert (maker.made, maker.most_at_once) == (4, 1)


def test_others_have_their_copy_where_the_one_who_asked_first_goes_away() -> None:
    maker = Maker()

    async def story() -> None:
        shared = SharedCopy(maker)
        first, second = (asyncio.create_task(shared.get()) for _ in range(2))
        await asyncio.sleep(0.005)
        first.cancel()
        assert isinstance(await second, Copied)

    run(story)
    assert maker.made == 2


def test_an_error_is_told_to_the_one_who_asked_and_not_kept() -> None:
    async def story() -> None:
        fails = iter([True, False])

        async def make() -> Copied:
            if next(fails):
                raise ValueError("out of order")
            return Copied()

        shared = SharedCopy(make)
        with pytest.raises(ValueError, match="out of order"):
            await shared.get()
        assert isinstance(await shared.get(), Copied)

    run(story)
