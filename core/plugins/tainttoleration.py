"""TaintToleration: keeps pods off nodes with untolerated taints, and prefers nodes without PreferNoSchedule taints.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
"""

from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import msgspec

from core.events import Kind
from core.framework.interface import (
    SUCCESS,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    ScorePlugin,
    Status,
    Verdicts,
    default_normalize,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.mirror.topology import Int64Array
from core.objects.node import Node
from core.objects.pod import KEEP_PODS_OFF, Pod, Taint, ToleratedTaints

Taints: TypeAlias = tuple[Taint, ...]

_PREFER_NO_SCHEDULE: Final = frozenset({"PreferNoSchedule"})

_UNTOLERATED: Final = (SUCCESS, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)))

_INVALIDATED_BY = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="a taint changed, or their order",
        because="the first taint that is not tolerated is the reason",
        touches=lambda before, after: before.taints != after.taints,
    ),
)


class TaintsAndTolerations(msgspec.Struct, frozen=True):
    """The taints of all nodes, and the tolerations of a pod. Stale after the next event."""

    taints: NodeValues[Taints]
    tolerated: ToleratedTaints
    named: bool
    """Whether the reason names the first untolerated taint."""

    def untolerated(self, taints: Taints | None, effects: AbstractSet[str]) -> list[Taint]:
        """Return the taints of these effects that the pod does not tolerate, in the order of the node's spec."""
        return [taint for taint in taints or () if taint.effect in effects and taint not in self.tolerated]


class TaintToleration(FilterPlugin[TaintsAndTolerations], ScorePlugin[TaintsAndTolerations]):
    """Filters by NoSchedule and NoExecute taints, and scores by the number of untolerated PreferNoSchedule taints."""

    name = "TaintToleration"
    kinds: tuple[Kind, ...] = (Node,)
    class_fields = ("tolerations",)
    invalidated_by = _INVALIDATED_BY
    scores_alone = True
    normalizes_alone = False

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, TaintsAndTolerations]:
        """Collect taints and tolerations."""
        rules = mirror.rules
        tolerated = ToleratedTaints(pod.tolerations, numeric=rules.numeric_tolerations)
        return SUCCESS, TaintsAndTolerations(mirror.derived(_taints), tolerated, rules.taint_named_in_reason)

    def filter(self, state: TaintsAndTolerations, batch: NodeBatch) -> Verdicts:
        """Reject every node with an untolerated taint. Until v1.34 the reason names the first such taint."""
        if not state.named:
            return Verdicts(
                state.taints.judged(batch, lambda taints: 1 if state.untolerated(taints, KEEP_PODS_OFF) else 0),
                _UNTOLERATED,
            )
        statuses = [SUCCESS]
        codes: dict[Taint, int] = {}

        def judge(taints: Taints | None) -> int:
            untolerated = state.untolerated(taints, KEEP_PODS_OFF)
            if not untolerated:
                return 0
            first = untolerated[0]
            if first not in codes:
                codes[first] = len(statuses)
                statuses.append(_untolerated(first))
            return codes[first]

        return Verdicts(state.taints.judged(batch, judge), tuple(statuses))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, TaintsAndTolerations]:
        """Collect taints and tolerations. Never SKIP: if no node has a taint, each gets MAX_NODE_SCORE instead of 0."""
        return self.pre_filter(mirror, pod)

    def score(self, state: TaintsAndTolerations, batch: NodeBatch) -> Int64Array:
        """Count the untolerated PreferNoSchedule taints of every node."""
        return state.taints.judged(batch, lambda taints: len(state.untolerated(taints, _PREFER_NO_SCHEDULE)))

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Give MAX_NODE_SCORE to nodes without such taints, and 0 to the nodes with the most."""
        return default_normalize(raw, reverse=True)


def _taints(mirror: ClusterMirror) -> NodeValues[Taints]:
    return NodeValues(mirror, lambda node: node.taints or None)


def _untolerated(taint: Taint) -> Status:
    reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
