"""Long bodies in chunks, with turns for others."""

import asyncio
from collections.abc import Iterable, Iterator
from time import perf_counter

from app.admin.responses import in_chunks
from app.process.long_work import LongWork

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


def test_nothing_is_no_chunk() -> None:
    assert chunks_of([]) == []


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
    turns = 0

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            until = perf_counter() + 0.001
            while perf_counter() < until:
                pass
            yield b""

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def gather() -> None:
        task = asyncio.create_task(others())
        assert [chunk async for chunk in in_chunks(pieces(), LongWork())] == []
        task.cancel()

    asyncio.run(gather())
    assert turns >= 50  # 100 ms in pieces of 1 ms


def test_a_client_that_does_not_read_on_keeps_nobody_from_the_turn() -> None:
    async def story() -> None:
        work = LongWork()
        slow = in_chunks([b"." * 64 * KIB] * 3, work)
        await anext(slow)
        assert len([chunk async for chunk in in_chunks([b"." * 64 * KIB] * 3, work)]) == 3

    asyncio.run(asyncio.wait_for(story(), 10))
