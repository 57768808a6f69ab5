"""The contents of the mirror in a serialisable form, for debugging."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from core.mirror.cluster_figures import NodeFollower
from core.mirror.node_figures import Figures
from core.mirror.node_info import NodeInfo
from core.mirror.pending_pods import VictimWait
from core.mirror.placement import AssumedPod, PodState
from core.objects.node import Node
from core.objects.pod import Pod, Taint

if TYPE_CHECKING:
    from core.mirror.cluster import ClusterMirror


class PodDump(msgspec.Struct, frozen=True, gc=False):
    """An Added or Assumed pod. Only an Assumed pod has the times, see AssumedPod."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    node: str
    state: PodState
    assumed_at: float | None = None
    deadline: float | None = None


class PendingPodDump(msgspec.Struct, frozen=True, gc=False):
    """A pod without a node that is not assumed."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    nominated_node: str
    """The node that the pod is nominated for, known or not. Empty for none."""
    priority: int


class NodeDump(msgspec.Struct, frozen=True, gc=False):
    """A known node with its pods, ordered by name. See Node. The figures include its resources."""

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
    """A pod that waits for a victim to end."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    since: float
    """When the wait was first seen, by the clock of the assumed pods."""


class VictimDump(msgspec.Struct, frozen=True, gc=False):
    """A victim of preemption that still exists, with the pods that wait for its end, ordered by name."""

    uid: str
    name: str
    """NAMESPACE/NAME"""
    node: str
    preemptors: tuple[PreemptorDump, ...]


class MirrorDump(msgspec.Struct, frozen=True, gc=False):
    """The mirror at one generation, or the requested part of it. The figures cover the whole cluster."""

    generation: int
    figures: Figures
    nodes: tuple[NodeDump, ...]
    """Ordered by name. A dump of one pod has only the pod's node."""
    pods_of_unknown_nodes: tuple[PodDump, ...]
    pending_pods: tuple[PendingPodDump, ...]
    """Ordered by name. A dump of one node has the pods that are nominated for it."""
    victims: tuple[VictimDump, ...]
    """Ordered by name. A dump of one node has the victims on it."""


class StoredNode(msgspec.Struct, frozen=True, gc=False):
    """A known node at one generation, by reference. The source of a NodeDump."""

    node: Node
    slot: int
    generation: int
    in_partition: bool
    figures: Figures
    pods: tuple[Pod, ...]


class Dumper:
    """Creates dumps of parts of a mirror."""

    def __init__(self, mirror: "ClusterMirror", assumed: Mapping[str, AssumedPod] | None = None) -> None:
        """`assumed`: the Assumed pods of an earlier moment, else those of the mirror."""
        self._nodes = mirror.nodes
        self._pods = mirror.pods
        self._assumed = mirror.assumed if assumed is None else assumed
        self._pending = mirror.pending
        self._preemptors = mirror.preemptors

    def dump(self, figures: Figures, generation: int, node: str | None, pod: str | None) -> MirrorDump:
        """Return what ClusterMirror.dump returns. Loops over all nodes and pods, unless a node is named."""
        known: list[NodeDump] = []
        waiting: list[PodDump] = []
        for name in sorted(self._nodes.infos) if node is None else (node,):
            info = self._nodes.infos.get(name)
            if info is None:
                continue
            pods = [each for each in self.pods_of(info) if pod in (None, each.uid, each.full_name)]
            stored = self.stored(info)
            if stored is None:
                waiting += self.pod_dumps(pods)
            elif pod is None or pods:
                known.append(self.node_dump(stored, pods))
        pending = (each for each in self.pending(node) if pod in (None, each.uid, each.full_name))
        waits = self.waits(node, pod)
        return MirrorDump(
            generation, figures, tuple(known), tuple(waiting), tuple(pending_dumps(pending)), tuple(victim_dumps(waits))
        )

    def pending(self, node: str | None) -> Iterator[Pod]:
        """Yield the pods that have no node and are not assumed. With a node, yield only the pods nominated for it."""
        pods = self._pending if node is None else self._pending.nominated_for(node).values()
        return (each for each in pods if each.uid not in self._pods.rows)

    def waits(self, node: str | None, pod: str | None) -> Iterator[VictimWait]:
        """Yield all waits, or those for victims on one node, or for one victim by UID or NAMESPACE/NAME."""
        for each in self._preemptors.waits():
            if node in (None, each.node) and pod in (None, each.victim.uid, each.victim.full_name):
                yield each

    def pods_of(self, info: NodeInfo) -> tuple[Pod, ...]:
        """Return the pods of a node name."""
        return tuple(map(self._pods.pods.__getitem__, info.rows))

    def stored(self, info: NodeInfo) -> StoredNode | None:
        """Return the present state of a node, or None if it is unknown."""
        if info.node is None:
            return None
        inside = bool(self._nodes.in_partition[info.slot])
        return StoredNode(info.node, info.slot, info.generation, inside, info.figures, self.pods_of(info))

    def node_dump(self, stored: StoredNode, pods: Iterable[Pod]) -> NodeDump:
        """Return the dump of a node with these of its pods."""
        node = stored.node
        return NodeDump(
            name=node.name,
            slot=stored.slot,
            generation=stored.generation,
            labels={**node.labels},
            taints=node.taints,
            unschedulable=node.unschedulable,
            conditions={**node.conditions},
            images={**node.images},
            in_partition=stored.in_partition,
            figures=stored.figures,
            pods=tuple(self.pod_dumps(pods)),
        )

    def pod_dumps(self, pods: Iterable[Pod]) -> list[PodDump]:
        """Return the dumps of pods, ordered by name."""
        return sorted(map(self._pod, pods), key=lambda pod: (pod.name, pod.uid))

    def _pod(self, pod: Pod) -> PodDump:
        assumed = self._assumed.get(pod.uid)
        if assumed is None:
            return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ADDED)
        return PodDump(pod.uid, pod.full_name, pod.node_name, PodState.ASSUMED, assumed.assumed_at, assumed.deadline)


def pending_dumps(pods: Iterable[Pod]) -> list[PendingPodDump]:
    """Return the dumps of pods without a node, ordered by name."""
    dumps = (PendingPodDump(each.uid, each.full_name, each.nominated_node_name, each.priority) for each in pods)
    return sorted(dumps, key=lambda pod: (pod.name, pod.uid))


def victim_dumps(waits: Iterable[VictimWait]) -> Iterator[VictimDump]:
    """Yield the dumps of victims. The waits must be ordered by victim."""
    for victim, waiting in groupby(waits, key=lambda each: each.victim):
        preemptors = tuple(PreemptorDump(each.preemptor.uid, each.preemptor.full_name, each.since) for each in waiting)
        yield VictimDump(victim.uid, victim.full_name, victim.node_name, preemptors)


class MirrorCopy:
    """A dump of the whole mirror at one generation, copied and converted in steps.

    The copy holds references. To copy 5,000 nodes takes about 25 ms, and to convert them several times as long. The
    mirror may change between two steps of copying, and the last step makes the copy consistent (see NodeFollower).
    Conversion does not read the mirror, so a client may read slowly.
    """

    def __init__(self, mirror: "ClusterMirror") -> None:
        self._mirror = mirror
        self._dumper = Dumper(mirror)
        self._nodes_by_name: dict[str, StoredNode] = {}  # node name -> the node
        self._waiting: tuple[Pod, ...] = ()
        self._without_node: tuple[Pod, ...] = ()
        self._waits: tuple[VictimWait, ...] = ()
        self.generation = 0
        """The generation of the copy, after the last step."""
        self.figures = Figures({}, {}, {}, {})
        """The figures of the whole cluster."""

    def steps(self) -> Iterator[None]:
        """Copy in steps. The copy may be read after the last step."""
        mirror = self._mirror
        yield from mirror.follow_figures()
        follower = NodeFollower(self._nodes_by_name.keys())
        for name in follower.steps(mirror.nodes.known):
            self._look(name)
            yield
        for name in follower.rest(mirror.nodes.known):
            self._look(name)
        self.figures, self.generation = mirror.figures, mirror.generation
        unknown = (info for info in mirror.nodes.infos.values() if info.node is None)
        self._waiting = tuple(pod for info in unknown for pod in self._dumper.pods_of(info))
        self._without_node = tuple(self._dumper.pending(None))
        self._waits = tuple(mirror.preemptors.waits())
        self._dumper = Dumper(mirror, dict(mirror.assumed))

    def nodes(self) -> Iterator[NodeDump]:
        """Yield the dumps of nodes, ordered by name."""
        for name in sorted(self._nodes_by_name):
            stored = self._nodes_by_name[name]
            yield self._dumper.node_dump(stored, stored.pods)

    def pods_of_unknown_nodes(self) -> Iterator[PodDump]:
        """Yield the dumps of pods on unknown nodes, ordered by the names of the nodes."""
        yield from sorted(self._dumper.pod_dumps(self._waiting), key=lambda pod: pod.node)

    def pending_pods(self) -> Iterator[PendingPodDump]:
        """Yield the dumps of pods without a node, ordered by name."""
        yield from pending_dumps(self._without_node)

    def victims(self) -> Iterator[VictimDump]:
        """Yield the dumps of victims that pods wait for, ordered by name."""
        yield from victim_dumps(self._waits)

    def _look(self, name: str) -> None:
        info = self._mirror.nodes.known.values.get(name)
        stored = None if info is None else self._dumper.stored(info)
        if stored is None:
            self._nodes_by_name.pop(name, None)
        else:
            self._nodes_by_name[name] = stored
