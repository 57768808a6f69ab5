"""JSON of an apps/v1 ReplicaSet, or of no more than its metadata, to the core's value."""

from typing import Final

import msgspec

from app.watch.decode import Metadata, Wire, checked_name, controller_of, decoding, labels_of
from core.objects.owner import ReplicaSet


class _MetadataOnly(Wire):
    kind: str | None = None
    metadata: Metadata | None = None


_decoder: Final = msgspec.json.Decoder(_MetadataOnly)


def decode_replica_set(raw: bytes | msgspec.Raw) -> ReplicaSet:
    """Decode an apps/v1 ReplicaSet, or the PartialObjectMetadata of one. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    kind = "" if wire.kind == "PartialObjectMetadata" else wire.kind
    return ReplicaSet(
        namespace=metadata.namespace or "default",
        name=checked_name("ReplicaSet", kind, metadata),
        labels=labels_of(metadata),
        controller=controller_of(metadata),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
