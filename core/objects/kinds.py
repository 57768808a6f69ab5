"""What objects have in common, and small kinds: controllers of pods, namespaces, services, device classes, budgets.

A missing or invalid selector is `NOTHING`. Where selectors are combined, `NOTHING` also means no requirements
(k8s.io/apimachinery pkg/labels/selector.go, `Requirements`).
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from core.objects.labels import NOTHING, Selector


class _Versioned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    uid: str = ""
    resource_version: str = ""


class ClusterWide(_Versioned, frozen=True, gc=False):
    """An object without a namespace."""

    namespace: ClassVar[str] = ""
    name: str

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name


class Namespaced(_Versioned, frozen=True, gc=False):
    """An object of a namespace."""

    namespace: str
    name: str

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class ControllerRef(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The owner reference with `controller: true`. The owner is in the namespace of the object with the reference."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class ReplicaSet(Namespaced, frozen=True, gc=False):
    """An apps/v1 ReplicaSet: its labels (as in its pod template), its controller, and its selector."""

    labels: Mapping[str, str] = {}
    controller: ControllerRef | None = None
    selector: Selector = NOTHING


class StatefulSet(Namespaced, frozen=True, gc=False):
    """An apps/v1 StatefulSet: its selector."""

    selector: Selector = NOTHING


class ReplicationController(Namespaced, frozen=True, gc=False):
    """A v1 ReplicationController: its selector, which has only labels and, like a Service's, is never validated."""

    selector: Selector = NOTHING


NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label with the name of the namespace, which the API server gives every namespace."""


class Namespace(ClusterWide, frozen=True, gc=False):
    """A v1.Namespace, reduced to the labels that namespaceSelector reads."""

    labels: Mapping[str, str] = {}


class Service(Namespaced, frozen=True, gc=False):
    """A v1.Service: the pods of its namespace that it selects. A service without a selector selects none.

    Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/helper/spread.go (GetPodServices). Unlike a label
    selector, the selector of a service is never validated.
    """

    selector: Selector = NOTHING


IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of a class name in the implicit extended resource that every class provides."""


class DeviceClass(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 DeviceClass.

    `extended_resource` is empty if it names none. `selectors` are CEL expressions, None for a selector of another kind.
    `created` is the creationTimestamp: of two classes for one extended resource, the newer one counts.
    """

    extended_resource: str = ""
    selectors: tuple[str | None, ...] = ()
    created: str = ""


class PodDisruptionBudget(Namespaced, frozen=True, gc=False):
    """A policy/v1 PodDisruptionBudget: the pods that it covers, and how many of them may still be disrupted."""

    selector: Selector = NOTHING
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    """Names of the pods that the budget already counts as disrupted (status.disruptedPods)."""

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Return whether the budget covers pods of its namespace with these labels.

        A budget whose selector is null or empty covers no pod. No budget covers a pod without labels. Source:
        k8s.io/kubernetes v1.37 pkg/scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation).
        """
        return bool(labels) and not self.selector.everything and self.selector.matches(labels)
