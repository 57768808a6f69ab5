"""The smallest set of less important pods on a node whose eviction lets a pod fit.

Source: k8s.io/kubernetes v1.34 pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
(SelectVictimsOnNode) and pkg/scheduler/framework/preemption/preemption.go (DryRunPreemption). As upstream, each check
counts the pods that are nominated for the node (core/scheduling_cycle.py).

The search runs on the mirror itself: it supposes the pods of one node gone, and puts them back one by one (see
Supposition). A copy of all the state that plugins read would cost as much as a sync, at 150,000 pods. A copy of the
node alone is not enough, because pods on other nodes count for affinity and spreading. The search is one synchronous
call, so no other caller sees the supposed state. The state is restored at its end, even if a plugin raises.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from core.framework.evaluation import Failure, FitChecks
from core.framework.interface import AnyFilter, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.what_if import Supposition
from core.objects.groups import SchedulingGroup
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod
from core.objects.quantity import quoted
from core.preemption.disruption import split_by_violation
from core.preemption.importance import most_important_first
from core.scheduling_cycle import nominated_beside

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
        self._nominated = [nominated_beside(mirror, pod, name) for name in names]
        self._budgets = mirror.objects(PodDisruptionBudget).values()
        self._groups = mirror.objects(SchedulingGroup)

    def fits_without(self, position: int, uids: Collection[str]) -> bool:
        """Return whether the pod fits a node after these of its pods are removed."""
        with self._mirror.suppose(after_pre_filter=True) as supposed:
            for each in pods_on(self._mirror, self._names[position]):
                if each.uid in uids:
                    _take_away(each, supposed)
            return self._failure(position) is None

    def find(self, position: int, doomed: Collection[str] = ()) -> Victims | Failure:
        """Return the victims on a node, or why no victims help. A node that fits already is a failure, too.

        Pods whose UIDs are in `doomed` are always victims.
        """
        potential = [
            each
            for each in pods_on(self._mirror, self._names[position])
            if (each.priority < self._priority and not self._is_whole(each)) or each.uid in doomed
        ]
        if not potential:
            return NO_VICTIMS_FOUND
        with self._mirror.suppose(after_pre_filter=True) as supposed:
            for each in potential:
                _take_away(each, supposed)
            failure = self._failure(position)
            if failure is not None:
                return failure
            violating, others = split_by_violation(
                most_important_first(potential),
                self._budgets,
                stop_at_violation=self._mirror.rules.budgets_stop_at_violation,
            )
            violating_victims = self._not_reprieved(violating, doomed, supposed, position)
            victims = [*violating_victims, *self._not_reprieved(others, doomed, supposed, position)]
        if not victims:
            reason = f"expected at least one victim pod on node {quoted(self._names[position])}"
            return Failure(Status(Code.ERROR, (reason,)))
        return Victims(tuple(most_important_first(victims)), len(violating_victims))

    def _is_whole(self, pod: Pod) -> bool:
        group = self._groups.get(pod.scheduling_group) if pod.in_scheduling_group else None
        return group is not None and group.disrupted_whole

    def _failure(self, position: int) -> Failure | None:
        """Return why the pod does not fit the node as supposed, with or without its nominated pods."""
        return self._checks.failure_beside(position, self._nominated[position]) or self._checks.failure(position)

    def _not_reprieved(
        self, pods: Iterable[Pod], doomed: Collection[str], supposed: Supposition, position: int
    ) -> list[Pod]:
        """Put back the pods that can stay, in this order, and return the others."""
        victims = []
        for pod in pods:
            if pod.uid not in doomed:
                supposed.put_back(pod.uid)
                if self._failure(position) is None:
                    continue
                _take_away(pod, supposed)
            victims.append(pod)
        return victims


def dry_run(
    mirror: ClusterMirror, filters: Sequence[AnyFilter], pod: Pod, names: Sequence[str]
) -> list[Victims | Failure]:
    """Return for each of these nodes the victims, or why no victims help. See DryRun."""
    run = DryRun(mirror, filters, pod, names)
    return [run.find(position) for position in range(len(names))]


def pods_on(mirror: ClusterMirror, name: str) -> list[Pod]:
    """Return the pods on a node in the order of their rows. Equally important pods are tried in this order."""
    info = mirror.nodes.infos[name]
    return [mirror.pods.pods[row] for row in sorted(info.rows)]


def _take_away(pod: Pod, supposed: Supposition) -> None:
    """Suppose a pod gone, with the removal that upstream passes to plugins.

    PodTopologySpread does not count terminating pods, but it subtracts every removed pod
    (podtopologyspread/filtering.go, updateWithPod). So while a terminating pod is supposed gone, its count is one too
    low, as upstream.
    """
    supposed.remove(pod, as_running=True)
