"""When a pod that no node was left for gets its turn, and its further ones."""

import asyncio
from collections.abc import Iterator

import pytest

from app.verbs.evictor import QueuedPod, UnschedulablePods
from app.verbs.executor import EvictionOutcome, EvictionResult
from core.objects.pod import Pod
from tests.builders import make_node
from tests.core.decoded import mirror_of

A, B = (Pod(uid, "default", uid) for uid in "ab")


class Waiting:
    """Pods of a cluster of two nodes, at a time that stands until it is set."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.now = 100.0
        self.outcomes: list[EvictionOutcome] = []
        mirror = mirror_of(make_node("n1"), make_node("n2"))
        self.pods = UnschedulablePods(mirror, lambda: self.now, self.outcomes.append)

    def turn_within(self, seconds: float) -> QueuedPod | None:
        """Take the turn that is due in so many seconds, if one is."""
        self.now += seconds

        async def take() -> QueuedPod | None:
            taking = asyncio.create_task(self.pods.take())
            await asyncio.sleep(0)
            if taking.done():
                return taking.result()
            taking.cancel()
            return None

        return self._runner.run(take())


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    with asyncio.Runner() as runner:
        yield Waiting(runner)


@pytest.mark.parametrize(("nodes", "pause"), [(2, 0.2), (1, 1.0)], ids=["all-nodes", "some-nodes"])
def test_the_pause_is_longer_where_kube_scheduler_refused_nodes_itself(
    waiting: Waiting, nodes: int, pause: float
) -> None:
    waiting.pods.add(A, nodes)
    assert waiting.turn_within(pause - 0.01) is None
    turn = waiting.turn_within(0.02)
    assert turn is not None
    assert (turn.pod, turn.had) == (A, 0)


def test_a_pod_has_four_turns_with_longer_and_longer_pauses(waiting: Waiting) -> None:
    waiting.pods.add(A, 2)
    turn = waiting.turn_within(0.21)
    for pause in (0.4, 0.8, 1.6):
        assert turn is not None
        assert waiting.pods.retry(turn)
        assert waiting.turn_within(pause - 0.01) is None
        turn = waiting.turn_within(0.02)
    assert turn is not None
    assert not waiting.pods.retry(turn)
    assert waiting.turn_within(100.0) is None


def test_with_too_many_pods_waiting_none_is_tried_again(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting.pods.add(A, 2)
    turn = waiting.turn_within(0.21)
    assert turn is not None
    monkeypatch.setattr("app.verbs.evictor._MAX_WAITING", 0)
    assert not waiting.pods.retry(turn)
    assert waiting.turn_within(100.0) is None


def test_a_pod_that_waits_already_is_not_tried_again_besides(waiting: Waiting) -> None:
    waiting.pods.add(A, 2)
    turn = waiting.turn_within(0.21)
    assert turn is not None
    waiting.pods.add(A, 2)
    assert not waiting.pods.retry(turn)
    assert waiting.turn_within(0.21) is not None
    assert waiting.turn_within(100.0) is None


@pytest.mark.parametrize("before", [True, False], ids=["asked-before", "asked-after"])
def test_a_pod_that_rests_has_no_turn_however_often_it_is_asked_about(waiting: Waiting, before: bool) -> None:  # noqa: FBT001 - a case
    if before:
        waiting.pods.add(A, 2)
    waiting.pods.rest("a", 5.0)
    if not before:
        waiting.pods.add(A, 2)
    assert waiting.turn_within(4.9) is None
    assert waiting.turn_within(0.2) is not None


def test_a_pod_for_which_there_is_no_room_is_told_as_dropped(waiting: Waiting) -> None:
    for number in range(1001):
        waiting.pods.add(Pod(str(number), "default", "p"), 2)
    assert waiting.outcomes == [EvictionOutcome(EvictionResult.DROPPED)]


def test_the_pod_that_is_due_first_comes_first(waiting: Waiting) -> None:
    waiting.pods.add(A, 1)
    waiting.pods.add(B, 2)
    turns = [waiting.turn_within(seconds) for seconds in (1.0, 0.0)]
    assert [turn.pod for turn in turns if turn is not None] == [B, A]


def test_a_pod_that_comes_again_is_the_newer_one_and_does_not_lose_its_place(waiting: Waiting) -> None:
    waiting.pods.add(A, 2)
    waiting.now += 0.1
    waiting.pods.add(Pod("a", "default", "newer"), 2)
    turn = waiting.turn_within(0.11)
    assert turn is not None
    assert turn.pod.name == "newer"


def test_a_pod_that_comes_again_for_an_earlier_turn_has_that(waiting: Waiting) -> None:
    waiting.pods.add(A, 1)
    waiting.pods.add(A, 2)
    assert waiting.turn_within(0.21) is not None


def test_a_pod_that_comes_while_nobody_waits_or_another_does_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.verbs.evictor._PAUSE", 0.0)
    monkeypatch.setattr("app.verbs.evictor._LONGER_PAUSE", 0.05)

    async def main() -> list[Pod]:
        mirror = mirror_of(make_node("n1"), make_node("n2"))
        pods = UnschedulablePods(mirror, asyncio.get_running_loop().time, lambda _: None)

        async def two() -> list[Pod]:
            return [(await pods.take()).pod for _ in range(2)]

        taking = asyncio.create_task(two())
        await asyncio.sleep(0)
        pods.add(A, 1)
        await asyncio.sleep(0)
        pods.add(B, 2)
        async with asyncio.timeout(60):
            return await taking

    assert asyncio.run(main()) == [B, A]


def test_one_that_waits_already_is_no_more(waiting: Waiting) -> None:
    for number in range(1000):
        waiting.pods.add(Pod(str(number), "default", "p"), 2)
    waiting.pods.add(Pod("0", "default", "p"), 2)
    assert not waiting.outcomes
