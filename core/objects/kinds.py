"""Controllers of pods, reduced to their identity and the pods that they select.

A missing or invalid selector is `NOTHING`. Where selectors are combined, `NOTHING` also means no requirements
(k8s.io/apimachinery pkg/labels/selector.go, `Requirements`).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from core.objects.labels import NOTHING, Selector


class ControllerRef(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The owner reference with `controller: true`. The owner is in the namespace of the object with the reference."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class ReplicaSet(msgspec.Struct, frozen=True, gc=False):
    """An apps/v1 ReplicaSet: its labels (as in its pod template), its controller, and its selector."""

    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    controller: ControllerRef | None = None
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class _Selecting(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    name: str
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class StatefulSet(_Selecting, frozen=True, gc=False):
    """An apps/v1 StatefulSet: its selector."""


class ReplicationController(_Selecting, frozen=True, gc=False):
    """A v1 ReplicationController: its selector, which has only labels and, like a Service's, is never validated."""


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A v1.Namespace, reduced to the labels that namespaceSelector reads."""

    name: str
    labels: Mapping[str, str] = {}
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name


class Service(msgspec.Struct, frozen=True, gc=False):
    """A v1.Service: the pods of its namespace that it selects. A service without a selector selects none.

    Source: k8s.io/kubernetes v1.18 pkg/scheduler/framework/plugins/helper/spread.go (GetPodServices). Unlike a label
    selector, the selector of a service is never validated.
    """

    namespace: str
    name: str
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of a class name in the implicit extended resource that every class provides."""


class DeviceClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A resource.k8s.io/v1 DeviceClass, reduced to the extended resource that it provides.

    `extended_resource` is spec.extendedResourceName. It is empty if the class names none.
    """

    name: str
    extended_resource: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The name. The object has no namespace."""
        return self.name


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False):
    """A policy/v1 PodDisruptionBudget: the pods that it covers, and how many of them may still be disrupted."""

    namespace: str
    name: str
    selector: Selector = NOTHING
    disruptions_allowed: int = 0
    disrupted_pods: frozenset[str] = frozenset()
    """Names of the pods that the budget already counts as disrupted (status.disruptedPods)."""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Return whether the budget covers pods of its namespace with these labels.

        A budget whose selector is null or empty covers no pod. No budget covers a pod without labels. Source:
        k8s.io/kubernetes v1.37 pkg/scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation).
        """
        return bool(labels) and not self.selector.everything and self.selector.matches(labels)
