"""The contents of the mirror, written out for debugging."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from core.mirror.assumed_pods import AssumedPod
from core.mirror.cluster_figures import ClusterFigures
from core.mirror.node_follower import NodeFollower
from core.mirror.node_info import NodeInfo, NodeTable
from core.mirror.pending_pods import PendingPods
from core.mirror.pod_columns import PodColumns
from core.mirror.pod_states import PodState
from core.mirror.preemptors import Preemptors, VictimWait
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


class PendingPodDump(msgspec.Struct, frozen=True, gc=False):
    """A pod that has no node and is not assumed."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    nominated_node: str
    """The node that it is nominated for, known or not; empty for none."""
    priority: int


class NodeDump(msgspec.Struct, frozen=True, gc=False):
    """A known node with its pods, in the order of their names; see Node. The figures have its resources."""

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


class PreemptorDump(msgspec.Struct, frozen=True, gc=False):
    """A pod that waits for the end of a victim."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    since: float
    """When it was seen first, by the clock of the assumed pods."""


class VictimDump(msgspec.Struct, frozen=True, gc=False):
    """A victim of preemption that is still there, with the pods that wait for its end, in the order of their names."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    node: str
    preemptors: tuple[PreemptorDump, ...]


class MirrorDump(msgspec.Struct, frozen=True, gc=False):
    """The mirror at one generation, or the requested part of it; the figures are the whole cluster's."""

    generation: int
    figures: Figures
    nodes: tuple[NodeDump, ...]
    """In the order of their names; in a dump of one pod, only the node that has it."""
    pods_of_unknown_nodes: tuple[PodDump, ...]
    pending_pods: tuple[PendingPodDump, ...]
    """In the order of their names. In a dump of one node, the pods that are nominated for it."""
    victims: tuple[VictimDump, ...]
    """In the order of their names. In a dump of one node, the victims on it."""


class HeldNode(msgspec.Struct, frozen=True, gc=False):
    """A known node at one generation, by reference: the source of a NodeDump."""

    node: Node
    slot: int
    generation: int
    in_partition: bool
    figures: Figures
    pods: tuple[Pod, ...]


class Dumper:
    """Writes out parts of a mirror."""

    def __init__(
        self,
        nodes: NodeTable,
        pods: PodColumns,
        assumed: Mapping[str, AssumedPod],
        pending: PendingPods,
        preemptors: Preemptors,
    ) -> None:
        self._nodes = nodes
        self._pods = pods
        self._assumed = assumed
        self._pending = pending
        self._preemptors = preemptors

    def dump(self, figures: Figures, generation: int, node: str | None, pod: str | None) -> MirrorDump:
        """Write out all, or one node by its name, or one pod by its uid or NAMESPACE/NAME.

        Costs a loop over all of them, unless a node is named.
        """
        known: list[NodeDump] = []
        waiting: list[PodDump] = []
        for name in sorted(self._nodes.infos) if node is None else (node,):
            info = self._nodes.infos.get(name)
            if info is None:
                continue
            pods = [each for each in self.pods_of(info) if pod in (None, each.uid, each.full_name)]
            held = self.held(info)
            if held is None:
                waiting += self.pod_dumps(pods)
            elif pod is None or pods:
                known.append(self.node_dump(held, pods))
        pending = (each for each in self.pending(node) if pod in (None, each.uid, each.full_name))
        waits = self.waits(node, pod)
        return MirrorDump(
            generation, figures, tuple(known), tuple(waiting), tuple(pending_dumps(pending)), tuple(victim_dumps(waits))
        )

    def pending(self, node: str | None) -> Iterator[Pod]:
        """Yield the pods that have no node and are not assumed; with a node, only those nominated for it."""
        pods = self._pending if node is None else self._pending.nominated_for(node).values()
        return (each for each in pods if each.uid not in self._pods.rows)

    def waits(self, node: str | None, pod: str | None) -> Iterator[VictimWait]:
        """Yield who waits for whom, or the waits for victims on one node, or for one by its uid or NAMESPACE/NAME."""
        for each in self._preemptors.waits():
            if node in (None, each.node) and pod in (None, each.victim.uid, each.victim.full_name):
                yield each

    def pods_of(self, info: NodeInfo) -> tuple[Pod, ...]:
        """Return the pods of a node name."""
        return tuple(map(self._pods.pods.__getitem__, info.rows))

    def held(self, info: NodeInfo) -> HeldNode | None:
        """Return a node as it is; None if it is unknown."""
        if info.node is None:
            return None
        inside = bool(self._nodes.in_partition[info.slot])
        return HeldNode(info.node, info.slot, info.generation, inside, info.figures, self.pods_of(info))

    def node_dump(self, held: HeldNode, pods: Iterable[Pod]) -> NodeDump:
        """Write out a node, with these of its pods."""
        node = held.node
        return NodeDump(
            name=node.name,
            slot=held.slot,
            generation=held.generation,
            labels={**node.labels},
            taints=node.taints,
            unschedulable=node.unschedulable,
            conditions={**node.conditions},
            images={**node.images},
            in_partition=held.in_partition,
            figures=held.figures,
            pods=tuple(self.pod_dumps(pods)),
        )

    def pod_dumps(self, pods: Iterable[Pod]) -> list[PodDump]:
        """Write out pods, in the order of their names."""
        return sorted(map(self._pod, pods), key=lambda pod: (pod.name, pod.uid))

    def _pod(self, pod: Pod) -> PodDump:
        assumed = self._assumed.get(pod.uid)
        if assumed is None:
            return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ADDED)
        return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ASSUMED, assumed.assumed_at, assumed.deadline)


def pending_dumps(pods: Iterable[Pod]) -> list[PendingPodDump]:
    """Write out pods that have no node, in the order of their names."""
    dumps = (PendingPodDump(each.uid, each.full_name, each.nominated_node_name, each.priority) for each in pods)
    return sorted(dumps, key=lambda pod: (pod.name, pod.uid))


def victim_dumps(waits: Iterable[VictimWait]) -> Iterator[VictimDump]:
    """Write out the victims of waits that are in the order of victims."""
    for victim, waiting in groupby(waits, key=lambda each: each.victim):
        preemptors = tuple(PreemptorDump(each.preemptor.uid, each.preemptor.full_name, each.since) for each in waiting)
        yield VictimDump(victim.uid, victim.full_name, victim.node_name, preemptors)


class MirrorCopy:
    """A dump of the whole mirror at one generation, copied and written out in steps.

    It holds references: to copy 5,000 nodes takes about 25 ms, to write them out several times as long. While it is
    copied, the mirror may change between two steps; the last step makes it whole (see NodeFollower). While it is
    written out, the mirror does not matter any more, so a client may take its time.
    """

    def __init__(  # noqa: PLR0913  # the parts of a mirror
        self,
        nodes: NodeTable,
        pods: PodColumns,
        assumed: Mapping[str, AssumedPod],
        pending: PendingPods,
        *,
        preemptors: Preemptors,
        figures: ClusterFigures,
    ) -> None:
        self._table = nodes
        self._dumper = Dumper(nodes, pods, assumed, pending, preemptors)
        self._all_figures = figures
        self._held: dict[str, HeldNode] = {}  # node name -> the node
        self._waiting: tuple[Pod, ...] = ()
        self._without_node: tuple[Pod, ...] = ()
        self._pods = pods
        self._assumed = assumed
        self._pending = pending
        self._preemptors = preemptors
        self._waits: tuple[VictimWait, ...] = ()
        self.generation = 0
        """The one that it is of, after the last step."""
        self.figures = Figures({}, {}, {}, {})
        """The whole cluster's."""

    def steps(self) -> Iterator[None]:
        """Copy. The copy may be read when this is exhausted."""
        known = self._table.known
        yield from self._all_figures.steps(known)
        follower = NodeFollower(self._held.keys())
        for name in follower.steps(known):
            self._look(name)
            yield
        for name in follower.rest(known):
            self._look(name)
        self.figures = self._all_figures.follow(known)
        unknown = (info for info in self._table.infos.values() if info.node is None)
        self._waiting = tuple(pod for info in unknown for pod in self._dumper.pods_of(info))
        self._without_node = tuple(self._dumper.pending(None))
        self._waits = tuple(self._preemptors.waits())
        self._dumper = Dumper(self._table, self._pods, dict(self._assumed), self._pending, self._preemptors)
        self.generation = known.latest

    def nodes(self) -> Iterator[NodeDump]:
        """Write out the nodes, in the order of their names."""
        for name in sorted(self._held):
            held = self._held[name]
            yield self._dumper.node_dump(held, held.pods)

    def pods_of_unknown_nodes(self) -> Iterator[PodDump]:
        """Write out the pods that wait for their nodes, in the order of the nodes' names."""
        yield from sorted(self._dumper.pod_dumps(self._waiting), key=lambda pod: pod.node)

    def pending_pods(self) -> Iterator[PendingPodDump]:
        """Write out the pods that have no node, in the order of their names."""
        yield from pending_dumps(self._without_node)

    def victims(self) -> Iterator[VictimDump]:
        """Write out the victims that others wait for, in the order of their names."""
        yield from victim_dumps(self._waits)

    def _look(self, name: str) -> None:
        info = self._table.known.values.get(name)
        held = None if info is None else self._dumper.held(info)
        if held is None:
            self._held.pop(name, None)
        else:
            self._held[name] = held
