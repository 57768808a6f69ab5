"""Plans a preemption for a pod that only Kindred rejects on all nodes: the node, and the victims.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/framework/preemption/preemption.go (Evaluator.Preempt). Upstream evaluates
all nodes at once. Here other requests are served in between, so the plan is checked again at the end.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

import msgspec

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
    candidates_wanted,
    dry_run,
    why_not_eligible,
)
from core.profile import Profile
from core.scheduling_cycle import filter_nodes

_AT_ONCE: Final = 8  # nodes; with all predicates and 30 pods a node about 15 ms, in which no other request is served


class EvictionResult(Enum):
    """The result for a pod without a node. Also the values of the metric's label."""

    PREEMPTED = "preempted"
    """The victims were deleted, and the node is nominated."""
    FITS = "fits"
    """The pod now fits on one of the nodes."""
    WAITS = "waits"
    """The pod waits for victims, of its own or another preemption, that still terminate."""
    NEVER = "never"
    """The pod's preemptionPolicy is Never."""
    NO_CANDIDATE = "no_candidate"
    """On no node would victims of lower priority help."""
    NOMINATED = "nominated"
    """kube-scheduler has meanwhile found victims for the pod."""
    SETTLED = "settled"
    """The pod is bound or terminating, or does not exist, such as the pod of a simulator."""
    NOT_GIVEN_UP = "not_given_up"
    """kube-scheduler has not reported the pod as unschedulable."""
    STALE = "stale"
    """The mirror is stale."""
    FAILED = "failed"
    """The API server rejected a request, or was unreachable."""
    DROPPED = "dropped"
    """Too many pods were waiting for their turn."""


class EvictionOutcome(NamedTuple):
    """The result of a turn, and the number of evicted pods."""

    result: EvictionResult
    evicted: int = 0


class Plan(msgspec.Struct, frozen=True, gc=False):
    """The node to nominate, and the pods to evict there, the most important first."""

    node: str
    victims: Sequence[Pod]


class Evaluator:
    """Plans preemptions over a mirror."""

    def __init__(self, profile: Profile, mirror: ClusterMirror, offset: Callable[[int], int]) -> None:
        """`offset` returns, for a number of nodes, the index of the first one to try. Not all nodes may be tried."""
        self._profile = profile
        self._mirror = mirror
        self._offset = offset

    async def plan(self, pod: Pod, names: Sequence[str], going: Mapping[str, Collection[str]]) -> Plan | EvictionResult:
        """Return the plan, or why there is none. A plan is stale after the next event.

        `names` are the nodes that rejected the pod. `going` are the victims, by uid, of other preemptions on some of
        these nodes. If the pod fits there without these victims, beside nominated pods of at least its priority, then
        it waits and preempts no pod. A nomination that the watch has not shown yet does not count. So the pod may wait
        for capacity that another pod takes.
        """
        try:
            return await self._planned(pod, names, going)
        except WorkLimitError:  # recorded by the requests of the pod
            return EvictionResult.NO_CANDIDATE

    async def _planned(
        self, pod: Pod, names: Sequence[str], going: Mapping[str, Collection[str]]
    ) -> Plan | EvictionResult:
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
        wanted = candidates_wanted(len(order))
        found: dict[str, Victims] = {}
        for begin in range(0, len(order), _AT_ONCE):
            part = [name for name in order[begin : begin + _AT_ONCE] if name in self._mirror.nodes.slots]
            looked_at = zip(part, dry_run(self._mirror, self._filters, pod, part), strict=True)
            found |= {name: each for name, each in looked_at if isinstance(each, Victims)}
            if are_enough(found, wanted):
                break
            await asyncio.sleep(0)
        return found
