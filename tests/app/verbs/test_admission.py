"""One question at a time, a bounded queue, a deadline, and a bound on bytes."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from app.feeds.freshness import Freshness, ResourceState
from app.objects.resources import RESOURCES
from app.server.exchange import begin
from app.verbs.admission import Admission, ServingState, Shed
from core.objects.node import Node
from core.objects.pod import Pod
from tests.virtual_time import run_in_virtual_time


class Setting:
    """A queue on a clock that the answers move on."""

    def __init__(self, *, deadline: float = 100.0, queue_limit: int = 10, max_bytes: int = 100) -> None:
        self.now = 0.0
        self.seconds_for_an_response = 1.0
        self.log: list[tuple[object, ...]] = []
        self.left: set[str] = set()
        self.admission = Admission(
            deadline=deadline, queue_limit=queue_limit, max_bytes=max_bytes, clock=lambda: self.now
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def enter(self, *names: str, began: float | None = None) -> None:
        """Let requests come, each before any other task has its step."""
        started = self.now if began is None else began
        for name in names:
            begin(self._ask(name, started), self._keep)

    def _keep(self, rest: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(rest))

    async def _ask(self, name: str, began: float) -> None:
        turn = self.admission.enter(began) or await self.admission.wait(began, lambda: name in self.left)
        if turn is None:
            self.log.append((name, "left"))
        elif turn.shed is not None:
            self.log.append((name, turn.shed, turn.waited))
        else:
            self.log.append((name, turn.waited))
            self.now += self.seconds_for_an_response


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10.0))


async def turns(count: int) -> None:
    """Let so many requests have their turn. Each turn is told in one round of the loop, and taken in the next."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_who_finds_nobody_is_answered_at_once() -> None:
    async def story() -> None:
        setting = Setting()
        await setting.enter("a")
        assert setting.log == [("a", 0.0)]
        await turns(2)
        await setting.enter("b")
        assert setting.log == [("a", 0.0), ("b", 0.0)]
        assert setting.admission.waiting == 0

    run(story())


def test_others_wait_and_are_answered_one_a_round_of_the_loop_in_their_order() -> None:
    async def story() -> None:
        setting = Setting()
        await setting.enter("a", "b", "c")
        assert setting.log == [("a", 0.0)]
        assert setting.admission.waiting == 2
        looks = ("the loop looks around",)
        for _ in range(6):
            await turns(1)
            setting.log.append(looks)
        # The queue was entered at 1.0, when the first had its answer.
        assert [entry for entry in setting.log if entry != looks] == [("a", 0.0), ("b", 0.0), ("c", 1.0)]
        assert looks in setting.log[setting.log.index(("b", 0.0)) : setting.log.index(("c", 1.0))]
        assert setting.admission.waiting == 0

    run(story())


def test_who_comes_while_others_wait_waits_behind_them() -> None:
    async def story() -> None:
        setting = Setting()
        await setting.enter("a", "b")
        await turns(1)
        await setting.enter("c")
        await turns(3)
        assert [entry[0] for entry in setting.log] == ["a", "b", "c"]

    run(story())


def test_past_the_limit_of_the_queue_nobody_waits() -> None:
    async def story() -> None:
        setting = Setting(queue_limit=2)
        await setting.enter("a", "b", "c", "d", "e")
        await turns(4)
        assert setting.log[:3] == [("a", 0.0), ("d", Shed.QUEUE_FULL, 0.0), ("e", Shed.QUEUE_FULL, 0.0)]
        assert [entry[0] for entry in setting.log[3:]] == ["b", "c"]
        assert setting.admission.shed == {"deadline": 0, "queue_full": 2, "bytes": 0}

    run(story())


def test_who_has_waited_past_the_deadline_is_turned_away_and_the_next_has_its_turn() -> None:
    async def story() -> None:
        setting = Setting(deadline=1.5)
        await setting.enter("a", "b", "c", "d")
        setting.now = 1.5
        await setting.enter("late", began=1.0)
        while len(setting.log) < 2:
            await turns(1)
        assert setting.log == [("a", 0.0), ("b", 0.5)]
        await turns(3)
        assert setting.log[2:] == [("c", Shed.DEADLINE, 1.5), ("d", Shed.DEADLINE, 1.5), ("late", 1.0)]

    run(story())


def test_a_request_that_took_too_long_to_come_has_no_turn() -> None:
    async def story() -> None:
        setting = Setting(deadline=1.0)
        setting.now = 1.1
        await setting.enter("slow", began=0.0)
        assert setting.log == [("slow", Shed.DEADLINE, 0.0)]
        await setting.enter("next")
        assert setting.log[1:] == [("next", 0.0)]

    run(story())


def test_nobody_is_answered_who_has_gone() -> None:
    async def story() -> None:
        setting = Setting()
        await setting.enter("a", "gone", "b")
        setting.left.add("gone")
        await turns(2)
        assert [entry for entry in setting.log if entry[0] == "gone"] == [("gone", "left")]
        assert [entry[0] for entry in setting.log if entry[0] != "gone"] == ["a", "b"]

    run(story())


def test_bytes_are_held_up_to_their_bound() -> None:
    admission = Setting(max_bytes=10).admission
    assert admission.buffer(6)
    assert admission.buffer(4)
    assert not admission.buffer(1)
    admission.buffered_bytes -= 6
    assert admission.buffer(1)


# Readiness.


def test_each_change_of_the_readiness_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    states = [ResourceState(RESOURCES[kind]) for kind in (Node, Pod)]

    async def story() -> list[list[str]]:
        clock = asyncio.get_running_loop().time
        state = ServingState(freshness=Freshness(states, 60.0, clock))
        logging_it = asyncio.create_task(state.log_readiness())
        found = []
        for completes in (False, True, False, False):
            caplog.clear()
            for each in states if completes else ():
                each.complete(clock())
            await asyncio.sleep(50.0)
            found.append(caplog.messages)
        logging_it.cancel()
        return found

    assert run_in_virtual_time(story()) == [
        [],
        ["ready"],
        ["not ready: nodes: stale for 61 s; and 1 more (kindred status)"],
        [],
    ]
