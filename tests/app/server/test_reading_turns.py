"""What is read in one round of the event loop, counted in rounds instead of in seconds."""

import asyncio
from collections.abc import Callable

from app.server.reading_turns import _BODY_SHARE, _COST_OF_A_ROUND, ReadingTurns


async def rounds(done: Callable[[], bool]) -> int:
    """Let the loop go round until it is done; give how often."""
    count = 0
    while not done():
        await asyncio.sleep(0)
        count += 1
        assert count < 1000
    return count


def test_a_round_is_over_when_its_bytes_are_read_and_the_next_one_begins() -> None:
    async def run() -> list[bool]:
        turns = ReadingTurns()
        turns.spend(_COST_OF_A_ROUND - 1, 0)
        over = [turns.over]
        turns.spend(1, 0)
        over.append(turns.over)
        await rounds(lambda: not turns.over)
        return over

    assert asyncio.run(run()) == [False, True]


def test_a_body_costs_less_than_what_is_around_it() -> None:
    async def run() -> list[bool]:
        turns = ReadingTurns()
        turns.spend(0, _BODY_SHARE * (_COST_OF_A_ROUND - 1))
        over = [turns.over]
        turns.spend(0, _BODY_SHARE)
        return [*over, turns.over]

    assert asyncio.run(run()) == [False, True]


def test_those_that_wait_take_turns_and_each_reads_once_in_a_round() -> None:
    read: list[tuple[int, str]] = []

    async def run() -> None:
        turns = ReadingTurns()
        loop_round = 0

        def reader(name: str) -> Callable[[], None]:
            def read_on() -> None:
                read.append((loop_round, name))
                turns.spend(_COST_OF_A_ROUND // 2, 0)
                turns.wait(read_on)

            return read_on

        for name in "abc":
            turns.wait(reader(name))
        while len(read) < 6:
            await asyncio.sleep(0)
            loop_round += 1

    asyncio.run(run())
    assert [name for _, name in read[:6]] == ["a", "b", "c", "a", "b", "c"]
    assert len({number for number, _ in read[:6]}) == 3


def test_a_fault_of_one_reader_does_not_stop_the_others() -> None:
    read: list[str] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        turns = ReadingTurns()
        turns.wait(lambda: next(iter(())))
        turns.wait(lambda: read.append("b"))
        await rounds(lambda: bool(read))

    asyncio.run(run())
    assert read == ["b"]
