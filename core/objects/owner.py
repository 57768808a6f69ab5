"""Controllers of pods as scheduling sees them."""

from collections.abc import Mapping

import msgspec


class ControllerRef(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The owner reference with `controller: true`; it lies in the namespace of the object that has it."""

    kind: str
    name: str
    uid: str


class ReplicaSet(msgspec.Struct, frozen=True, gc=False):
    """An apps/v1 ReplicaSet: its labels, which are those of its pods' template, and who controls it."""

    namespace: str
    name: str
    labels: Mapping[str, str] = {}
    controller: ControllerRef | None = None
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"
