"""JSON of ReplicaSets, StatefulSets and ReplicationControllers to the core's values."""

from typing import Final

import msgspec

from app.objects.decode import (
    LabelSelector,
    Metadata,
    Wire,
    checked_name,
    controller_of,
    decoding,
    labels_of,
    selector_of_labels,
    selector_or_nothing,
)
from core.objects.owner import ReplicaSet, ReplicationController, StatefulSet


class _Spec(Wire):
    selector: LabelSelector | None = None


class _Set(Wire):
    """A ReplicaSet or a StatefulSet."""

    kind: str | None = None
    metadata: Metadata | None = None
    spec: _Spec | None = None


class _LabelsSpec(Wire):
    selector: dict[str, str] | None = None


class _ReplicationController(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _LabelsSpec | None = None


_set_decoder: Final = msgspec.json.Decoder(_Set)
_replication_controller_decoder: Final = msgspec.json.Decoder(_ReplicationController)


def decode_replica_set(raw: bytes | msgspec.Raw) -> ReplicaSet:
    """Decode an apps/v1 ReplicaSet. Raises DecodeError."""
    wire = decoding(_set_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return ReplicaSet(
        namespace=metadata.namespace or "default",
        name=checked_name("ReplicaSet", wire.kind, metadata),
        labels=labels_of(metadata),
        controller=controller_of(metadata),
        selector=selector_or_nothing((wire.spec or _Spec()).selector),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_stateful_set(raw: bytes | msgspec.Raw) -> StatefulSet:
    """Decode an apps/v1 StatefulSet. Raises DecodeError."""
    wire = decoding(_set_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return StatefulSet(
        namespace=metadata.namespace or "default",
        name=checked_name("StatefulSet", wire.kind, metadata),
        selector=selector_or_nothing((wire.spec or _Spec()).selector),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_replication_controller(raw: bytes | msgspec.Raw) -> ReplicationController:
    """Decode a v1 ReplicationController. Raises DecodeError."""
    wire = decoding(_replication_controller_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return ReplicationController(
        namespace=metadata.namespace or "default",
        name=checked_name("ReplicationController", wire.kind, metadata),
        selector=selector_of_labels((wire.spec or _LabelsSpec()).selector),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
