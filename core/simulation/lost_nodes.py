"""Nodes that are out, which pods cannot use but which are still there, and nodes that are removed.

The two differ for rules that count pods by domain: topology spread counts the domain of a node that is out, unless the
constraint has nodeTaintsPolicy Honor, so a pod may have to wait for that domain (kubernetes#123019). A removed node is
no domain.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from msgspec.structs import replace

from core.explaining.remedy import known
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.node import UNSCHEDULABLE, Node
from core.objects.pod import Taint

UNREACHABLE: Final = Taint("node.kubernetes.io/unreachable", effect="NoSchedule")
_OF_READY: Final = frozenset({UNREACHABLE.key, "node.kubernetes.io/not-ready"})


class NodeState(Enum):
    """What has become of a node."""

    OUT = "out"
    """It is there, and no pod should go to it."""
    REMOVED = "removed"
    """There is no such node."""


def cordoned(node: Node) -> Node:
    """Return a node as `kubectl cordon` and the node lifecycle controller leave it.

    Pods that tolerate node.kubernetes.io/unschedulable, such as those of DaemonSets, still fit.
    """
    taints = node.taints if UNSCHEDULABLE in node.taints else (*node.taints, UNSCHEDULABLE)
    return replace(node, unschedulable=True, taints=taints)


def dead(node: Node) -> Node:
    """Return a node that does not answer, as the node lifecycle controller leaves it.

    Source: k8s.io/kubernetes v1.36 pkg/controller/nodelifecycle/node_lifecycle_controller.go
    (nodeConditionToTaintKeyStatusMap, processNoExecuteTaintBaseEviction: while condition Ready is Unknown).
    """
    others = tuple(each for each in node.taints if each.key not in _OF_READY)
    taints = (*others, UNREACHABLE, replace(UNREACHABLE, effect="NoExecute"))
    conditions = {**node.conditions, "Ready": "Unknown"} if "Ready" in node.conditions else node.conditions
    return replace(node, taints=taints, conditions=conditions)


def lose(
    mirror: ClusterMirror, fork: Fork, names: Iterable[str], state: NodeState, change: Callable[[Node], Node]
) -> None:
    """Suppose that nodes are removed, or out, changed by `cordoned` or `dead`. Raises ForkError for an unknown node.

    Their pods must be supposed gone first if they are to be anywhere else.
    """
    for name in names:
        if state is NodeState.REMOVED:
            fork.remove_node(name)
        else:
            fork.change_node(change(known(mirror, name)))
