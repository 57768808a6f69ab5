"""Carries out a plan of preemption: the writes to the API server, their order, and the effect of a failure.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/executor.go (prepareCandidate, PreemptPod).

    nominate the node        first. It reserves the capacity. If it fails, no pod is evicted
    evict the victims        one after the other: each is marked, and then deleted. The first failure ends the
                             preemption, so that no further pod is evicted
    clear lower nominations  of pods with lower priority that are nominated for the node and may no longer fit there.
                             kube-scheduler then retries them sooner, and they may preempt elsewhere
    write Events             one for each victim

The last two steps are best effort: a failure is logged, and the preemption still counts as a success.
"""

import logging
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from app.eviction.evaluator import Plan
from app.eviction.eviction_api import EvictionApi, EvictionError, LivePod
from app.eviction.eviction_outcome import EvictionOutcome, EvictionResult
from app.eviction.preempted_event import preempted_event
from app.eviction.preemptions import Preemptions
from app.logs import one_line
from core.mirror.pending_pods import PendingPods
from core.objects.pod import Pod

log = logging.getLogger(__name__)


class Executor:
    """Writes a plan to the API server. Raises EvictionError if the nomination fails. Then no pod was evicted."""

    def __init__(
        self, api: EvictionApi, preemptions: Preemptions, pending: PendingPods, may_evict: Callable[[], bool]
    ) -> None:
        """Record preemptions in `preemptions`. `pending` has the nominated pods. Evict only while `may_evict`."""
        self._api = api
        self._preemptions = preemptions
        self._pending = pending
        self._may_evict = may_evict
        self._host = socket.gethostname()

    async def carry_out(self, live: LivePod, plan: Plan) -> EvictionOutcome:
        """Do the four steps of the module's docstring."""
        pod = live.pod
        self._preemptions.begin(pod.uid)
        if not await self._api.nominate(pod, plan.node):
            return EvictionOutcome(EvictionResult.SETTLED)
        deleted: list[Pod] = []
        going: list[str] = []
        evicted = 0
        result = EvictionResult.PREEMPTED
        try:
            for victim in plan.victims:
                if not victim.terminating:
                    self._check()
                    if await self._api.evict(victim, live.scheduler_name):
                        deleted.append(victim)
                    evicted += 1
                going.append(victim.uid)
        except EvictionError as error:
            log.warning("preemption: %s: %s", pod.full_name, one_line(str(error)))
            result = EvictionResult.FAILED
        self._preemptions.add(pod.uid, plan.node, going)
        log.info("preemption: %s", _told(pod, plan, evicted))
        if result is EvictionResult.PREEMPTED:
            await self._clear_lower_nominations(pod, plan.node)
        await self._write_events(live, plan.node, deleted)
        return EvictionOutcome(result, evicted)

    async def nominate_again(self, live: LivePod, node: str) -> None:
        """Nominate a pod that lost its nomination while its victims terminate. Raises EvictionError."""
        await self._api.nominate(live.pod, node)
        log.info("preemption: %s is nominated for %s again", one_line(live.pod.full_name), one_line(node))

    def _check(self) -> None:
        if not self._may_evict():
            raise EvictionError("the mirror is stale, or this replica no longer leads")

    async def _clear_lower_nominations(self, preemptor: Pod, node: str) -> None:
        lower = [each for each in self._pending.nominated_for(node).values() if each.priority < preemptor.priority]
        for pod in lower:
            self._preemptions.forget(pod.uid)  # else the evictor would nominate it again
            try:
                await self._api.clear_nomination(pod)
            except EvictionError as error:
                told = one_line(f"{pod.full_name} stays nominated for {node}: {error}")
                log.warning("preemption: %s: %s", one_line(preemptor.full_name), told)

    async def _write_events(self, live: LivePod, node: str, victims: Sequence[Pod]) -> None:
        """Write an Event for each victim. The first failure ends the loop, because a failure may take seconds."""
        for number, victim in enumerate(victims):
            name, now = live.scheduler_name, datetime.now(UTC)
            event = preempted_event(victim, live.pod, node, scheduler_name=name, host=self._host, now=now)
            try:
                await self._api.create_event(event)
            except EvictionError as error:
                told = one_line(f"{len(victims) - number} of {len(victims)} Events were not written: {error}")
                log.warning("preemption: %s: %s", one_line(live.pod.full_name), told)
                return


def _told(pod: Pod, plan: Plan, evicted: int) -> str:
    victims = ", ".join(f"{each.full_name} (priority {each.priority})" for each in plan.victims)
    return one_line(f"{pod.full_name} (priority {pod.priority}) is to get {plan.node}; evicted {evicted} of {victims}")
