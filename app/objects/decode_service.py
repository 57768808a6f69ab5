"""JSON of a v1.Service to the core's value."""

from typing import Final

import msgspec

from app.objects.decode import Metadata, Wire, checked_name, decoding, selector_of_labels
from core.objects.service import Service


class _Spec(Wire):
    selector: dict[str, str] | None = None


class _Service(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _Spec | None = None


_decoder: Final = msgspec.json.Decoder(_Service)


def decode_service(raw: bytes | msgspec.Raw) -> Service:
    """Decode a v1.Service. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return Service(
        namespace=metadata.namespace or "default",
        name=checked_name("Service", wire.kind, metadata),
        selector=selector_of_labels((wire.spec or _Spec()).selector),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
