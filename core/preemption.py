"""Preemption: which less important pods would have to leave a node, and on which node that does the least harm.

Source: k8s.io/kubernetes v1.34 pkg/scheduler: framework/plugins/defaultpreemption/default_preemption.go,
framework/preemption/preemption.go and util/utils.go.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from core.framework.evaluation import Failure, FitChecks
from core.framework.interface import AnyFilter, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.work import WorkLimitError
from core.objects.groups import SchedulingGroup
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod
from core.objects.quantity import quoted
from core.scheduling_cycle import nominated_on

# The order of pods by importance (utils.go: MoreImportantPod, GetPodStartTime, GetEarliestPodStartTime).

StartTime: TypeAlias = tuple[bool, str]


def start_time(pod: Pod) -> StartTime:
    """Return a sort key for the start time of a pod. A pod that has not started sorts after all that have.

    Upstream uses the present time for such a pod, so the order of two of them is arbitrary. Here they are equal.
    """
    return not pod.start_time, pod.start_time


def most_important_first(pods: Iterable[Pod]) -> list[Pod]:
    """Sort by priority, highest first, then by start time, oldest first. The sort is stable."""
    return sorted(pods, key=lambda pod: (-pod.priority, start_time(pod)))


def earliest_start_time(pods: Sequence[Pod]) -> StartTime:
    """Return the earliest start time among the pods with the highest priority. `pods` must not be empty."""
    highest = max(pod.priority for pod in pods)
    return min(start_time(pod) for pod in pods if pod.priority == highest)


# Which evictions would violate a PodDisruptionBudget (default_preemption.go: filterPodsWithPDBViolation; since v1.37
# framework/preemption/util.go: FilterVictimsWithPDBViolation).


def split_by_violation(
    pods: Iterable[Pod], budgets: Collection[PodDisruptionBudget], *, stop_at_violation: bool
) -> tuple[list[Pod], list[Pod]]:
    """Return the pods whose eviction violates a budget, and the other pods, each in the given order.

    Each pod takes one disruption from every budget that covers it, unless the budget already counts the pod as
    disrupted. A pod that the search later spares takes one, too. A pod violates if any of its budgets drops below 0.
    With `stop_at_violation`, the pod then takes nothing from the budgets after that one.
    """
    allowed = {budget.full_name: budget.disruptions_allowed for budget in budgets}
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        violates = False
        for budget in budgets:
            if (
                budget.namespace == pod.namespace
                and budget.covers(pod.labels)
                and pod.name not in budget.disrupted_pods
            ):
                allowed[budget.full_name] -= 1
                violates |= allowed[budget.full_name] < 0
                if violates and stop_at_violation:
                    break
        (violating if violates else others).append(pod)
    return violating, others


# The smallest set of less important pods on a node whose eviction lets a pod fit (default_preemption.go:
# SelectVictimsOnNode; preemption.go: DryRunPreemption). As upstream, each check counts the pods that are nominated for
# the node (core/scheduling_cycle.py).
#
# The search runs on the mirror itself: it supposes the pods of one node gone, and puts them back one by one (see
# Fork). A copy of all the state that plugins read would cost as much as a sync, at 150,000 pods. A copy of the
# node alone is not enough, because pods on other nodes count for affinity and spreading. The search is one
# synchronous call, so no other caller sees the supposed state. The state is restored at its end, even if a plugin
# raises.

NO_VICTIMS_FOUND: Final = Failure(
    Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",))
)


class Victims(msgspec.Struct, frozen=True, gc=False):
    """The pods to evict, most important first, and how many of them violate a PodDisruptionBudget."""

    pods: tuple[Pod, ...]
    pdb_violations: int


class DryRun:
    """A dry run of preemption for one pod on some nodes of the mirror. Stale after the next event.

    Upstream tries only nodes with a failed status that preemption can resolve. Here the caller chooses the nodes. A
    member of a group that is disrupted only as a whole (disruptionMode `all`) is no victim. Upstream evicts all its
    members, on other nodes, too. Methods take a node's position in `names`.
    """

    def __init__(self, mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, names: Sequence[str]) -> None:
        self._mirror = mirror
        self._names = names
        self._priority = pod.priority
        self._checks = FitChecks(mirror, filters, pod, names)
        self._nominated = [nominated_on(mirror, pod, name) for name in names]
        self._budgets = mirror.objects(PodDisruptionBudget).values()
        self._groups = mirror.objects(SchedulingGroup)

    def fits_without(self, position: int, uids: Collection[str]) -> bool:
        """Return whether the pod fits a node after these of its pods are removed."""
        with self._mirror.fork(after_pre_filter=True) as fork:
            for each in self._mirror.pods_on(self._names[position]):
                if each.uid in uids:
                    _take_away(each, fork)
            return self._failure(position) is None

    def find(self, position: int, doomed: Collection[str] = ()) -> Victims | Failure:
        """Return the victims on a node, or why no victims help. A node that fits already is a failure, too.

        Pods whose UIDs are in `doomed` are always victims.
        """
        potential = [
            each
            for each in self._mirror.pods_on(self._names[position])  # equally important ones are tried in this order
            if (each.priority < self._priority and not self._is_whole(each)) or each.uid in doomed
        ]
        if not potential:
            return NO_VICTIMS_FOUND
        with self._mirror.fork(after_pre_filter=True) as fork:
            for each in potential:
                _take_away(each, fork)
            failure = self._failure(position)
            if failure is not None:
                return failure
            violating, others = split_by_violation(
                most_important_first(potential),
                self._budgets,
                stop_at_violation=self._mirror.rules.budgets_stop_at_violation,
            )
            violating_victims = self._not_reprieved(violating, doomed, fork, position)
            victims = [*violating_victims, *self._not_reprieved(others, doomed, fork, position)]
        if not victims:
            reason = f"expected at least one victim pod on node {quoted(self._names[position])}"
            return Failure(Status(Code.ERROR, (reason,)))
        return Victims(tuple(most_important_first(victims)), len(violating_victims))

    def _is_whole(self, pod: Pod) -> bool:
        group = self._groups.get(pod.scheduling_group) if pod.in_scheduling_group else None
        return group is not None and group.disrupted_whole

    def _failure(self, position: int) -> Failure | None:
        """Return why the pod does not fit the node as supposed, with or without its nominated pods."""
        return self._checks.failure_with(position, self._nominated[position]) or self._checks.failure(position)

    def _not_reprieved(self, pods: Iterable[Pod], doomed: Collection[str], fork: Fork, position: int) -> list[Pod]:
        """Put back the pods that can stay, in this order, and return the others."""
        victims = []
        for pod in pods:
            if pod.uid not in doomed:
                fork.put_back(pod.uid)
                if self._failure(position) is None:
                    continue
                _take_away(pod, fork)
            victims.append(pod)
        return victims


def dry_run(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, names: Sequence[str]
) -> list[Victims | Failure]:
    """Return for each of these nodes the victims, or why no victims help. See DryRun."""
    run = DryRun(mirror, filters, pod, names)
    return [run.find(position) for position in range(len(names))]


def _take_away(pod: Pod, fork: Fork) -> None:
    """Suppose a pod gone, with the removal that upstream passes to plugins.

    PodTopologySpread does not count terminating pods, but it subtracts every removed pod
    (podtopologyspread/filtering.go, updateWithPod). So while a terminating pod is supposed gone, its count is one too
    low, as upstream.
    """
    fork.remove(pod, as_running=True)


# The choice of the node where preemption does the least harm (preemption.go: pickOneNodeForPreemption).

_LOWEST_PRIORITY: Final = -(2**31)
_HARM: Final[tuple[Callable[[Victims], Any], ...]] = (
    lambda victims: victims.pdb_violations,
    lambda victims: victims.pods[0].priority,
    # No summand is negative. Otherwise many victims with a negative priority would have a lower sum than few.
    lambda victims: sum(pod.priority - _LOWEST_PRIORITY for pod in victims.pods),
    lambda victims: len(victims.pods),
)


def best_nodes(candidates: Mapping[str, Victims]) -> list[str]:
    """Return the nodes that upstream chooses among at random (it loops over a map), in the order of the candidates.

    These nodes have the fewest violations of PodDisruptionBudgets. Ties are broken in turn by the least important first
    victim, the lowest sum of priorities, the fewest victims, and the latest earliest start time of the most important
    victims.
    """
    best = list(candidates)
    for harm in _HARM:
        least = min((harm(candidates[name]) for name in best), default=None)
        best = [name for name in best if harm(candidates[name]) == least]
    latest = max((earliest_start_time(candidates[name].pods) for name in best), default=None)
    return [name for name in best if earliest_start_time(candidates[name].pods) == latest]


def least_harm(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, names: Sequence[str]
) -> tuple[str, Sequence[Pod]]:
    """Return the first of the best of these nodes, and its victims. None, if it helps nowhere or takes too much work.

    The work is not charged to the current evaluation.
    """
    try:
        with mirror.work.apart():
            found = dry_run(mirror, filters, mirror.counted(pod), names)
    except WorkLimitError:
        return "", ()
    candidates = {name: each for name, each in zip(names, found, strict=True) if isinstance(each, Victims)}
    best = best_nodes(candidates)[:1]
    return (best[0], candidates[best[0]].pods) if best else ("", ())


# How many candidate nodes preemption looks for (v1.36 default_preemption.go: calculateNumCandidates, with the defaults
# of DefaultPreemptionArgs; preemption.go: DryRunPreemption).

_MIN_CANDIDATE_NODES_PERCENTAGE: Final = 10
_MIN_CANDIDATE_NODES_ABSOLUTE: Final = 100


def candidates_needed(nodes: int) -> int:
    """Return how many candidates are enough, if preemption might help on `nodes` nodes."""
    return min(max(nodes * _MIN_CANDIDATE_NODES_PERCENTAGE // 100, _MIN_CANDIDATE_NODES_ABSOLUTE), nodes)


def are_enough(candidates: Mapping[str, Victims], needed: int) -> bool:
    """Return whether the search may end: there are enough candidates, and one violates no PodDisruptionBudget."""
    return len(candidates) >= needed and any(not each.pdb_violations for each in candidates.values())


# Whether a pod may preempt other pods (default_preemption.go: PodEligibleToPreemptOthers).

NEVER: Final = "Never"
"""The preemptionPolicy of a pod that waits for free capacity instead of preempting."""
POLICY_NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING_VICTIM: Final = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(mirror: ClusterMirror, pod: Pod, nominated_node_code: Code) -> str:
    """Return upstream's reason why the pod may not preempt, or the empty text if it may.

    `nominated_node_code` is the filter's status code on the pod's nominated node, if it has one. If preemption cannot
    help on that node, the pod may preempt elsewhere. Else the pod waits until its victims on that node have terminated.
    """
    if pod.preemption_policy == NEVER:
        return POLICY_NEVER
    name = pod.nominated_node_name
    if name not in mirror.nodes.slots or nominated_node_code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    waits = any(each.preempted and each.priority < pod.priority for each in mirror.pods_on(name))
    return TERMINATING_VICTIM if waits else ""


# Checks the scheduler's candidates against Kindred's predicates, and adds the missing victims (preemption.go:
# callExtenders).


class Offer(msgspec.Struct, frozen=True, gc=False):
    """The UIDs of the victims on a node, and how many of them violate a PodDisruptionBudget."""

    uids: tuple[str, ...] = ()
    pdb_violations: int = 0


def accepted(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, offers: Mapping[str, Offer], more: Sequence[str] = ()
) -> dict[str, Offer]:
    """Return each node where preemption helps, with all its victims: the offered nodes in their order, then `more`.

    The scheduler's victims satisfy its own predicates, which may differ from Kindred's. They stay victims, even if they
    are not in the mirror (yet). If the pod then fits, the offer is accepted unchanged. Else further victims are added.

    A node is dropped if no victims help, or if no victims are needed, because the scheduler rejects an empty list. It
    is also dropped if the mirror does not have it, or if it belongs to another scheduler.

    `more` are nodes that the scheduler does not offer, because only Kindred's predicates reject them. They are tried in
    their order, until there are as many candidates as the scheduler wants: 500 at 5,000 nodes.
    """
    if pod.preemption_policy == NEVER:
        return {}
    offered = _of_this_scheduler(mirror, [name for name in offers if name in mirror.nodes.slots])
    others = _of_this_scheduler(mirror, [name for name in more if name in mirror.nodes.slots and name not in offers])
    needed = candidates_needed(len(offered) + len(others))
    names = [*offered, *others[:needed]]
    run = DryRun(mirror, filters, pod, names)
    found: dict[str, Offer] = {}
    for position, name in enumerate(names):
        if position >= len(offered) and len(found) >= needed:
            break
        completed = _completed(run, position, offers.get(name, Offer()))
        if completed is not None:
            found[name] = completed
    return found


def _of_this_scheduler(mirror: ClusterMirror, names: Sequence[str]) -> Sequence[str]:
    outside = mirror.batch(names).out_of_partition
    return names if outside is None else [names[position] for position in np.flatnonzero(~outside).tolist()]


def _completed(run: DryRun, position: int, offer: Offer) -> Offer | None:
    if run.fits_without(position, offer.uids):
        return offer if offer.uids else None
    found = run.find(position, doomed=offer.uids)
    if isinstance(found, Failure):
        return None
    uids = [pod.uid for pod in found.pods]
    unknown = [uid for uid in offer.uids if uid not in uids]
    # The scheduler may have counted budgets that the mirror does not have.
    return Offer((*uids, *unknown), max(found.pdb_violations, offer.pdb_violations))
