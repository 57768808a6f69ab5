"""Decisions of the profile `full` about a pod over all nodes of a hand-made cluster."""

from collections.abc import Sequence
from typing import Final

from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.find_remedies import find_remedies
from core.events import ClusterEvent, Object
from core.explaining.pod_steps import Kind
from core.explaining.remedy import Remedy, Step
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import full_profile
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.core.decoded import Builder, mirror_of, pod_of

ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"


def roomy(name: str, cpu: str = "8", memory: str = "16Gi", **labels: str) -> NodeBuilder:
    """Return a node with a hostname, room and labels, in which `_` stands for `-`."""
    node = make_node(name).label(HOST, name).allocatable(cpu=cpu, memory=memory, pods=10)
    for key, value in labels.items():
        node = node.label(ZONE if key == "zone" else key.replace("_", "-"), value)
    return node


def asking(**requests: str | int) -> PodBuilder:
    """Return the pod in question, with requests."""
    return make_pod("next").uid("next").image("i").requests(**requests)


def using(name: str, node: str, **requests: str | int) -> PodBuilder:
    """Return a pod on a node, with requests."""
    return make_pod(name).uid(name).image("i").requests(**requests).on(node)


def decision_in(mirror: ClusterMirror, pod: Pod) -> Diagnosis:
    """Decide about a pod over all nodes, by name."""
    return Diagnosis(full_profile(), mirror, pod, mirror.batch(sorted(mirror.nodes.slots)))


def decision_of(pod: PodBuilder | Pod, *builders: Builder, objects: Sequence[Object] = ()) -> Diagnosis:
    """Decide about a pod over all nodes, by name, of a cluster of built and other objects."""
    mirror = mirror_of(*builders)
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))
    return decision_in(mirror, pod if isinstance(pod, Pod) else pod_of(pod))


ALL: Final = 50


def helps(pod: PodBuilder, *builders: Builder, objects: Sequence[Object] = ()) -> list[Remedy]:
    """Return all remedies of a pod."""
    return [*find_remedies(decision_of(pod, *builders, objects=objects), ALL)]


def of_kind(kind: Kind, remedies: Sequence[Remedy]) -> list[tuple[str, list[Step]]]:
    """Return those of a kind, each as the node and the steps."""
    return [(each.node, [*each.steps]) for each in remedies if each.kind is kind]
