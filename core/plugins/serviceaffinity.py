"""ServiceAffinity: the pods of a service stay on nodes with the same values of some labels.

Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/serviceaffinity/service_affinity.go and helper/spread.go
(GetPodServices). In v1.17 it was the predicate CheckServiceAffinity, with the same results. Upstream removed it in
v1.19. Its score side (antiAffinityLabelsPreference) is not implemented here.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

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
    Versions,
)
from core.mirror.affinity_counts import TermIndex
from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, labels_of
from core.objects.affinity import PodMatcher, selector_from_set
from core.objects.kinds import Service
from core.objects.labels import NOTHING, Selector
from core.objects.node import Node
from core.objects.pod import Pod

SERVICE_AFFINITY: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't match service affinity",))
_STATUSES: Final = (SUCCESS, SERVICE_AFFINITY)

_ANY: Final = (Operation.ADD, Operation.UPDATE, Operation.DELETE)


class ServiceIndex:
    """The services by their selectors, updated by every event."""

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._matchers: dict[str, PodMatcher] = {}  # full name of a service -> matcher of its pods
        self._index: TermIndex[str] = TermIndex()
        for service in mirror.objects(Service).values():
            self._add(service)

    def changed(self, change: Change) -> None:
        """Apply the new state of a service."""
        if isinstance(change, ObjectChange) and change.kind is Service:
            if change.before is not None:
                self._index.remove(change.before.full_name)
                del self._matchers[change.before.full_name]
            if change.after is not None:
                self._add(change.after)

    def selects(self, pod: Pod) -> bool:
        """Return whether any service selects the pod."""
        return any(
            self._matchers[name].selector.matches(pod.labels)
            for name in self._index.candidates(pod.namespace, pod.labels)
        )

    def _add(self, service: Service) -> None:
        matcher = self._matchers[service.full_name] = _pods_in(service.namespace, service.selector)
        self._index.add(service.full_name, matcher)


class RequiredLabels:
    """The labels that a node must have for one incoming pod. Stale after the next event."""

    __slots__ = ("_keys", "_nodes", "labels")

    def __init__(self, mirror: ClusterMirror, keys: tuple[str, ...], labels: Mapping[str, str]) -> None:
        self._keys = keys
        self._nodes = mirror.derived(LabelProjections).of(keys)
        self.labels = frozenset(labels.items())

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Return the verdict on each node, computed once for all nodes with the same labels."""
        return Verdicts(self._nodes.judged(batch, self._code), _STATUSES)

    def _code(self, values: LabelValues | None) -> int:
        if self.labels <= labels_of(self._keys, values).items():
            return 0
        return _STATUSES.index(SERVICE_AFFINITY)


class ServiceAffinity(FilterPlugin[RequiredLabels]):
    """Filters by labels, such as a region, that must have the same value on the nodes of all pods of a service.

    `affinity_labels` are the keys of these labels. If the pod's nodeSelector has a key, its value applies. For other
    keys, if the pod is of a service, the value comes from the node of another pod: one in the same namespace that has
    all the incoming pod's labels. Among several such nodes upstream takes the first that it finds. Here it is the first
    by name.
    """

    name = "ServiceAffinity"
    kinds: tuple[Kind, ...] = (Node, Pod, Service)
    class_fields = ("namespace", "labels", "node_affinity")

    def __init__(self, *, affinity_labels: Sequence[str] = ()) -> None:
        self._keys = tuple(dict.fromkeys(affinity_labels))
        self.invalidated_by = _invalidated_by(self._keys)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, RequiredLabels | None]:
        """Collect the labels that nodes must have. SKIP if there are none."""
        labels = {
            requirement.key: requirement.values[0]
            for requirement in pod.node_affinity.selector.requirements
            if requirement.key in self._keys
        }
        if len(labels) < len(self._keys) and mirror.derived(ServiceIndex).selects(pod):
            labels = self._labels_of_another_pod(mirror, pod) | labels
        return (SUCCESS, RequiredLabels(mirror, self._keys, labels)) if labels else (SKIP, None)

    def filter(self, state: RequiredLabels, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def filter_versions(self, state: RequiredLabels) -> Versions:
        """Return the required labels, the only input from pods and services."""
        return (state.labels,)

    def _labels_of_another_pod(self, mirror: ClusterMirror, pod: Pod) -> dict[str, str]:
        alike = _pods_in(pod.namespace, selector_from_set(pod.labels))
        slots = np.unique(mirror.pods.slots_of((alike,), _in_no_other_namespace))
        if not len(slots):
            return {}
        first = min(map(mirror.nodes.name, slots.tolist()))
        node = mirror.nodes.infos[first].node
        return {} if node is None else {key: node.labels[key] for key in self._keys if key in node.labels}


def _invalidated_by(keys: tuple[str, ...]) -> tuple[InvalidationRule, ...]:
    def labels(node: Node) -> list[str | None]:
        return [node.labels.get(key) for key in keys]

    def has_other_labels(before: Node, after: Node) -> bool:
        return labels(before) != labels(after)

    return (
        InvalidationRule(
            kind=Node,
            operations=(Operation.UPDATE,),
            scope=Scope.NODE,
            when="one of the affinityLabels changed",
            because="the values that the pod's service has are held against them",
            touches=has_other_labels,
        ),
        InvalidationRule(
            kind=Node,
            operations=(Operation.UPDATE,),
            scope=Scope.COUNTERS,
            when="a pod with the labels of the class is on it, and one of the affinityLabels changed",
            because="the values that other nodes must have may be its values",
            touches=has_other_labels,
        ),
        InvalidationRule(
            kind=Pod,
            operations=_ANY,
            scope=Scope.COUNTERS,
            when="it has the labels of the class, and its node is the first of such pods now, or was it before",
            because="the first pod of a service decides for all that come after it",
        ),
        InvalidationRule(
            kind=Service,
            operations=_ANY,
            scope=Scope.COUNTERS,
            when="it is the first to select the class, or was the last",
            because="only the pods of services are held together",
        ),
    )


def _pods_in(namespace: str, selector: Selector) -> PodMatcher:
    return PodMatcher(frozenset((namespace,)), namespace_selector=NOTHING, selector=selector)


def _in_no_other_namespace(matcher: PodMatcher, namespace: str) -> bool:
    return namespace in matcher.namespaces
