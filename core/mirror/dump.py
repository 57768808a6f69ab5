"""What the mirror holds, written out for people who look for an error."""

from collections.abc import Mapping

import msgspec

from core.mirror.assumed_pods import AssumedPod
from core.mirror.node_info import NodeInfo, NodeTable
from core.mirror.pod_columns import PodColumns
from core.mirror.pod_states import PodState
from core.mirror.resource_figures import Figures
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.toleration import Taint


class PodDump(msgspec.Struct, frozen=True, gc=False):
    """A pod that is Added or Assumed; the times, see AssumedPod, only where it is assumed."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    node: str
    state: PodState
    assumed_at: float | None = None
    deadline: float | None = None


class NodeDump(msgspec.Struct, frozen=True, gc=False):
    """A known node with its pods, in the order of their names; see Node. What it offers is among the figures."""

    name: str
    slot: int
    generation: int
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    conditions: dict[str, str]
    images: dict[str, int]
    in_partition: bool
    figures: Figures
    pods: tuple[PodDump, ...]


class MirrorDump(msgspec.Struct, frozen=True, gc=False):
    """The mirror at one generation, or the part of it that was asked for; the figures are the whole cluster's."""

    generation: int
    figures: Figures
    nodes: tuple[NodeDump, ...]
    """In the order of their names; where one pod was asked for, only the node that has it."""
    pods_of_unknown_nodes: tuple[PodDump, ...]


class Dumper:
    """Writes out the parts of a mirror, at the cost of a loop over all of them."""

    def __init__(self, nodes: NodeTable, pods: PodColumns, assumed: Mapping[str, AssumedPod]) -> None:
        self._nodes = nodes
        self._pods = pods
        self._assumed = assumed

    def dump(self, figures: Figures, generation: int, node: str | None, pod: str | None) -> MirrorDump:
        """Write out all, or one node by its name, or one pod by its uid or NAMESPACE/NAME."""
        known, waiting = [], []
        for name, info in sorted(self._nodes.infos.items()):
            if node not in (None, name):
                continue
            pods = self._pods_of(info, pod)
            if info.node is None:
                waiting += pods
            elif pod is None or pods:
                known.append(self._node(info, info.node, pods))
        return MirrorDump(generation, figures, tuple(known), tuple(waiting))

    def _node(self, info: NodeInfo, node: Node, pods: list[PodDump]) -> NodeDump:
        return NodeDump(
            name=info.name,
            slot=info.slot,
            generation=info.generation,
            labels={**node.labels},
            taints=node.taints,
            unschedulable=node.unschedulable,
            conditions={**node.conditions},
            images={**node.images},
            in_partition=bool(self._nodes.in_partition[info.slot]),
            figures=info.figures,
            pods=tuple(pods),
        )

    def _pods_of(self, info: NodeInfo, asked: str | None) -> list[PodDump]:
        pods = [self._pods.pods[row] for row in info.rows]
        shown = [self._pod(pod) for pod in pods if asked in (None, pod.uid, pod.full_name)]
        return sorted(shown, key=lambda pod: (pod.name, pod.uid))

    def _pod(self, pod: Pod) -> PodDump:
        assumed = self._assumed.get(pod.uid)
        if assumed is None:
            return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ADDED)
        return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ASSUMED, assumed.assumed_at, assumed.deadline)
