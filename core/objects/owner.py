"""Controllers of pods as scheduling sees them: who they are, and which pods they select.

A selector that is absent or broken is `NOTHING`, which also stands for no requirements at all where selectors are put
together (k8s.io/apimachinery pkg/labels/selector.go, `Requirements`).
"""

from collections.abc import Mapping

import msgspec

from core.objects.labels import NOTHING, Selector


class ControllerRef(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The owner reference with `controller: true`; it lies in the namespace of the object that has it."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class ReplicaSet(msgspec.Struct, frozen=True, gc=False):
    """An apps/v1 ReplicaSet: its labels (those of its pods' template), its controller, and its selector."""

    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    controller: ControllerRef | None = None
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class _Selecting(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    name: str
    selector: Selector = NOTHING
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class StatefulSet(_Selecting, frozen=True, gc=False):
    """An apps/v1 StatefulSet: its selector."""


class ReplicationController(_Selecting, frozen=True, gc=False):
    """A v1 ReplicationController: its selector, which is one of labels alone and, like a Service's, never validated."""
