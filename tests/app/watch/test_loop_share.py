"""Turns on the event loop."""

import asyncio

import pytest

from app.watch import stream as stream_module
from app.watch.stream import LoopShare


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock as a list of one."""
    now = [100.0]
    monkeypatch.setattr(stream_module, "perf_counter", lambda: now[0])
    return now


def test_a_turn_is_over_after_a_few_milliseconds(clock: list[float]) -> None:
    async def take_turns() -> None:
        turns = LoopShare()
        assert turns.over  # nobody knows how long others have waited
        await turns.give_way()
        for milliseconds, over in ((0.0, False), (4.9, False), (5.1, True), (60.0, True)):
            clock[0] = 100.0 + milliseconds / 1000
            assert turns.over is over
        await turns.give_way()
        assert not turns.over

    asyncio.run(take_turns())


def test_the_others_run_once_before_the_next_turn_begins(clock: list[float]) -> None:
    seen = []

    async def other() -> None:
        for step in range(3):
            seen.append(step)
            clock[0] += 1.0
            await asyncio.sleep(0)

    async def take_turns() -> None:
        turns = LoopShare()
        running = asyncio.create_task(other())
        for step in range(3):
            assert seen == list(range(step))
            await turns.give_way()
            assert not turns.over  # what the others took is not of this turn
        await running

    asyncio.run(take_turns())
