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
from collections.abc import Callable
from typing import Final

from app.eviction.evaluator import Evaluator, Plan
from app.eviction.eviction_api import EvictionApi, EvictionError, LivePod
from app.eviction.eviction_outcome import EvictionOutcome, EvictionResult
from app.eviction.eviction_queue import QueuedPod
from app.eviction.executor import Executor
from app.eviction.preemptions import Preemptions
from app.eviction.unschedulable_pods import UnschedulablePods
from app.logs import one_line
from app.verbs.refused_nodes import RefusedNodes
from core.objects.pod import Pod

log = logging.getLogger(__name__)

_TRIED_AGAIN: Final = frozenset({EvictionResult.NOT_GIVEN_UP, EvictionResult.FAILED})
# At 5,000 nodes a plan takes seconds, in which other responses are late. So plans get at most half of the time, and a
# pod without victims gets much less.
_REST: Final = 1.0  # pause before the next turn, as a multiple of the plan's time
_REST_OF_A_POD: Final = 10.0  # pause before the same pod's next turn, as a multiple of its plan's time


class Evictor:
    """Gives pods their turns, one at a time. Errors are logged and counted, and end only the present turn."""

    def __init__(  # noqa: PLR0913  # what a preemption needs
        self,
        pods: UnschedulablePods,
        preemptions: Preemptions,
        evaluator: Evaluator,
        refused_nodes: RefusedNodes,
        api: EvictionApi,
        *,
        executor: Executor,
        may_evict: Callable[[], bool],
        clock: Callable[[], float],
        observe: Callable[[EvictionOutcome], None],
    ) -> None:
        """Evict only while `may_evict` returns True: the mirror is fresh, and this replica decides.

        `observe` gets each outcome.
        """
        self._pods = pods
        self._preemptions = preemptions
        self._evaluator = evaluator
        self._refused_nodes = refused_nodes
        self._api = api
        self._executor = executor
        self._may_evict = may_evict
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
        nodes = self._refused_nodes.all_of_last_filter(live.pod)
        if not nodes:  # `filter` judged another state of the pod
            return EvictionOutcome(EvictionResult.SETTLED)
        going = {each.node: each.victims for each in self._preemptions.going().values()}
        began = self._clock()
        plan = await self._evaluator.plan(live.pod, nodes, going)
        self._planning = self._clock() - began
        if isinstance(plan, Plan) and self._may_evict():
            return await self._executor.carry_out(live, plan)
        return EvictionOutcome(EvictionResult.STALE if isinstance(plan, Plan) else plan)

    async def _looked_at(self, pod: Pod) -> LivePod | EvictionResult:
        """Return the API server's state of the pod, or why no pod is evicted for it."""
        if not self._may_evict():
            return EvictionResult.STALE
        if pod.uid in self._preemptions.going():
            return await self._kept_nominated(pod)
        if not self._refused_nodes.all_of_last_filter(pod):
            return EvictionResult.FITS
        live = await self._api.read(pod)
        return EvictionResult.SETTLED if live is None else self._obstacle(pod, live) or live

    async def _kept_nominated(self, pod: Pod) -> EvictionResult:
        """Nominate a pod again if it lost its nomination while its victims terminate."""
        node = self._preemptions.lost_nomination(pod.uid)
        live = await self._api.read(pod) if node else None
        if live is not None and not live.pod.nominated_node_name and self._obstacle(pod, live) is None:
            await self._executor.nominate_again(live, node)
        return EvictionResult.WAITS

    def _obstacle(self, asked: Pod, live: LivePod) -> EvictionResult | None:
        pod = live.pod
        if pod.uid != asked.uid or pod.node_name or pod.terminal or pod.terminating:
            return EvictionResult.SETTLED
        if not live.given_up:
            return EvictionResult.NOT_GIVEN_UP
        if pod.nominated_node_name not in {"", asked.nominated_node_name, self._preemptions.node_for(pod.uid)}:
            return EvictionResult.NOMINATED
        return None
