"""Carries out a plan of preemption: the writes to the API server, their order, and the effect of a failure.

Preemptions has the recent ones, and whether their victims still exist.

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
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from app.eviction.evaluator import EvictionOutcome, EvictionResult, Plan
from app.eviction.eviction_api import EvictionApi, EvictionError, LivePod, preempted_event
from app.process.logs import one_line
from core.mirror.cluster import ClusterMirror
from core.mirror.pending_pods import UNSEEN, PendingPods
from core.objects.pod import Pod

log = logging.getLogger(__name__)


class Preemption(NamedTuple):
    """The preemption for a pod, and the time until which the watch may lag behind it."""

    node: str
    victims: tuple[str, ...]
    """The uids of the victims."""
    until: float


class Preemptions:
    """uid of a preemptor -> its preemption. The evictor adds entries, and `filter` looks pods up."""

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float]) -> None:
        """`mirror` shows whether victims still exist. `clock` returns seconds."""
        self._mirror = mirror
        self._clock = clock
        self._preemptions: dict[str, Preemption] = {}
        self._last = ""  # uid of the last or present preemptor

    def begin(self, uid: str) -> None:
        """Record that a preemption for a pod begins."""
        self._last = uid

    def add(self, uid: str, node: str, victims: Sequence[str]) -> None:
        """Record the nominated node of a pod, and the victims there, evicted or already terminating."""
        now = self._clock()
        self._preemptions[uid] = Preemption(node, tuple(victims), now + UNSEEN)
        self._mirror.preemptors.evicted(uid, node, victims, now)

    def forget(self, uid: str) -> None:
        """Remove the preemption for a pod that no longer gets the node."""
        self._preemptions.pop(uid, None)
        self._mirror.preemptors.forget(uid)

    def includes(self, uid: str) -> bool:
        """Return whether a preemption for a pod is in progress or recent."""
        return uid == self._last or uid in self._preemptions

    def node_for(self, uid: str) -> str:
        """Return the nominated node of a pod. Empty without a recent preemption for it."""
        known = self._preemptions.get(uid)
        return known.node if known is not None else ""

    def lost_nomination(self, uid: str) -> str:
        """Return the node of a preemption if the watch shows the pod without a nomination. Else an empty text."""
        pending = self._mirror.pending.get(uid)
        return self.node_for(uid) if pending is not None and not pending.nominated_node_name else ""

    def going(self) -> Mapping[str, Preemption]:
        """Return the preemptions with victims that still exist, and drop old ones."""
        now = self._clock()
        going = {uid: each for uid, each in self._preemptions.items() if self._is_going(each, now)}
        self._preemptions = {uid: each for uid, each in self._preemptions.items() if uid in going or now < each.until}
        return going

    def _is_going(self, preemption: Preemption, now: float) -> bool:
        held = [pod for uid in preemption.victims if (pod := self._mirror.get_pod(uid)) is not None]
        return any(pod.terminating or now < preemption.until for pod in held)


class Executor:
    """Writes a plan to the API server. Raises EvictionError if the nomination fails. Then no pod was evicted."""

    def __init__(
        self, api: EvictionApi, preemptions: Preemptions, pending: PendingPods, may_evict: Callable[[], bool]
    ) -> None:
        """Record preemptions in `preemptions`. `pending` has the nominated pods. Evict only while `may_evict`."""
        self.api = api
        self.may_evict = may_evict
        self._preemptions = preemptions
        self._pending = pending
        self._host = socket.gethostname()

    async def carry_out(self, live: LivePod, plan: Plan) -> EvictionOutcome:
        """Do the four steps of the module's docstring."""
        pod = live.pod
        self._preemptions.begin(pod.uid)
        if not await self.api.nominate(pod, plan.node):
            return EvictionOutcome(EvictionResult.SETTLED)
        deleted: list[Pod] = []
        going: list[str] = []
        evicted = 0
        result = EvictionResult.PREEMPTED
        try:
            for victim in plan.victims:
                if not victim.terminating:
                    self._check()
                    if await self.api.evict(victim, live.scheduler_name):
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
        await self.api.nominate(live.pod, node)
        log.info("preemption: %s is nominated for %s again", one_line(live.pod.full_name), one_line(node))

    def _check(self) -> None:
        if not self.may_evict():
            raise EvictionError("the mirror is stale, or this replica no longer leads")

    async def _clear_lower_nominations(self, preemptor: Pod, node: str) -> None:
        lower = [each for each in self._pending.nominated_for(node).values() if each.priority < preemptor.priority]
        for pod in lower:
            self._preemptions.forget(pod.uid)  # else the evictor would nominate it again
            try:
                await self.api.clear_nomination(pod)
            except EvictionError as error:
                told = one_line(f"{pod.full_name} stays nominated for {node}: {error}")
                log.warning("preemption: %s: %s", one_line(preemptor.full_name), told)

    async def _write_events(self, live: LivePod, node: str, victims: Sequence[Pod]) -> None:
        """Write an Event for each victim. The first failure ends the loop, because a failure may take seconds."""
        for number, victim in enumerate(victims):
            event = preempted_event(victim, live, node, host=self._host, now=datetime.now(UTC))
            try:
                await self.api.create_event(victim.namespace, event)
            except EvictionError as error:
                told = one_line(f"{len(victims) - number} of {len(victims)} Events were not written: {error}")
                log.warning("preemption: %s: %s", one_line(live.pod.full_name), told)
                return


def _told(pod: Pod, plan: Plan, evicted: int) -> str:
    victims = ", ".join(f"{each.full_name} (priority {each.priority})" for each in plan.victims)
    return one_line(f"{pod.full_name} (priority {pod.priority}) is to get {plan.node}; evicted {evicted} of {victims}")
