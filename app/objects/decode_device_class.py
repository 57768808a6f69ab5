"""JSON of a resource.k8s.io/v1 DeviceClass to the core's value."""

from typing import Final

import msgspec

from app.objects.decode import Metadata, Wire, checked_name, decoding
from core.objects.device_class import DeviceClass


class _DeviceClassSpec(Wire):
    extended_resource_name: str | None = None


class _DeviceClass(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _DeviceClassSpec | None = None


_decoder: Final = msgspec.json.Decoder(_DeviceClass)


def decode_device_class(raw: bytes | msgspec.Raw) -> DeviceClass:
    """Decode a resource.k8s.io/v1 DeviceClass. Raises DecodeError."""
    wire = decoding(_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    return DeviceClass(
        name=checked_name("DeviceClass", wire.kind, metadata),
        extended_resource=(wire.spec or _DeviceClassSpec()).extended_resource_name or "",
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )
