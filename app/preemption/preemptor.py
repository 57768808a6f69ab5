"""Preempts by itself for pods that Kindred alone keeps off every node, as kube-scheduler asks nobody about them.

kube-scheduler's own preemption finds no victim on such nodes, ends with "expected at least one victim pod on node" and
does not call the verb `preempt` (k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go,
DryRunPreemption). So, after a `filter` that left no node and a pause in which kube-scheduler can finish its attempt:

    the pod is read         it must be there under its uid, without a node, and given up by its scheduler; so a
                            simulator that asks `filter` about pods of its own causes nothing
    the plan is made        from the mirror as it is now, if it is fresh; see Evaluator
    the node is nominated   first, so that for a pod which cannot be nominated nobody is evicted; kube-scheduler then
                            keeps the room for it
    the victims go          one after the other, each marked and then deleted, as upstream does it; what fails ends the
                            preemption, so that nobody else is evicted for it

The victims then terminate, kube-scheduler sees them go, and tries the pod again, on the nominated node first. Until
then nobody else is evicted for the pod, nor for pods that will fit there. Unlike upstream, other pods of lower priority
that are nominated for the node stay so, as the mirror does not hold them: kube-scheduler finds out when it tries them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from app.logs import one_line
from app.preemption.evaluator import Evaluator, Plan
from app.preemption.outcome import Result
from app.preemption.preemption_api import LivePod, PreemptionApi, PreemptionError
from app.preemption.turns import Turn, Turns
from app.refused_nodes import RefusedNodes
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_PAUSE: Final = 0.2  # seconds; on nodes that kube-scheduler refused itself it may find victims, so it gets longer
_LONGER_PAUSE: Final = 1.0
_TURNS: Final = 4  # the later ones after twice, four times and eight times the pause
_TRIED_AGAIN: Final = frozenset({Result.NOT_GIVEN_UP, Result.FAILED})
# At 5,000 nodes a plan takes seconds, in which other answers are late: so plans get half of the time at most, and a pod
# that no victims were found for much less.
_REST: Final = 1.0  # times what a plan took, before the next turn
_REST_OF_A_POD: Final = 10.0  # times what its plan took, before its next turn
_UNSEEN: Final = 30.0  # seconds within which the watch must show that a victim terminates, or it is one no more


class Outcome(NamedTuple):
    """How a turn ended, and how many pods were evicted."""

    result: Result
    evicted: int = 0


class _Preemption(NamedTuple):
    """What was done for a pod, and until when the watch may be late with it."""

    node: str
    victims: tuple[str, ...]
    until: float


class Preemptor:
    """Gives pods their turns, one at a time; what goes wrong is logged and counted, and ends nothing else."""

    def __init__(  # noqa: PLR0913  # what a preemption needs
        self,
        mirror: ClusterMirror,
        evaluator: Evaluator,
        refused_nodes: RefusedNodes,
        api: PreemptionApi,
        *,
        may_evict: Callable[[], bool],
        clock: Callable[[], float],
        observe: Callable[[Outcome], None],
    ) -> None:
        """Evict only while it `may_evict`: the mirror is fresh, and this replica decides.

        `observe` is told each outcome.
        """
        self._mirror = mirror
        self._evaluator = evaluator
        self._refused_nodes = refused_nodes
        self._api = api
        self._may_evict = may_evict
        self._clock = clock
        self._observe = observe
        self._turns = Turns(clock)
        self._preemptions: dict[str, _Preemption] = {}  # by the uids of the preemptors, those of late
        self._last = ""  # uid of the pod that was preempted for last, or is just now
        self._resting: dict[str, float] = {}  # uid of a pod without candidates -> when it may have another turn
        self._planning = 0.0  # seconds that the last plan took

    def consider(self, pod: Pod, nodes: int) -> None:
        """Give a turn to a pod that was refused on all nodes, so many, that were asked about."""
        pause = _PAUSE if nodes >= len(self._mirror.nodes.slots) else _LONGER_PAUSE
        rest = self._resting.get(pod.uid, 0.0) - self._clock()
        if not self._turns.put(pod, max(pause, rest)):
            log.warning("preemption: %s: too many pods wait for their turn", one_line(pod.full_name))
            self._observe(Outcome(Result.DROPPED))

    def preempts_for(self, uid: str) -> bool:
        """Whether pods were evicted for a pod lately, or are just now."""
        return uid == self._last or uid in self._preemptions

    async def run(self) -> None:
        """Give turns until cancelled."""
        while True:
            turn = await self._turns.take()
            self._planning = 0.0
            try:
                outcome = await self._preempt(turn.pod)
            except PreemptionError as error:
                log.warning("preemption: %s: %s", one_line(turn.pod.full_name), one_line(str(error)))
                outcome = Outcome(Result.FAILED)
            except Exception:
                log.exception("preemption: %s: failed", one_line(turn.pod.full_name))
                outcome = Outcome(Result.FAILED)
            self._settle(turn, outcome)
            await asyncio.sleep(_REST * self._planning)

    def _settle(self, turn: Turn, outcome: Outcome) -> None:
        """Count an outcome, or try again if it may be another one soon, and nobody has asked about the pod since."""
        had = turn.had + 1
        again = outcome.result in _TRIED_AGAIN and not outcome.evicted and had < _TURNS
        if outcome.result is Result.NO_CANDIDATE:
            self._let_rest(turn.pod.uid)
        if again and not self._turns.waits(turn.pod.uid):
            self._turns.put(turn.pod, _PAUSE * 2**had, had)
        else:
            log.debug("preemption: %s: %s", one_line(turn.pod.full_name), outcome.result.value)
            self._observe(outcome)

    def _let_rest(self, uid: str) -> None:
        """Look at a pod again only after a while, also one that was asked about in the meantime."""
        now = self._clock()
        self._resting = {each: until for each, until in self._resting.items() if until > now}
        self._resting[uid] = now + _REST_OF_A_POD * self._planning
        self._turns.put_back(uid, self._resting[uid])

    async def _preempt(self, pod: Pod) -> Outcome:
        live = await self._looked_at(pod)
        if isinstance(live, Result):
            return Outcome(live)
        going = {each.node: each.victims for each in self._going().values()}
        began = self._clock()
        plan = await self._evaluator.plan(live.pod, self._refused_nodes.all_of_last_filter(pod.uid), going)
        self._planning = self._clock() - began
        if isinstance(plan, Plan) and self._may_evict():
            return await self._carry_out(live, plan)
        return Outcome(Result.STALE if isinstance(plan, Plan) else plan)

    async def _looked_at(self, pod: Pod) -> LivePod | Result:
        """Return the pod as the API server has it, or why nobody is evicted for it."""
        if not self._may_evict():
            return Result.STALE
        if pod.uid in self._going():
            return Result.WAITS
        if not self._refused_nodes.all_of_last_filter(pod.uid):
            return Result.FITS
        live = await self._api.read(pod)
        return Result.SETTLED if live is None else self._obstacle(pod, live) or live

    def _obstacle(self, asked: Pod, live: LivePod) -> Result | None:
        pod = live.pod
        if pod.uid != asked.uid or pod.node_name or pod.terminal or pod.terminating:
            return Result.SETTLED
        if not live.given_up:
            return Result.NOT_GIVEN_UP
        mine = self._preemptions.get(pod.uid)
        if pod.nominated_node_name not in {"", asked.nominated_node_name, mine.node if mine is not None else ""}:
            return Result.NOMINATED
        return None

    async def _carry_out(self, live: LivePod, plan: Plan) -> Outcome:
        pod = live.pod
        self._last = pod.uid
        if not await self._api.nominate(pod, plan.node):
            return Outcome(Result.SETTLED)
        evicted: list[str] = []
        result = Result.PREEMPTED
        try:
            for victim in plan.victims:
                if not victim.terminating:
                    self._check()
                    await self._api.evict(victim, live.scheduler_name)
                    evicted.append(victim.uid)
        except PreemptionError as error:
            log.warning("preemption: %s: %s", pod.full_name, one_line(str(error)))
            result = Result.FAILED
        self._preemptions[pod.uid] = _Preemption(plan.node, tuple(evicted), self._clock() + _UNSEEN)
        log.info("preemption: %s", _told(pod, plan, len(evicted)))
        return Outcome(result, len(evicted))

    def _check(self) -> None:
        if not self._may_evict():
            raise PreemptionError("the mirror is stale, or this replica leads no more")

    def _going(self) -> dict[str, _Preemption]:
        """Return the preemptions whose victims are not all gone, and forget what is long ago."""
        now = self._clock()
        going = {uid: each for uid, each in self._preemptions.items() if self._is_going(each, now)}
        self._preemptions = {uid: each for uid, each in self._preemptions.items() if uid in going or now < each.until}
        return going

    def _is_going(self, preemption: _Preemption, now: float) -> bool:
        held = [pod for uid in preemption.victims if (pod := self._mirror.get_pod(uid)) is not None]
        return any(pod.terminating or now < preemption.until for pod in held)


def _told(pod: Pod, plan: Plan, evicted: int) -> str:
    victims = ", ".join(f"{each.full_name} (priority {each.priority})" for each in plan.victims)
    return one_line(f"{pod.full_name} (priority {pod.priority}) is to get {plan.node}; evicted {evicted} of {victims}")
