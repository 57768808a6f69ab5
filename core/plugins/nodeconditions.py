"""The predicates that read node conditions directly, for clusters that do not turn conditions into taints.

Source: k8s.io/kubernetes v1.16 pkg/scheduler/algorithm/predicates (predicates.go; error.go has the reasons), the last
minor release with these predicates. Up to v1.13 there was also OutOfDisk, a condition that no kubelet reports any more.
All failures are unresolvable, because preemption cannot change a condition (core/generic_scheduler.go,
unresolvablePredicateFailureErrors).
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.objects.node import Node
from core.objects.pod import Pod

Reasons: TypeAlias = tuple[str, ...]


class Report(msgspec.Struct, frozen=True, gc=False):
    """A node's report: type and status of its conditions, in the order of its status, and whether it is cordoned."""

    conditions: tuple[tuple[str, str], ...]
    unschedulable: bool

    @classmethod
    def of(cls, node: Node) -> "Report":
        """Return the report of a node."""
        return cls(tuple(node.conditions.items()), node.unschedulable)


class _ConditionPredicate(FilterPlugin[NodeValues[Report]]):
    """The common part of the predicates: the reasons follow from the declared fields of a node's report."""

    class_fields: tuple[str, ...] = ()

    def __init__(self, reasons: Callable[[Report], Reasons], reads: str) -> None:
        self._reasons = reasons
        self.invalidated_by = (
            node_update(
                when=f"other reasons follow from {reads}",
                because="nothing else is read, and a heartbeat that says the same again changes nothing",
                reads=lambda node: reasons(Report.of(node)),
            ),
        )

    def pre_filter(self, mirror: ClusterMirror, _pod: Pod) -> tuple[Status, NodeValues[Report] | None]:
        """Collect the reports of all nodes."""
        return SUCCESS, mirror.derived(_reports)

    def filter(self, state: NodeValues[Report], batch: NodeBatch) -> Verdicts:
        """Reject every node whose report gives reasons."""
        codes: dict[Reasons, int] = {(): 0}

        def judge(report: Report | None) -> int:
            return codes.setdefault(self._reasons(report), len(codes)) if report is not None else 0

        judged = state.judged(batch, judge)
        failures = [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons) for reasons in codes if reasons]
        return Verdicts(judged, (SUCCESS, *failures))


class CheckNodeCondition(_ConditionPredicate):
    """Filters by readiness, network and cordon, regardless of tolerations. A missing condition gives no reason.

    Source: CheckNodeConditionPredicate.
    """

    name = "CheckNodeCondition"

    def __init__(self) -> None:
        super().__init__(_unfitness, "Ready, NetworkUnavailable or spec.unschedulable")


class CheckNodeMemoryPressure(_ConditionPredicate):
    """Filters best-effort pods by memory pressure (CheckNodeMemoryPressurePredicate). Other pods pass."""

    name = "CheckNodeMemoryPressure"
    class_fields = ("best_effort",)

    def __init__(self) -> None:
        super().__init__(_pressure("MemoryPressure", "node(s) had memory pressure"), "MemoryPressure")

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, NodeValues[Report] | None]:
        """Collect the reports of all nodes. SKIP for a pod that is not best-effort."""
        return super().pre_filter(mirror, pod) if pod.best_effort else (SKIP, None)


class CheckNodeDiskPressure(_ConditionPredicate):
    """Filters all pods by disk pressure (CheckNodeDiskPressurePredicate)."""

    name = "CheckNodeDiskPressure"

    def __init__(self) -> None:
        super().__init__(_pressure("DiskPressure", "node(s) had disk pressure"), "DiskPressure")


class CheckNodePIDPressure(_ConditionPredicate):
    """Filters all pods by PID pressure (CheckNodePIDPressurePredicate)."""

    name = "CheckNodePIDPressure"

    def __init__(self) -> None:
        super().__init__(_pressure("PIDPressure", "node(s) had pid pressure"), "PIDPressure")


def _reports(mirror: ClusterMirror) -> NodeValues[Report]:
    return NodeValues(mirror, Report.of)


def _unfitness(report: Report) -> Reasons:
    reasons = []
    for kind, status in report.conditions:
        if kind == "Ready" and status != "True":
            reasons.append("node(s) were not ready")
        elif kind == "NetworkUnavailable" and status != "False":
            reasons.append("node(s) had unavailable network")
    if report.unschedulable:
        reasons.append("node(s) were unschedulable")
    return tuple(reasons)


def _pressure(kind: str, reason: str) -> Callable[[Report], Reasons]:
    under_pressure = (kind, "True")  # Unknown is no pressure
    return lambda report: (reason,) if under_pressure in report.conditions else ()
