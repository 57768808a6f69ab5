"""How often pods get their turns where plans take long; whom they evict is in test_evicting.py."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from app.verbs.effects import RejectedNodes
from app.verbs.evictor import Evaluator, Evictor, UnschedulablePods
from app.verbs.executor import EvictionApi, EvictionOutcome, EvictionResult, Executor, Plan, Preemptions
from core.objects.pod import Pod, Waiting
from tests.builders import make_node, make_pod
from tests.core.decoded import mirror_of

PLAN_TAKES: Final = 0.05  # seconds
A, B = (Pod(uid, "default", uid) for uid in "ab")


class AllRejected(RejectedNodes):
    """What is remembered of a cluster where every pod was refused on one node."""

    def all_of_last_filter(self, pod: Pod) -> list[str]:
        assert pod.uid
        return ["n1"]


class AllGivenUp(EvictionApi):
    """An API server that has every pod, given up by its scheduler, and what it was asked."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    async def read(self, pod: Pod) -> Pod | None:
        self.requested.append("read")
        return replace(pod, scheduler_name="mine", waiting=Waiting(reason="Unschedulable"))

    async def nominate(self, pod: Pod, node: str) -> bool:
        self.requested.append(f"nominate {pod.name} {node}")
        return True

    async def evict(self, victim: Pod, scheduler_name: str, needed: Callable[[], bool] = lambda: True) -> bool:
        self.requested.append(f"evict {victim.name} for {scheduler_name}")
        return needed()

    async def create_event(self, namespace: str, event: Mapping[str, Any]) -> None:
        self.requested.append(f"event {namespace}/{event['regarding']['name']}")


class Slow(Evaluator):
    """One that has its plan, or none, and takes its time for it."""

    def __init__(self, result: Plan | EvictionResult) -> None:
        self._result = result
        self.looked_at: list[tuple[str, float]] = []

    async def plan(self, pod: Pod, names: Sequence[str], going: Mapping[str, object]) -> Plan | EvictionResult:
        assert (names, going) == (["n1"], {})
        self.looked_at.append((pod.uid, asyncio.get_running_loop().time()))
        await asyncio.sleep(PLAN_TAKES)
        return self._result


async def turns(result: EvictionResult, *requested: Pod, number: int) -> list[tuple[str, float]]:
    """Ask about pods without end; give who got the first turns, and the seconds since the turn before."""
    mirror = mirror_of(make_node("n1"))
    evaluator = Slow(result)
    clock = asyncio.get_running_loop().time
    outcomes: list[EvictionOutcome] = []
    pods = UnschedulablePods(mirror, clock, outcomes.append)
    api = AllGivenUp()
    preemptions = Preemptions(mirror, clock)
    evictor = Evictor(
        pods,
        preemptions,
        evaluator,
        AllRejected(mirror, clock),
        Executor(api, preemptions, mirror, lambda: True),
        clock=clock,
        observe=outcomes.append,
    )
    running = asyncio.create_task(evictor.run())
    async with asyncio.timeout(60):
        while len(evaluator.looked_at) < number:
            for pod in requested:
                pods.add(pod, 1)
            await asyncio.sleep(0.01)
    running.cancel()
    times = [time for _, time in evaluator.looked_at]
    return [(uid, times[at] - times[at - 1] if at else 0.0) for at, (uid, _) in enumerate(evaluator.looked_at)][:number]


def test_after_a_plan_as_much_time_is_left_to_others() -> None:
    (first, _), (second, between) = asyncio.run(turns(EvictionResult.FITS, A, B, number=2))
    assert {first, second} == {"a", "b"}
    assert between >= 2 * PLAN_TAKES


def test_a_pod_without_candidates_rests_for_ten_times_as_long_as_its_plan_took() -> None:
    assert all(
        between >= 11 * PLAN_TAKES for _, between in asyncio.run(turns(EvictionResult.NO_CANDIDATE, A, number=3))[1:]
    )


def test_a_pod_that_is_asked_about_again_and_again_has_its_turns() -> None:
    assert [uid for uid, _ in asyncio.run(turns(EvictionResult.FITS, A, number=3))] == ["a", "a", "a"]


class Recording(Evaluator):
    """One that only records the victims that it gets."""

    def __init__(self) -> None:
        self.going: asyncio.Queue[Mapping[str, Collection[str]]] = asyncio.Queue()

    async def plan(self, _: Pod, __: Sequence[str], going: Mapping[str, Collection[str]]) -> Plan | EvictionResult:
        self.going.put_nowait(going)
        return EvictionResult.WAITS


def test_a_plan_knows_the_victims_of_every_preemption_on_a_node() -> None:
    """Else a pod that fits after two of them would have others evicted."""

    async def main() -> Mapping[str, Collection[str]]:
        mirror = mirror_of(make_node("n1"), *(make_pod(name).uid(name).on("n1") for name in "vw"))
        clock, evaluator = asyncio.get_running_loop().time, Recording()
        preemptions = Preemptions(mirror, clock)
        preemptions.add("x", "n1", ["v"])
        preemptions.add("y", "n1", ["w"])
        pods = UnschedulablePods(mirror, clock, lambda _: None)
        executor = Executor(AllGivenUp(), preemptions, mirror, lambda: True)
        rejected = AllRejected(mirror, clock)
        evictor = Evictor(pods, preemptions, evaluator, rejected, executor, clock=clock, observe=lambda _: None)
        running = asyncio.create_task(evictor.run())
        pods.add(A, 1)
        async with asyncio.timeout(60):
            found = await evaluator.going.get()
        running.cancel()
        return found

    assert asyncio.run(main()) == {"n1": {"v", "w"}}


@pytest.mark.parametrize(
    ("fresh", "result", "requested"),
    [
        pytest.param(
            4 * [True],
            EvictionResult.PREEMPTED,
            ["read", "nominate a n1", "evict b for mine", "event default/b"],
            id="fresh",
        ),
        pytest.param([False], EvictionResult.STALE, [], id="stale-before"),
        pytest.param([True, False], EvictionResult.STALE, ["read"], id="stale-when-the-plan-is-made"),
        pytest.param(
            [True, True, False], EvictionResult.FAILED, ["read", "nominate a n1"], id="stale-before-the-eviction"
        ),
        pytest.param(
            [True, True, True, False],
            EvictionResult.FAILED,
            ["read", "nominate a n1", "evict b for mine"],
            id="stale-when-the-victim-is-marked",
        ),
    ],
)
def test_a_plan_is_carried_out_only_if_the_mirror_is_fresh_still(
    fresh: list[bool], result: EvictionResult, requested: list[str]
) -> None:
    async def main() -> EvictionOutcome:
        mirror = mirror_of(make_node("n1"))
        mirror.assume(B, "n1", 0.0)
        outcomes: asyncio.Queue[EvictionOutcome] = asyncio.Queue()
        clock = asyncio.get_running_loop().time
        pods = UnschedulablePods(mirror, clock, outcomes.put_nowait)
        preemptions = Preemptions(mirror, clock)
        may_evict = iter(fresh).__next__
        evictor = Evictor(
            pods,
            preemptions,
            Slow(Plan("n1", (B,))),
            AllRejected(mirror, clock),
            Executor(api, preemptions, mirror, may_evict),
            clock=clock,
            observe=outcomes.put_nowait,
        )
        running = asyncio.create_task(evictor.run())
        pods.add(A, 1)
        async with asyncio.timeout(60):
            outcome = await outcomes.get()
        running.cancel()
        return outcome

    api = AllGivenUp()
    assert asyncio.run(main()).result is result
    assert api.requested == requested


def test_a_victim_that_loses_its_reserved_place_while_another_one_is_evicted_is_not_deleted() -> None:
    """It is a pod without a node, and its gang no longer counts there."""
    mirror = mirror_of(make_node("n1"))
    victims = [mirror.assume(pod, "n1", 0.0) for pod in (B, Pod("c", "default", "c"))]

    class ThenReleased(AllGivenUp):
        async def evict(self, victim: Pod, scheduler_name: str, needed: Callable[[], bool] = lambda: True) -> bool:
            mirror.forget(victims[1].uid)
            return await super().evict(victim, scheduler_name, needed)

    api = ThenReleased()
    executor = Executor(api, Preemptions(mirror, lambda: 0.0), mirror, lambda: True)
    asyncio.run(executor.carry_out(A, Plan("n1", victims)))
    assert api.requested == ["nominate a n1", "evict b for ", "event default/b"]


def test_a_gang_keeps_its_reserved_place_where_the_pod_has_got_a_node_meanwhile() -> None:
    mirror = mirror_of(make_node("n1"))
    victims = [mirror.assume(pod, "n1", 0.0) for pod in (B, Pod("c", "default", "c"))]
    released: list[str] = []

    class ThenPlaced(AllGivenUp):
        async def evict(self, victim: Pod, scheduler_name: str, needed: Callable[[], bool] = lambda: True) -> bool:
            deleted = await super().evict(victim, scheduler_name, needed)
            mirror.assume(A, "n2", 0.0)
            return deleted

    def release(uid: str) -> bool:
        released.extend([uid] if uid == "c" else ())
        return uid == "c"

    executor = Executor(ThenPlaced(), Preemptions(mirror, lambda: 0.0), mirror, lambda: True, release)
    outcome = asyncio.run(executor.carry_out(A, Plan("n1", victims)))
    assert (outcome, released) == (EvictionOutcome(EvictionResult.FAILED, 1), [])


def test_a_victim_that_gets_a_place_elsewhere_while_another_one_is_evicted_is_not_deleted() -> None:
    mirror = mirror_of(make_node("n1"), make_node("n2"))
    victims = [mirror.assume(pod, "n1", 0.0) for pod in (B, Pod("c", "default", "c"))]

    class ThenMoved(AllGivenUp):
        async def evict(self, victim: Pod, scheduler_name: str, needed: Callable[[], bool] = lambda: True) -> bool:
            mirror.forget(victims[1].uid)
            mirror.assume(victims[1], "n2", 0.0)
            return await super().evict(victim, scheduler_name, needed)

    api = ThenMoved()
    executor = Executor(api, Preemptions(mirror, lambda: 0.0), mirror, lambda: True)
    asyncio.run(executor.carry_out(A, Plan("n1", victims)))
    assert api.requested == ["nominate a n1", "evict b for ", "event default/b"]
