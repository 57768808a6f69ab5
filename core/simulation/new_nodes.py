"""Nodes that are added like an existing one, with the pods that come with each node."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from core.explaining.owners import belongs_to_node
from core.explaining.remedy import add_copy, copy_of, is_leaving, is_trouble, known
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.affinity import FieldRequirement, NodeAffinity, NodeSelector, NodeSelectorTerm
from core.objects.node import ZONE, Node
from core.objects.pod import Pod
from core.simulation.facts import copy_of_pod, is_of_zone
from core.simulation.moves import Basis
from core.simulation.orders import FIRST, arrival
from core.simulation.placing import Outcome, Placing, Steps


class NodeLike(NamedTuple):
    """The node to copy, and how often."""

    name: str
    most: int = 1_000
    """How many copies are added at most."""
    zone: str = ""
    """The zone of the copies instead. Empty: that of the node."""

    def zone_in(self, mirror: ClusterMirror) -> str:
        """Return the zone of the copies, empty for none."""
        return self.zone or known(mirror, self.name).labels.get(ZONE, "")

    def labels_instead(self, node: Node) -> Mapping[str, str]:
        """Return the labels that the copies have instead: CSI drivers have labels of their own with the zone."""
        old = node.labels.get(ZONE)
        same = {key: self.zone for key, value in node.labels.items() if is_of_zone(key) and value == old}
        return {**same, ZONE: self.zone} if self.zone else {}


class NewNodes:
    """Adds nodes for pods that fit nowhere, in the fork of one order."""

    def __init__(self, basis: Basis, fork: Fork, placing: Placing, like: NodeLike) -> None:
        """Prepare copies of a node. Raises ForkError if there is no node to copy."""
        self.names: list[str] = []
        self._mirror = basis.mirror
        self._fork = fork
        self._placing = placing
        self._like = like
        self._node = known(basis.mirror, like.name)
        self._daemons = [*_daemons(basis.mirror)]
        of_node = filter(belongs_to_node, basis.mirror.pods_on(like.name))
        self._static = [pod for pod in of_node if not pod.of_daemon_set]

    def placed(self, pod: Pod) -> Steps[Outcome | None]:
        """Add a node, and place a pod. Return None, without the node, if the pod fits nowhere even so."""
        if len(self.names) >= self._like.most:
            return None
        savepoint = self._fork.savepoint()
        name = yield from self._add()
        (outcome,) = yield from self._placing.place([pod])
        if outcome.is_placed:
            self.names.append(name)
            return outcome
        self._fork.revert_to(savepoint)
        return None

    def _add(self) -> Steps[str]:
        node = self._copy()
        add_copy(self._mirror, self._fork, self._like.name, node, self._static)
        pinned = [_pinned(pod, node.name) for pod in self._daemons]
        yield from self._placing.place(arrival(pinned, FIRST))
        return node.name

    def _copy(self) -> Node:
        number = 1 + len(self.names)
        while (name := f"{self._like.name}-copy-{number}") in self._mirror.nodes.infos:
            number += 1
        node = copy_of(self._node, name, self._like.labels_instead(self._node))
        return replace(node, taints=tuple(each for each in node.taints if not (is_trouble(each) or is_leaving(each))))


def _daemons(mirror: ClusterMirror) -> Iterator[Pod]:
    """Yield a pod of each DaemonSet. Loops over all pods: 30 ms at 150,000."""
    seen = set()
    for _, pod in mirror.placed_pods(attrgetter("of_daemon_set")):
        if pod.controller not in seen:
            seen.add(pod.controller)
            yield pod


def _pinned(pod: Pod, node: str) -> Pod:
    """Return the pod of a DaemonSet for another node.

    Source: k8s.io/kubernetes pkg/controller/daemon/util/daemonset_util.go (ReplaceDaemonSetPodNodeNameNodeAffinity).
    """
    fields = (FieldRequirement("metadata.name", node),)
    required = pod.node_affinity.required
    terms: Sequence[NodeSelectorTerm] = () if required is None else required.terms
    pinned = [replace(term, fields=fields) for term in terms or [NodeSelectorTerm()]]
    affinity: NodeAffinity = replace(
        pod.node_affinity, required=NodeSelector(tuple(pinned)), node_names=frozenset({node})
    )
    return replace(copy_of_pod(pod, f"-{node}"), node_affinity=affinity)
