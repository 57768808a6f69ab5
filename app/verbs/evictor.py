"""Preempts for pods that only Kindred rejects on every node. For such pods kube-scheduler calls no extender.

kube-scheduler's own preemption finds no victim on such nodes, ends with "expected at least one victim pod on node" and
does not call the verb `preempt` (k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go,
DryRunPreemption). So after a `filter` without a fitting node, and a pause in which kube-scheduler can finish its
attempt, the evictor does three steps:

    read the pod            it must exist with its uid, as it was judged, and have no node, and its scheduler must have
                            given up. So requests of a simulator with its own pods cause no eviction
    make the plan           from the present mirror, if it is fresh; see Evaluator
    carry out the plan      see Executor

The victims then terminate. kube-scheduler sees their deletion and retries the pod, on the nominated node first. Until
then no other pod is evicted for this pod, or for pods that will fit there. If the pod loses its nomination meanwhile,
the evictor nominates it again. kube-scheduler clears nominations when `filter` returns an `Error`, and when its own
preemption finds no candidate. It also clears them after each attempt if its profile has no PostFilter plugin
(schedule_one.go, schedulingAlgorithm).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from app.process.logs import one_line
from app.verbs.effects import RejectedNodes
from app.verbs.executor import EvictionError, EvictionOutcome, EvictionResult, Executor, Plan, Preemptions
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import AnyFilter, Code
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod
from core.preemption import (
    POLICY_NEVER,
    DryRun,
    Victims,
    are_enough,
    best_nodes,
    candidates_needed,
    dry_run,
    why_not_eligible,
)
from core.profile import Profile
from core.scheduling_cycle import filter_nodes

log = logging.getLogger(__name__)

_AT_ONCE: Final = 8  # nodes; with all predicates and 30 pods a node about 15 ms, in which no other request is served


class Evaluator:
    """Plans preemptions over a mirror: the node, and the victims.

    Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go (Evaluator.Preempt). Upstream
    evaluates all nodes at once. Here other requests are served in between, so the plan is checked again at the end.
    """

    def __init__(self, profile: Profile, mirror: ClusterMirror, offset: Callable[[int], int]) -> None:
        """`offset` returns, for a number of nodes, the index of the first one to try. Not all nodes may be tried."""
        self._profile = profile
        self._mirror = mirror
        self._offset = offset

    async def plan(self, pod: Pod, names: Sequence[str], going: Mapping[str, Collection[str]]) -> Plan | EvictionResult:
        """Return the plan, or why there is none. A plan is stale after the next event. Raises WorkLimitError.

        `names` are the nodes that rejected the pod. `going` are the victims, by uid, of other preemptions on some of
        these nodes. If the pod fits there without these victims, beside nominated pods of at least its priority, then
        it waits and preempts no pod. A nomination that the watch has not shown yet does not count. So the pod may wait
        for capacity that another pod takes.
        """
        helped = self._nodes_to_look_at(pod, names)
        if isinstance(helped, EvictionResult):
            return helped
        if self._fits_soon(pod, [name for name in helped if name in going], going):
            return EvictionResult.WAITS
        candidates = await self._candidates(pod, helped)
        still = self._nodes_to_look_at(pod, names)
        if isinstance(still, EvictionResult):
            return still
        return self._best(pod, {name: each for name, each in candidates.items() if name in still})

    @property
    def _filters(self) -> Sequence[AnyFilter]:
        return self._profile.under(self._mirror.rules).filters

    def _nodes_to_look_at(self, pod: Pod, names: Sequence[str]) -> list[str] | EvictionResult:
        """Return the nodes where preemption might help, or why the pod needs no preemption or may not preempt."""
        if self._mirror.is_mirrored(pod.uid):  # it has a node by now, on which it may not fit a second time
            return EvictionResult.FITS
        verdicts = filter_nodes(self._profile, FreshEvaluation(self._mirror, pod), self._mirror.batch(names))
        if not verdicts.codes.all():
            return EvictionResult.FITS
        codes = dict(zip(names, (verdicts.statuses[code].code for code in verdicts.codes.tolist()), strict=True))
        # kube-scheduler's own filters reject a nominated node that is not in the request.
        reason = why_not_eligible(self._mirror, pod, codes.get(pod.nominated_node_name, Code.UNSCHEDULABLE))
        if reason:
            return EvictionResult.NEVER if reason == POLICY_NEVER else EvictionResult.WAITS
        return [name for name, code in codes.items() if code is Code.UNSCHEDULABLE]

    def _best(self, pod: Pod, candidates: dict[str, Victims]) -> Plan | EvictionResult:
        """Return the plan for the best candidate that is still valid."""
        while candidates:
            node = best_nodes(candidates)[0]
            (victims,) = dry_run(self._mirror, self._filters, pod, [node])
            if isinstance(victims, Victims):
                return Plan(node, victims.pods)
            del candidates[node]
        return EvictionResult.NO_CANDIDATE

    def _fits_soon(self, pod: Pod, names: Sequence[str], going: Mapping[str, Collection[str]]) -> bool:
        run = DryRun(self._mirror, self._filters, pod, names)
        return any(run.fits_without(position, going[name]) for position, name in enumerate(names))

    async def _candidates(self, pod: Pod, names: Sequence[str]) -> dict[str, Victims]:
        """Return node -> victims. A few nodes at a time are evaluated without an await."""
        first = self._offset(len(names)) if names else 0
        order = [*names[first:], *names[:first]]
        needed = candidates_needed(len(order))
        found: dict[str, Victims] = {}
        for begin in range(0, len(order), _AT_ONCE):
            part = [name for name in order[begin : begin + _AT_ONCE] if name in self._mirror.nodes.slots]
            looked_at = zip(part, dry_run(self._mirror, self._filters, pod, part), strict=True)
            found |= {name: each for name, each in looked_at if isinstance(each, Victims)}
            if are_enough(found, needed):
                break
            await asyncio.sleep(0)
        return found


_TRIED_AGAIN: Final = frozenset({EvictionResult.NOT_GIVEN_UP, EvictionResult.FAILED})
# At 5,000 nodes a plan takes seconds, in which other responses are late. So plans get at most half of the time, and a
# pod without victims gets much less.
_REST: Final = 1.0  # pause before the next turn, as a multiple of the plan's time
_REST_OF_A_POD: Final = 10.0  # pause before the same pod's next turn, as a multiple of its plan's time
_PAUSE: Final = 0.2  # seconds; more if kube-scheduler rejected nodes itself, because it may find victims there
_LONGER_PAUSE: Final = 1.0
_TURNS: Final = 4  # the later ones after two, four and eight times the pause
_MAX_WAITING: Final = 1000  # pods


class QueuedPod(NamedTuple):
    """A pod, its due time, and the number of its earlier turns."""

    pod: Pod
    due: float
    had: int


class UnschedulablePods:
    """The pods that wait for their turn, each once. `filter` adds them, and the evictor takes them."""

    def __init__(
        self, mirror: ClusterMirror, clock: Callable[[], float], observe: Callable[[EvictionOutcome], None]
    ) -> None:
        """`clock` returns seconds. `observe` is called for a pod that finds too many others waiting."""
        self._nodes = mirror.nodes
        self._clock = clock
        self._observe = observe
        self._turns: dict[str, QueuedPod] = {}  # by uid
        self._news = asyncio.Event()
        self._resting: dict[str, float] = {}  # uid of a pod without candidates -> earliest time of its next turn

    def add(self, pod: Pod, nodes: int) -> None:
        """Give a turn to a pod that was rejected on all nodes. `nodes`: where preemption might help."""
        pause = _PAUSE if nodes >= len(self._nodes.slots) else _LONGER_PAUSE
        rest = self._resting.get(pod.uid, 0.0) - self._clock()
        if pod.uid in self._turns or len(self._turns) < _MAX_WAITING:
            self._put(pod, max(pause, rest), had=0)
        else:
            log.warning("preemption: %s: too many pods wait for their turn", one_line(pod.full_name))
            self._observe(EvictionOutcome(EvictionResult.DROPPED))

    async def take(self) -> QueuedPod:
        """Wait until a turn is due, remove it, and return it."""
        while True:
            self._news.clear()
            first = min(self._turns.values(), key=lambda turn: turn.due, default=None)
            wait = first.due - self._clock() if first is not None else None
            if first is not None and wait is not None and wait <= 0:
                return self._turns.pop(first.pod.uid)
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                pass

    def retry(self, turn: QueuedPod) -> bool:
        """Give a pod another turn later. Return False if it has had all its turns, or waits for one already."""
        had = turn.had + 1
        if had >= _TURNS or turn.pod.uid in self._turns or len(self._turns) >= _MAX_WAITING:
            return False
        self._put(turn.pod, _PAUSE * 2**had, had)
        return True

    def rest(self, uid: str, seconds: float) -> None:
        """Give a pod no turn for `seconds`, even if a new request arrives in the meantime."""
        now = self._clock()
        self._resting = {each: until for each, until in self._resting.items() if until > now}
        self._resting[uid] = now + seconds
        turn = self._turns.get(uid)
        if turn is not None:
            self._turns[uid] = turn._replace(due=max(now + seconds, turn.due))

    def _put(self, pod: Pod, delay: float, had: int) -> None:
        """Give a pod its turn in `delay` seconds.

        A pod that waits already keeps its due time. Otherwise a pod with frequent requests would never have its turn.
        """
        before = self._turns.get(pod.uid)
        due = self._clock() + delay
        self._turns[pod.uid] = QueuedPod(pod, due if before is None else min(due, before.due), had)
        self._news.set()


class Evictor:
    """Gives pods their turns, one at a time. Errors are logged and counted, and end only the present turn."""

    def __init__(  # noqa: PLR0913  # what a preemption needs
        self,
        pods: UnschedulablePods,
        preemptions: Preemptions,
        evaluator: Evaluator,
        rejected_nodes: RejectedNodes,
        executor: Executor,
        *,
        clock: Callable[[], float],
        observe: Callable[[EvictionOutcome], None],
    ) -> None:
        """`clock` returns seconds. `observe` gets each outcome."""
        self._pods = pods
        self._preemptions = preemptions
        self._evaluator = evaluator
        self._rejected_nodes = rejected_nodes
        self._executor = executor
        self._clock = clock
        self._observe = observe
        self._planning = 0.0  # seconds that the last plan took

    async def run(self) -> None:
        """Give turns until cancelled."""
        while True:
            turn = await self._pods.take()
            self._planning = 0.0
            try:
                outcome = await self._preempt(turn.pod)
            except EvictionError as error:
                log.warning("preemption: %s: %s", one_line(turn.pod.full_name), one_line(str(error)))
                outcome = EvictionOutcome(EvictionResult.FAILED)
            except Exception:
                log.exception("preemption: %s: failed", one_line(turn.pod.full_name))
                outcome = EvictionOutcome(EvictionResult.FAILED)
            self._settle(turn, outcome)
            await asyncio.sleep(_REST * self._planning)

    def _settle(self, turn: QueuedPod, outcome: EvictionOutcome) -> None:
        """Count an outcome. Retry if it may change soon, and if no newer request had the pod."""
        if outcome.result is EvictionResult.NO_CANDIDATE:
            self._pods.rest(turn.pod.uid, _REST_OF_A_POD * self._planning)
        again = outcome.result in _TRIED_AGAIN and not outcome.evicted
        if not (again and self._pods.retry(turn)):
            log.debug("preemption: %s: %s", one_line(turn.pod.full_name), outcome.result.value)
            self._observe(outcome)

    async def _preempt(self, pod: Pod) -> EvictionOutcome:
        live = await self._looked_at(pod)
        if isinstance(live, EvictionResult):
            return EvictionOutcome(live)
        nodes = self._rejected_nodes.all_of_last_filter(live)
        if not nodes:  # `filter` judged another state of the pod
            return EvictionOutcome(EvictionResult.SETTLED)
        going: dict[str, set[str]] = {}
        for each in self._preemptions.going().values():
            going.setdefault(each.node, set()).update(each.victims)
        began = self._clock()
        try:
            plan = await self._evaluator.plan(live, nodes, going)
        except WorkLimitError:  # recorded by the requests of the pod
            plan = EvictionResult.NO_CANDIDATE
        self._planning = self._clock() - began
        if isinstance(plan, Plan) and self._executor.may_evict():
            return await self._executor.carry_out(live, plan)
        return EvictionOutcome(EvictionResult.STALE if isinstance(plan, Plan) else plan)

    async def _looked_at(self, pod: Pod) -> Pod | EvictionResult:
        """Return the API server's state of the pod, or why no pod is evicted for it."""
        if not self._executor.may_evict():
            return EvictionResult.STALE
        if pod.uid in self._preemptions.going():
            return await self._stays_nominated(pod)
        if not self._rejected_nodes.all_of_last_filter(pod):
            return EvictionResult.FITS
        live = await self._executor.api.read(pod)
        return EvictionResult.SETTLED if live is None else self._obstacle(pod, live) or live

    async def _stays_nominated(self, pod: Pod) -> EvictionResult:
        node = self._preemptions.lost_nomination(pod.uid)
        live = await self._executor.api.read(pod) if node else None
        if live is not None and not live.nominated_node_name and self._obstacle(pod, live) is None:
            await self._executor.nominate_again(live, node)
        return EvictionResult.WAITS

    def _obstacle(self, incoming: Pod, live: Pod) -> EvictionResult | None:
        if live.uid != incoming.uid or live.node_name or live.terminal or live.terminating:
            return EvictionResult.SETTLED
        # schedule_one.go, schedulingCycle: the reason is Unschedulable even if PostFilter ends with an error.
        if live.failure != "Unschedulable":
            return EvictionResult.NOT_GIVEN_UP
        if live.nominated_node_name not in {"", incoming.nominated_node_name, self._preemptions.node_for(live.uid)}:
            return EvictionResult.NOMINATED
        return None
