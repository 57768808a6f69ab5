"""JSON of a v1.Namespace to the core's value."""

from typing import Final

import msgspec

from app.objects.decode import Metadata, Wire, checked_name, decoding, labels_of
from core.objects.namespace import Namespace


class _Namespace(Wire):
    kind: str | None = None
    metadata: Metadata | None = None


_namespace_decoder: Final = msgspec.json.Decoder(_Namespace)


def decode_namespace(raw: bytes | msgspec.Raw) -> Namespace:
    """Decode a v1.Namespace. Raises DecodeError."""
    wire = decoding(_namespace_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return Namespace(
        name=checked_name("Namespace", wire.kind, metadata),
        labels=labels_of(metadata),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
