"""How long a replica waits for the bindings of the decisions before it."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from app.verbs.admission import ServingState, TakeoverDelay


class Timeline:
    """What happens, with a clock that moves only in pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pending: int) -> None:
        self.now = 0.0
        self.relists: list[float] = []
        self.settling = TakeoverDelay(3.0, pending=lambda: pending, relist=self._relist, clock=lambda: self.now)
        self._sleep = asyncio.sleep
        monkeypatch.setattr("app.verbs.admission.asyncio.sleep", self._pass)

    async def _pass(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 3)
        await self._sleep(0)

    async def _relist(self) -> None:
        self.relists.append(self.now)

    async def started(self, synced: Callable[[], bool]) -> None:
        """Run the background work until it has settled."""
        work = asyncio.create_task(self.settling.after_sync(synced))
        while self.settling.problem():
            await self._sleep(0)
        assert not work.done()
        work.cancel()


def test_at_the_start_pods_that_are_pending_get_their_time_once_the_mirror_is_synced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    line = Timeline(monkeypatch, pending=2)
    assert line.settling.problem() == "waiting for earlier decisions to settle"
    asyncio.run(line.started(lambda: line.now >= 0.5))
    assert (line.now, line.relists) == (3.5, [3.5])
    assert caplog.messages == ["earlier decisions have settled in 3.0 s"]


def test_without_pending_pods_nothing_can_be_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, pending=0)
    asyncio.run(line.started(lambda: True))
    assert (line.now, line.relists) == (0.0, [])


def test_after_an_election_the_pods_are_listed_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, pending=1)
    asyncio.run(line.settling.after_election())
    assert (line.relists, line.settling.problem()) == ([0.0, 3.0], "")


def test_no_question_is_answered_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, pending=0)
    state = ServingState(settling=line.settling)
    reported = "waiting for earlier decisions to settle"
    assert (state.may_decide(), state.rejection(), state.problems()) == (False, reported, [reported])
    asyncio.run(line.started(lambda: True))
    assert (state.may_decide(), state.rejection(), state.problems()) == (True, "", [])
