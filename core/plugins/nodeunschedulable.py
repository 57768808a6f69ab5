"""NodeUnschedulable: keeps pods off cordoned nodes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.node_labels import examples
from core.explaining.obstacles import NEAREST, Obstacles, Proposal, Search, Turn, proposed
from core.explaining.remedy import Step, Uncordon
from core.explaining.words import counted, such_as
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.objects.node import UNSCHEDULABLE
from core.objects.pod import Pod

NAME: Final = "NodeUnschedulable"
_STATUSES: Final = (SUCCESS, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",)))


class CordonedNodes(msgspec.Struct, frozen=True, gc=False):
    """The nodes that NodeUnschedulable rejects (spec.unschedulable)."""

    nodes: int
    examples: Sequence[str]

    @property
    def text(self) -> str:
        """The nodes in words."""
        return f"cordoned: {counted(self.nodes, 'node')}, {such_as(self.examples, self.nodes)}"


def is_cordoned(decision: Decision, position: int) -> bool:
    """Return whether NodeUnschedulable rejects a node."""
    rejected = decision.refusing.get(NAME)
    return rejected is not None and bool(rejected[position])


def cordoned_in_cluster(decision: Decision) -> CordonedNodes | None:
    """Return the cordoned nodes, or None if NodeUnschedulable rejects none."""
    rejected = decision.refusing.get(NAME)
    if rejected is None:
        return None
    return CordonedNodes(int(np.count_nonzero(rejected)), examples(decision, rejected))


def _uncordon(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to uncordon nodes that no other plugin rejects, except for the taint of a cordoned node."""
    for position in obstacles.only({NAME, "TaintToleration"})[:NEAREST].tolist():
        plugins = obstacles.of(position)
        # A fix without a step: the only taint goes with the cordon.
        if NAME in plugins and all(
            obstacles.fixes[each](obstacles, position) == [] for each in plugins if each != NAME
        ):
            yield from proposed(obstacles, _uncordoned, position)


def _uncordoned(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    return [Uncordon(obstacles.decision.batch.names[position])]


class NodeUnschedulable(Explained, FilterPlugin[NodeValues[bool]]):
    """Filters by `spec.unschedulable`. A pod tolerates a cordoned node if it tolerates the matching taint."""

    name = NAME
    former_filters = ("CheckNodeUnschedulable",)
    points = ("filter",)
    class_fields = ("tolerations",)
    invalidated_by = (
        node_update(
            when="spec.unschedulable changed",
            because="cordoning a node changes none of its conditions, which the design waits for (PR 58780)",
            reads=lambda node: node.unschedulable,
        ),
    )
    keeps_off = "cordons of nodes"
    events = (
        Event("Node", ("Add", "UpdateNodeTaint")),
        Event("Pod", ("UpdatePodToleration",), of_pod_itself=True),
    )
    measured = Measured(
        on_node={"cordoned": lambda decision, position, _: is_cordoned(decision, position)},
        in_cluster={"cordoned": lambda decision, _: cordoned_in_cluster(decision)},
    )
    remedies = Remedies(searches=(Search(Turn.UNCORDON, _uncordon),), fix=_uncordoned)

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
