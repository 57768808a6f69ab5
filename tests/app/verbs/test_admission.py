"""One question at a time, a bounded queue, a deadline, and a bound on bytes."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from app.verbs.admission import Admission, Shed


class Asked:
    """A question, with what became of it."""

    def __init__(self, setting: "Setting", name: str = "") -> None:
        self.began: float = setting.now
        self.gone = False
        self._setting = setting
        self._name = name

    def take(self, waited: float) -> None:
        self._setting.log.append((self._name, waited))
        self._setting.now += self._setting.seconds_for_an_answer

    def reject(self, reason: Shed, waited: float) -> None:
        self._setting.log.append((self._name, reason, waited))


class Setting:
    """A queue on a clock that the answers move on."""

    def __init__(self, *, deadline: float = 100.0, queue_limit: int = 10, max_bytes: int = 100) -> None:
        self.now = 0.0
        self.seconds_for_an_answer = 1.0
        self.log: list[tuple[object, ...]] = []
        self.admission = Admission(
            deadline=deadline, queue_limit=queue_limit, max_bytes=max_bytes, clock=lambda: self.now
        )

    def enter(self, *names: str) -> None:
        for turn in [Asked(self, name) for name in names]:
            self.admission.enter(turn)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(story, 10.0))


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_who_finds_nobody_is_answered_at_once() -> None:
    async def story() -> None:
        setting = Setting()
        setting.enter("a")
        assert setting.log == [("a", 0.0)]
        await turns(2)
        setting.enter("b")
        assert setting.log == [("a", 0.0), ("b", 0.0)]
        assert setting.admission.waiting == 0

    run(story())


def test_others_wait_and_are_answered_one_a_turn_of_the_loop_in_their_order() -> None:
    async def story() -> None:
        setting = Setting()
        setting.enter("a", "b", "c")
        assert setting.log == [("a", 0.0)]
        assert setting.admission.waiting == 2
        lengths = []
        for _ in range(3):
            await turns(1)
            lengths.append(setting.admission.waiting)
            setting.log.append(("the loop looks around",))
        looks = ("the loop looks around",)
        # The queue was entered at 1.0, when the first had its answer.
        assert [("a", 0.0), ("b", 0.0), looks, ("c", 1.0), looks, looks] == setting.log
        assert lengths == [1, 0, 0]

    run(story())


def test_who_comes_while_others_wait_waits_behind_them() -> None:
    async def story() -> None:
        setting = Setting()
        setting.enter("a", "b")
        await turns(1)
        setting.enter("c")
        await turns(3)
        assert [entry[0] for entry in setting.log] == ["a", "b", "c"]

    run(story())


def test_past_the_limit_of_the_queue_nobody_waits() -> None:
    async def story() -> None:
        setting = Setting(queue_limit=2)
        setting.enter("a", "b", "c", "d", "e")
        await turns(4)
        assert setting.log[:3] == [("a", 0.0), ("d", Shed.QUEUE_FULL, 0.0), ("e", Shed.QUEUE_FULL, 0.0)]
        assert [entry[0] for entry in setting.log[3:]] == ["b", "c"]
        assert setting.admission.shed == {"deadline": 0, "queue_full": 2, "bytes": 0}

    run(story())


def test_who_has_waited_past_the_deadline_is_turned_away_and_the_next_has_its_turn() -> None:
    async def story() -> None:
        setting = Setting(deadline=1.5)
        setting.enter("a", "b", "c", "d")
        setting.now = 1.5
        late = Asked(setting, "late")
        late.began = 1.0
        setting.admission.enter(late)
        await turns(1)
        assert setting.log == [("a", 0.0), ("b", 0.5)]
        await turns(2)
        assert setting.log[2:] == [("c", Shed.DEADLINE, 1.5), ("d", Shed.DEADLINE, 1.5), ("late", 1.0)]

    run(story())


def test_a_request_that_took_too_long_to_come_has_no_turn() -> None:
    async def story() -> None:
        setting = Setting(deadline=1.0)
        slow = Asked(setting, "slow")
        setting.now = 1.1
        setting.admission.enter(slow)
        assert setting.log == [("slow", Shed.DEADLINE, 0.0)]
        setting.enter("next")
        assert setting.log[1:] == [("next", 0.0)]

    run(story())


def test_nobody_is_answered_who_has_gone() -> None:
    async def story() -> None:
        setting = Setting()
        gone = Asked(setting, "gone")
        setting.enter("a")
        setting.admission.enter(gone)
        setting.enter("b")
        gone.gone = True
        await turns(1)
        assert [entry[0] for entry in setting.log] == ["a", "b"]

    run(story())


def test_bytes_are_held_up_to_their_bound() -> None:
    admission = Setting(max_bytes=10).admission
    assert admission.hold(6)
    assert admission.hold(4)
    assert not admission.hold(1)
    admission.bytes_held -= 6
    assert admission.hold(1)
