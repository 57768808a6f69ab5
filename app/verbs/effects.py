"""Everything that a request may change, besides results that are kept to be computed once.

The code that evaluates a request has no reference to these objects. It is passed them for an ordinary request, and None
for a dry run. So a dry run cannot reach an effect.

    recent pods     the pods of requests, for callers that have only a uid
    rotation        where the next sample of nodes begins
    refused nodes   where `preempt` and the evictor search for victims
    nominations     since when the rejection of a nominated node is doubted
    look-ups        pods that were read from the API server
    gangs           reservations, and gangs that wait
    group cycles    the present cycle in which kube-scheduler schedules a group
    assumptions     pods that count on the node that was decided for them
    decisions       counts by outcome
"""

import logging
from collections.abc import Callable
from enum import Enum
from typing import Final

import msgspec

from app.verbs.incoming_pod import decode_incoming_pod
from app.verbs.nominations import Doubt, Nominations
from app.verbs.pod_lookup import PodLookup
from app.verbs.recent_pods import RecentPods
from app.verbs.refused_nodes import RefusedNodes
from core.framework.interface import Verdicts
from core.gangs.gangs import Gangs
from core.gangs.group_cycles import GroupCycles, Released
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod

log = logging.getLogger(__name__)

LONGEST_WAIT: Final = 660.0
"""Seconds, above the waits of in-tree plugins until a pod is bound: VolumeBinding and DynamicResources 600 by default,
GangScheduling 300 (volumebinding and dynamicresources: bindTimeoutSeconds and bindingTimeout; gangscheduling.go)."""


class Decision(Enum):
    """The outcome of a decision. Also the values of the metric's label."""

    ASSUMED = "assumed"
    """The pod is assumed on the returned node."""
    REPLACED = "replaced"
    """The same, for a pod that was assumed already: its earlier decision failed."""
    NOT_ASSUMED = "not_assumed"
    """The response has a node, but the pod is not assumed there."""
    NO_FIT = "no_fit"
    """No node fits."""
    REFUSED = "refused"
    """The response has an `Error`."""
    GANG_WAITS = "gang_waits"
    """No node is returned, because a member of the pod's group is missing or does not fit."""


class Effects:
    """The effects of the requests to one service."""

    def __init__(  # noqa: PLR0913  # one part for each kind of effect
        self,
        mirror: ClusterMirror,
        clock: Callable[[], float],
        lookup: PodLookup,
        *,
        refused_nodes: RefusedNodes | None = None,
        nominations: Nominations | None = None,
        gangs: Gangs | None = None,
        waiting_schedulers: frozenset[str] = frozenset(),
    ) -> None:
        """Assume pods in a mirror, by its clock.

        `refused_nodes` records the rejections of `filter` for preemption. `nominations` delay rejections, if the mirror
        follows a cluster. Without `gangs`, a pod of a group is decided for like any other pod. The profiles of
        `waiting_schedulers` have in-tree plugins that let a binding wait, up to LONGEST_WAIT.
        """
        self.recent_pods: Final = RecentPods()
        self.lookup: Final = lookup
        self.gangs: Final = gangs
        self.decisions: Final = dict.fromkeys(Decision, 0)
        """Outcome -> decisions."""
        self.clock: Final = clock
        self.rotation = 0
        """Where the next sample of nodes begins, see NodeSample."""
        self._mirror = mirror
        self._refused_nodes = refused_nodes
        self._nominations = nominations
        self._waiting_schedulers = waiting_schedulers
        self._cycles = GroupCycles(mirror)

    def decoded(self, raw: msgspec.Raw) -> Pod:
        """Return the pod of a request and record it. Raises DecodeError."""
        written = bytes(raw)
        pod = self.recent_pods.written_as(written)  # a hit mostly: prioritize sends the pod of the filter before it
        if pod is None:
            pod = decode_incoming_pod(raw)
            self.recent_pods.add(pod, written)
        return pod

    def doubt(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> Doubt | None:
        """Return why a rejection may be too early, see Nominations."""
        return self._nominations.doubt(pod, batch, verdicts) if self._nominations is not None else None

    def reject(self, pod: Pod, batch: NodeBatch, verdicts: Verdicts) -> None:
        """Record the nodes that reject a pod, for preemption."""
        if self._refused_nodes is not None:
            self._refused_nodes.note(pod, batch, verdicts)

    def assume(self, pod: Pod, node: str) -> None:
        """Count a pod on the node that was decided for it."""
        now = self.clock()
        self._count(pod, node, now)
        if pod.in_scheduling_group:
            self._cycles.answered(pod, now)
        if self._refused_nodes is not None:
            self._refused_nodes.forget(pod.uid)

    def take_over(self) -> None:
        """Take over from another process. Call it before the first decision.

        Pods count on their nominated nodes, if a decision of that process may still be bound there. kube-scheduler
        nominates a pod whose binding waits for in-tree plugins, and such a wait can outlive a replica of Kindred. Pods
        that wait for the end of victims are nominated, too. A scheduler requests their decision again.
        """
        self._cycles.begin(self.clock())
        for pod in [*self._mirror.pending]:
            waits = pod.scheduler_name in self._waiting_schedulers and not pod.terminating
            if waits and pod.nominated_node_name and not self._mirror.is_mirrored(pod.uid):
                self._count(pod, pod.nominated_node_name, self.clock())  # in no cycle: no request was for it

    def _count(self, pod: Pod, node: str, now: float) -> None:
        wait = LONGEST_WAIT if pod.scheduler_name in self._waiting_schedulers else 0.0
        self._mirror.assume(pod, node, now)
        self._mirror.finish_binding(pod.uid, now, wait=wait)  # no message reports the binding, so the TTL starts here

    def asked(self, pod: Pod) -> None:
        """Record that a scheduler asks about a pending pod, before the decision for it."""
        _report(self._cycles.asked(pod, self.clock()))

    def review_cycles(self) -> None:
        """End a group's cycle that had no request for a while. Call it every second."""
        _report(self._cycles.review(self.clock()))

    def begin_decision(self, pod: Pod) -> Decision:
        """End the assumption of an earlier decision for a pod, which failed. Return the outcome of a decision now.

        A reserved place of a gang is no decision yet. Each cycle of a scheduling group has a request for a member, so a
        second request is no sign of a failure.
        """
        if self.gangs is not None:
            self.gangs.begin(self.clock())
            if self.gangs.has_reserved(pod.uid):
                return Decision.ASSUMED
        if not self._mirror.is_assumed(pod.uid):
            return Decision.ASSUMED
        self._mirror.forget(pod.uid)
        return Decision.ASSUMED if pod.in_scheduling_group else Decision.REPLACED

    def count(self, decision: Decision) -> None:
        """Count a decision."""
        self.decisions[decision] += 1


def _report(released: Released | None) -> None:
    if released is not None:
        log.info(
            "group %s: fewer than its minimum of %d had a node, so its cycle has bound nothing: released %d places",
            released.group,
            released.minimum,
            len(released.pods),
        )
