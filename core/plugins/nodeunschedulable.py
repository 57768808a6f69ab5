"""NodeUnschedulable: keeps pods off cordoned nodes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from typing import Final

from core.events import Kind
from core.framework.interface import (
    SKIP,
    SUCCESS,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    Status,
    Verdicts,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.objects.node import Node
from core.objects.pod import Pod, Taint

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", effect="NoSchedule")
"""The taint that the node lifecycle controller keeps on cordoned nodes."""
_STATUSES: Final = (SUCCESS, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",)))

_INVALIDATED_BY = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="spec.unschedulable changed",
        because="cordoning a node changes none of its conditions, which the design waits for (PR 58780)",
        touches=lambda before, after: before.unschedulable != after.unschedulable,
    ),
)


class NodeUnschedulable(FilterPlugin[NodeValues[bool]]):
    """Filters by `spec.unschedulable`. A pod tolerates a cordoned node if it tolerates the matching taint."""

    name = "NodeUnschedulable"
    kinds: tuple[Kind, ...] = (Node,)
    class_fields = ("tolerations",)
    invalidated_by = _INVALIDATED_BY

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, NodeValues[bool] | None]:
        """Collect the cordoned nodes. SKIP for a pod that tolerates them."""
        numeric = mirror.rules.numeric_tolerations
        if any(toleration.tolerates(UNSCHEDULABLE, numeric=numeric) for toleration in pod.tolerations):
            return SKIP, None
        return SUCCESS, mirror.derived(_cordoned_nodes)

    def filter(self, state: NodeValues[bool], batch: NodeBatch) -> Verdicts:
        """Reject the cordoned nodes."""
        return Verdicts(state.judged(batch, lambda cordoned: 1 if cordoned else 0), _STATUSES)


def _cordoned_nodes(mirror: ClusterMirror) -> NodeValues[bool]:
    return NodeValues(mirror, lambda node: node.unschedulable or None)
