"""Who gets the next turn, and when."""

import asyncio

import pytest

from app.eviction.eviction_queue import EvictionQueue
from core.objects.pod import Pod

A, B = (Pod(uid, "default", uid) for uid in "ab")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def taken(turns: EvictionQueue, times: int) -> list[tuple[Pod, int]]:
    async with asyncio.timeout(5):
        return [(turn.pod, turn.had) for turn in [await turns.take() for _ in range(times)]]


def test_the_pod_that_is_due_first_comes_first() -> None:
    clock = Clock()
    turns = EvictionQueue(clock)
    turns.put(A, 5.0)
    turns.put(B, 1.0, had=2)
    clock.now += 5.0
    assert asyncio.run(taken(turns, 2)) == [(B, 2), (A, 0)]


def test_nobody_comes_before_it_is_due() -> None:
    clock = Clock()
    turns = EvictionQueue(clock)
    turns.put(A, 0.05)

    async def waited() -> bool:
        try:
            async with asyncio.timeout(0.02):
                await turns.take()
        except TimeoutError:
            return turns.waits("a")
        return False

    assert asyncio.run(waited())
    clock.now += 0.05
    assert asyncio.run(taken(turns, 1)) == [(A, 0)]
    assert not turns.waits("a")


def test_a_pod_that_comes_while_nobody_waits_or_another_does_is_noticed() -> None:
    async def main() -> list[tuple[Pod, int]]:
        turns = EvictionQueue(asyncio.get_running_loop().time)
        taking = asyncio.create_task(taken(turns, 2))
        await asyncio.sleep(0)
        turns.put(A, 0.05)
        await asyncio.sleep(0)
        turns.put(B, 0.0)
        return await taking

    assert asyncio.run(main()) == [(B, 0), (A, 0)]


def test_a_pod_that_comes_again_is_the_newer_one_and_does_not_lose_its_place() -> None:
    clock = Clock()
    turns = EvictionQueue(clock)
    turns.put(A, 1.0, had=3)
    turns.put(B, 2.0)
    turns.put(Pod("a", "default", "newer"), 10.0)
    turns.put(B, 0.5)
    clock.now += 10.0
    assert [(pod.name, had) for pod, had in asyncio.run(taken(turns, 2))] == [("b", 0), ("newer", 0)]


def test_a_pod_that_comes_again_for_a_later_turn_keeps_the_earlier_one() -> None:
    clock = Clock()
    turns = EvictionQueue(clock)
    turns.put(A, 1.0)
    turns.put(B, 2.0)
    turns.put(A, 10.0)
    clock.now += 2.0
    assert asyncio.run(taken(turns, 2)) == [(A, 0), (B, 0)]


def test_a_pod_that_is_put_back_comes_later_and_none_that_does_not_wait_comes_at_all() -> None:
    clock = Clock()
    turns = EvictionQueue(clock)
    turns.put(A, 1.0, had=3)
    turns.put(B, 2.0)
    turns.put_back("a", clock.now + 3.0)
    turns.put_back("b", clock.now)
    turns.put_back("unknown", clock.now)
    clock.now += 10.0
    assert asyncio.run(taken(turns, 2)) == [(B, 0), (A, 3)]
    assert not turns.waits("unknown")


def test_a_thousand_pods_can_wait_and_one_that_waits_already_is_no_more() -> None:
    turns = EvictionQueue(Clock())
    pods = [Pod(str(number), "default", "p") for number in range(1001)]
    assert all(turns.put(pod, 1.0) for pod in pods[:1000])
    assert not turns.put(pods[1000], 1.0)
    assert turns.put(pods[0], 1.0)
    assert not turns.waits("1000")


@pytest.mark.parametrize("uid", ["a", "b"])
def test_who_waits_is_known(uid: str) -> None:
    turns = EvictionQueue(Clock())
    turns.put(A, 1.0)
    assert turns.waits(uid) == (uid == "a")
