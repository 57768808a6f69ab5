"""Built v1 objects as the core is given them: as values, as events, and as a whole mirror."""

from typing import Any, TypeAlias

from msgspec.structs import replace

from app.objects.decode_node import decode_namespace, decode_node
from app.objects.decode_pod import decode_pod
from core.events import Action, ClusterEvent, Object
from core.mirror.affinity_counts import MatchTerms
from core.mirror.cluster import ClusterMirror
from core.mirror.topology import DomainCounts
from core.objects.affinity import PodMatcher
from core.objects.node import Node
from core.objects.pod import Pod
from tests.builders import NamespaceBuilder, NodeBuilder, PodBuilder, make_pod

Builder: TypeAlias = PodBuilder | NodeBuilder | NamespaceBuilder


def pod_of(builder: PodBuilder) -> Pod:
    """Return the core's value of a built pod."""
    return decode_pod(builder.json())


def demanding(pod: Pod, **members: Any) -> Pod:  # noqa: ANN401 - of every type
    """Return a pod with other members of its demand."""
    return replace(pod, demand=replace(pod.demand, **members))


def node_of(builder: NodeBuilder) -> Node:
    """Return the core's value of a built node."""
    return decode_node(builder.json())


def counter_of(mirror: ClusterMirror, matchers: tuple[PodMatcher, ...], topology_key: str) -> DomainCounts:
    """Count the placed pods that all matchers of an incoming pod select; stale after the next event."""
    return mirror.affinity.matches.of([MatchTerms(matchers, topology_key)], "spec.affinity")[0]


def by_value(counter: DomainCounts) -> dict[str, int]:
    """Return topology value -> number of pods, for domains with pods."""
    ids, numbers = (each.tolist() for each in counter.counts.arrays())
    return {counter.column.values[value_id]: number for value_id, number in zip(ids, numbers, strict=True)}


def matcher_of(v1_term: dict[str, Any], namespace: str = "default") -> PodMatcher:
    """Return the matcher of a term that a pod of the namespace carries."""
    pod = pod_of(make_pod("carrier").in_namespace(namespace).required_affinity(v1_term))
    assert not pod.affinity.errors
    return pod.affinity.required_affinity[0].matcher


def tell(mirror: ClusterMirror, action: Action, *builders: Builder) -> None:
    """Apply one event for each of the built objects, in their order."""
    for builder in builders:
        mirror.apply(ClusterEvent(action, _value_of(builder)))


def mirror_of(*builders: Builder) -> ClusterMirror:
    """Return a mirror that was told of the built objects, in their order."""
    mirror = ClusterMirror()
    tell(mirror, "Add", *builders)
    return mirror


def in_partition(mirror: ClusterMirror, *names: str) -> list[str]:
    """Return the nodes that are in the partition. An unknown one has no labels."""
    known = mirror.nodes.known.values
    labels = {name: node.labels for name in names if name in known and (node := known[name].node) is not None}
    return [name for name in names if mirror.nodes.partition.includes(name, labels.get(name, {}))]


def _value_of(builder: Builder) -> Object:
    match builder:
        case PodBuilder():
            return pod_of(builder)
        case NodeBuilder():
            return node_of(builder)
        case NamespaceBuilder():
            return decode_namespace(builder.json())
