"""ServiceAffinity: the pods of a service stay on nodes with the same values of some labels.

Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go and helper/spread.go
(GetPodServices). In v1.17 it was the predicate CheckServiceAffinity, with the same results. Upstream removed it in
v1.19. Its score side (antiAffinityLabelsPreference) is not implemented here.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from core.framework.claims import Services
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts, Versions
from core.framework.invalidation import InvalidationRule, Scope, node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, NodeValues, labels_of
from core.objects.affinity import PodMatcher, selector_from_set
from core.objects.kinds import Service
from core.objects.labels import NOTHING
from core.objects.node import Node
from core.objects.pod import Pod

SERVICE_AFFINITY: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't match service affinity",))
_STATUSES: Final = (SUCCESS, SERVICE_AFFINITY)


class RequiredLabels(msgspec.Struct, frozen=True):
    """The labels that a node must have for one incoming pod, and all nodes by them. Stale after the next event."""

    nodes: NodeValues[LabelValues]
    labels: frozenset[tuple[str, str]]


class ServiceAffinity(FilterPlugin[RequiredLabels]):
    """Filters by labels, such as a region, that must have the same value on the nodes of all pods of a service.

    `affinity_labels` are the keys of these labels. If the pod's nodeSelector has a key, its value applies. For other
    keys, if the pod is of a service, the value comes from the node of another pod: one in the same namespace that has
    all the incoming pod's labels. Among several such nodes upstream takes the first that it finds. Here it is the first
    by name.
    """

    name = "ServiceAffinity"
    former_filters = ("CheckServiceAffinity",)
    kinds = (Node, Pod, Service)
    class_fields = ("namespace", "labels", "node_affinity")

    def __init__(self, *, affinity_labels: Sequence[str] = ()) -> None:
        self.keys: Final = tuple(dict.fromkeys(affinity_labels))
        """Labels by which the pods of a service stay together."""
        self.invalidated_by = _invalidated_by(self.keys)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, RequiredLabels | None]:
        """Collect the labels that nodes must have. SKIP if there are none."""
        labels = {
            requirement.key: requirement.values[0]
            for requirement in pod.node_affinity.selector.requirements
            if requirement.key in self.keys
        }
        if len(labels) < len(self.keys) and any(mirror.derived(Services).selecting(pod)):
            labels = self._labels_of_another_pod(mirror, pod) | labels
        if not labels:
            return SKIP, None
        return SUCCESS, RequiredLabels(mirror.derived(LabelProjections).of(self.keys), frozenset(labels.items()))

    def filter(self, state: RequiredLabels, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch, once for all nodes with the same labels."""

        def code(values: LabelValues | None) -> int:
            return 0 if state.labels <= labels_of(self.keys, values).items() else 1

        return Verdicts(state.nodes.judged(batch, code), _STATUSES)

    def filter_versions(self, state: RequiredLabels) -> Versions:
        """Return the required labels, the only input from pods and services."""
        return (state.labels,)

    def _labels_of_another_pod(self, mirror: ClusterMirror, pod: Pod) -> dict[str, str]:
        alike = PodMatcher(frozenset((pod.namespace,)), NOTHING, selector_from_set(pod.labels))
        slots = np.unique(mirror.pods.slots_of((alike,), lambda matcher, namespace: namespace in matcher.namespaces))
        if not len(slots):
            return {}
        first = min(map(mirror.nodes.name, slots.tolist()))
        node = mirror.nodes.infos[first].node
        return {} if node is None else {key: node.labels[key] for key in self.keys if key in node.labels}


def _invalidated_by(keys: tuple[str, ...]) -> tuple[InvalidationRule, ...]:
    def labels(node: Node) -> list[str | None]:
        return [node.labels.get(key) for key in keys]

    return (
        node_update(
            when="one of the affinityLabels changed",
            because="the values that the pod's service has are held against them",
            reads=labels,
        ),
        node_update(
            scope=Scope.COUNTERS,
            when="a pod with the labels of the class is on it, and one of the affinityLabels changed",
            because="the values that other nodes must have may be its values",
            reads=labels,
        ),
        InvalidationRule(
            kind=Pod,
            scope=Scope.COUNTERS,
            when="it has the labels of the class, and its node is the first of such pods now, or was it before",
            because="the first pod of a service decides for all that come after it",
        ),
        InvalidationRule(
            kind=Service,
            scope=Scope.COUNTERS,
            when="it is the first to select the class, or was the last",
            because="only the pods of services are held together",
        ),
    )
