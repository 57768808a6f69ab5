"""JSON of storage.k8s.io/v1 CSIDrivers, CSIStorageCapacities and VolumeAttachments to the core's values."""

from typing import Final

import msgspec

from app.objects.decode import NULL, LabelSelector, Metadata, Wire, checked_name, decoding, selector_of
from app.objects.decode_resources import quantity_of
from core.objects.labels import NOTHING, Selector, SelectorError
from core.objects.quantity import units
from core.objects.volumes import CSIDriver, CSIStorageCapacity, VolumeAttachment


class _CSIDriverSpec(Wire):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class _CSIDriver(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _CSIDriverSpec | None = None


class _CSIStorageCapacity(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    storage_class_name: str | None = None
    node_topology: LabelSelector | None = None
    capacity: msgspec.Raw = NULL
    maximum_volume_size: msgspec.Raw = NULL


class _AttachmentSource(Wire):
    persistent_volume_name: str | None = None


class _VolumeAttachmentSpec(Wire):
    attacher: str | None = None
    node_name: str | None = None
    source: _AttachmentSource | None = None


class _VolumeAttachment(Wire):
    kind: str | None = None
    metadata: Metadata | None = None
    spec: _VolumeAttachmentSpec | None = None


_driver_decoder: Final = msgspec.json.Decoder(_CSIDriver)
_capacity_decoder: Final = msgspec.json.Decoder(_CSIStorageCapacity)
_attachment_decoder: Final = msgspec.json.Decoder(_VolumeAttachment)


def decode_csi_driver(raw: bytes | msgspec.Raw) -> CSIDriver:
    """Decode a storage.k8s.io/v1 CSIDriver. Raises DecodeError."""
    wire = decoding(_driver_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    spec = wire.spec or _CSIDriverSpec()
    return CSIDriver(
        name=checked_name("CSIDriver", wire.kind, metadata),
        storage_capacity=spec.storage_capacity or False,
        prevents_scheduling_if_missing=spec.prevent_pod_scheduling_if_missing or False,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_csi_storage_capacity(raw: bytes | msgspec.Raw) -> CSIStorageCapacity:
    """Decode a storage.k8s.io/v1 CSIStorageCapacity. Raises DecodeError."""
    wire = decoding(_capacity_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    maximum = _size(wire.maximum_volume_size, "maximumVolumeSize")
    capacity = _size(wire.capacity, "capacity")
    return CSIStorageCapacity(
        namespace=metadata.namespace or "default",
        name=checked_name("CSIStorageCapacity", wire.kind, metadata),
        storage_class=wire.storage_class_name or "",
        topology=_topology(wire.node_topology),
        limit=capacity if maximum is None else maximum,
        capacity=capacity or 0,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_volume_attachment(raw: bytes | msgspec.Raw) -> VolumeAttachment:
    """Decode a storage.k8s.io/v1 VolumeAttachment. Raises DecodeError."""
    wire = decoding(_attachment_decoder.decode, raw)
    metadata = wire.metadata or Metadata()
    spec = wire.spec or _VolumeAttachmentSpec()
    return VolumeAttachment(
        name=checked_name("VolumeAttachment", wire.kind, metadata),
        attacher=spec.attacher or "",
        node=spec.node_name or "",
        volume=(spec.source or _AttachmentSource()).persistent_volume_name or "",
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def _topology(selector: LabelSelector | None) -> Selector:
    """Upstream nodeHasAccess: with an invalid selector, which upstream logs, no node has access."""
    try:
        return selector_of("nodeTopology", selector)
    except SelectorError:
        return NOTHING


def _size(raw: msgspec.Raw, field: str) -> int | None:
    return None if bytes(raw) == b"null" else units(quantity_of(raw, field))
