"""Controllers of pods, reduced to their identity and the pods that they select.

A missing or invalid selector is `NOTHING`. Where selectors are combined, `NOTHING` also means no requirements
(k8s.io/apimachinery pkg/labels/selector.go, `Requirements`).
"""

from collections.abc import Mapping

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
