"""How long a replica waits for the bindings of the decisions before it, and what the one before tells it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import count

import pytest

from app.verbs import effects
from app.verbs.admission import ServingState, Takeover
from tests.app.verbs.receptions import effects_over
from tests.builders import make_pod
from tests.core.decoded import pod_of
from tests.core.gangs.gang_setting import GangSetting, member, node

ENDS = 3.0
"""Seconds until a binding has ended."""


class Timeline:
    """What happens, with a clock that moves only in pauses. It begins at 100."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, undecided: Mapping[str, float], marks_take: float = 0.0
    ) -> None:
        """`undecided`: pod -> time at which it is bound. A mark is shown after `marks_take` seconds."""
        self.now = 100.0
        self.marks: list[float] = []
        self.bound_at = dict(undecided)
        self._marks_take = marks_take
        self.others_led_until: list[float] = []
        self.takeover = Takeover(ENDS, undecided=self._undecided, catch_up=self._catch_up, clock=lambda: self.now)
        self.takeover.before_first_decision(self.others_led_until.append)
        self._sleep = asyncio.sleep
        monkeypatch.setattr("app.verbs.admission.asyncio.sleep", self._pass)

    async def _pass(self, seconds: float) -> None:
        self.now = round(self.now + seconds, 3)
        await self._sleep(0)

    def _undecided(self) -> set[str]:
        return {name for name, at in self.bound_at.items() if self.now < at}

    async def _catch_up(self) -> None:
        self.marks.append(self.now)
        await self._pass(self._marks_take)

    async def started(self, synced: Callable[[], bool]) -> None:
        """Run the background work until it has settled."""
        work = asyncio.create_task(self.takeover.after_sync(synced))
        while self.takeover.problem():
            await self._sleep(0)
        assert not work.done()
        work.cancel()


NEVER = {"refused": float("inf")}


def test_at_the_start_the_time_counts_from_the_start_and_not_from_the_sync(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    line = Timeline(monkeypatch, NEVER)
    assert line.takeover.problem() == "waiting for earlier decisions to settle"
    asyncio.run(line.started(lambda: line.now >= 102))
    assert (line.now, line.marks, line.others_led_until) == (103, [103], [100])
    assert caplog.messages == ["earlier decisions have settled in 1.0 s"]


def test_a_sync_that_takes_longer_than_bindings_is_followed_by_a_mark_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have read the pods at its beginning."""
    line = Timeline(monkeypatch, NEVER)
    asyncio.run(line.started(lambda: line.now >= 110))
    assert (line.now, line.marks) == (110, [110])


def test_without_pods_that_can_be_bound_nothing_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, {})
    asyncio.run(line.started(lambda: True))
    assert (line.now, line.marks) == (100, [])


@pytest.mark.parametrize(
    ("undecided", "last_decision", "marks_take", "ends", "marks"),
    [
        pytest.param({}, 99.0, 0.0, 100.0, [100], id="no pod"),
        pytest.param(NEVER, 99.0, 0.0, 102.0, [100, 102], id="a pod that may be bound"),
        pytest.param(NEVER, 99.0, 0.5, 102.5, [100, 102], id="a watch that is late"),
        pytest.param(NEVER, 97.0, 0.5, 100.5, [100], id="the mark is late enough"),
        pytest.param(NEVER, 97.5, 0.6, 101.2, [100, 100.6], id="it was not late enough, though it took so long"),
        pytest.param(NEVER, float("-inf"), 0.0, 100.0, [100], id="nothing is under way"),
        pytest.param({"a": 100.35, "b": 101.0}, 99.0, 0.0, 101.0, [100], id="all are bound before"),
        pytest.param({"a": 100.35, **NEVER}, 99.0, 0.0, 102.0, [100, 102], id="one is bound before"),
    ],
)
def test_a_new_leader_waits_until_bindings_of_the_last_decisions_have_ended(  # noqa: PLR0913, PLR0917  # a table
    monkeypatch: pytest.MonkeyPatch,
    undecided: dict[str, float],
    last_decision: float,
    marks_take: float,
    ends: float,
    marks: list[float],
) -> None:
    line = Timeline(monkeypatch, undecided, marks_take)
    asyncio.run(line.takeover.after(last_decision, 99.5))
    assert [line.now, *line.marks] == pytest.approx([ends, *marks])
    assert line.others_led_until == [99.5]
    assert line.takeover.problem() == ""


def test_a_pod_that_is_made_after_the_mark_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, {"a": 100.35})

    async def story() -> None:
        taking_over = asyncio.create_task(line.takeover.after(99.0, 99.5))
        while line.now < 100.2:
            await line._sleep(0)  # noqa: SLF001 - the one that takes no time
        line.bound_at |= NEVER
        await taking_over

    asyncio.run(story())
    assert [line.now, *line.marks] == pytest.approx([100.4, 100])


def test_no_question_is_answered_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(monkeypatch, {})
    state = ServingState(settling=line.takeover)
    reported = "waiting for earlier decisions to settle"
    assert (state.may_decide(), state.rejection(), state.problems()) == (False, reported, [reported])
    asyncio.run(line.started(lambda: True))
    assert (state.may_decide(), state.rejection(), state.problems()) == (True, "", [])


# The end of the one before.


def test_a_replica_that_ends_waits_for_the_bindings_of_its_decisions_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effects, "_LOOKS_EVERY", 0.0)
    setting, now = GangSetting(node("n0")), count(step=0.4)
    made = effects_over(setting.mirror, lambda: next(now))
    assert asyncio.run(made.have_landed())
    setting.mirror.assume(pod_of(make_pod("p")), "n0", 0.0)
    assert not asyncio.run(made.have_landed())
    assert next(now) == pytest.approx(2.0)
    setting.see(make_pod("p").on("n0"))
    assert asyncio.run(made.have_landed())


def test_a_reserved_place_is_no_decision_whose_binding_is_under_way() -> None:
    setting = GangSetting(node("n0"))
    setting.see(member("a"), member("b"))
    setting.ask(member("a"))
    made = effects_over(setting.mirror, lambda: 0.0, gangs=setting.gangs)
    setting.see(member("a").on("n0"))
    assert setting.assumed() == {"b"}
    assert asyncio.run(made.have_landed())


def test_the_next_leader_learns_a_binding_that_waits_from_its_nomination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_LANDS", 0.0)
    for scheduler, learned in (("waits", True), ("kindred", False)):
        setting = GangSetting(node("n0"))
        pod = make_pod("p").scheduler(scheduler).nominated("n0")
        setting.see(pod)
        setting.mirror.assume(pod_of(pod), "n0", 0.0)
        made = effects_over(setting.mirror, lambda: 0.0, waiting_schedulers=frozenset({"waits"}))
        assert asyncio.run(made.have_landed()) is learned
