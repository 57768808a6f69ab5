"""JSON of PersistentVolumes, their claims, and the kinds of storage.k8s.io/v1 to the core's values."""

from typing import Final

import msgspec

from app.objects.decode import (
    NULL,
    AnnotatedMetadata,
    AnnotatedObject,
    Int32,
    LabelSelector,
    Wire,
    WireObject,
    amounts_of,
    controller_of,
    decoding,
    labels_of,
    names_in_namespace,
    names_of,
    quantity_of,
    selector_and_error,
    selector_or_nothing,
    texts,
    under,
)
from app.objects.decode_placement import WireNodeSelector, node_selector_of
from app.objects.decode_volumes import WireDisks
from core.objects import volumes
from core.objects.affinity import NodeSelector, parse_node_selector
from core.objects.labels import EVERYTHING
from core.objects.quantity import capped

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class _VolumeNodeAffinity(Wire):
    required: WireNodeSelector | None = None


class _ObjectReference(Wire):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class _CSISource(Wire):
    driver: str | None = None
    volume_handle: str | None = None


class _VolumeSpec(WireDisks):
    csi: _CSISource | None = None
    capacity: msgspec.Raw = NULL
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: _ObjectReference | None = None
    node_affinity: _VolumeNodeAffinity | None = None


class _Requests(Wire):
    requests: msgspec.Raw = NULL


class _ClaimSpec(Wire):
    volume_name: str | None = None
    resources: _Requests | None = None
    access_modes: list[str] | None = None
    volume_mode: str | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None


class _Status(Wire):
    phase: str | None = None


class _PersistentVolume(AnnotatedObject):
    spec: _VolumeSpec | None = None
    status: _Status | None = None


class _PersistentVolumeClaim(AnnotatedObject):
    spec: _ClaimSpec | None = None
    status: _Status | None = None


_volume_decoder: Final = msgspec.json.Decoder(_PersistentVolume)
_claim_decoder: Final = msgspec.json.Decoder(_PersistentVolumeClaim)


def decode_persistent_volume(raw: bytes | msgspec.Raw) -> volumes.PersistentVolume:
    """Decode a v1.PersistentVolume. Raises DecodeError."""
    wire = decoding(_volume_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _VolumeSpec()
    affinity = (spec.node_affinity or _VolumeNodeAffinity()).required
    with under("spec.nodeAffinity.required"):
        node_affinity = None if affinity is None else node_selector_of(affinity)
    return volumes.PersistentVolume(
        **names_of("PersistentVolume", wire),
        labels=labels_of(metadata.labels),
        source=_source(spec),
        capacity=_storage_of(spec.capacity, "spec.capacity") or 0,
        access_modes=frozenset(spec.access_modes or ()),
        volume_mode=volumes.FILESYSTEM if spec.volume_mode is None else spec.volume_mode,
        storage_class=_storage_class(metadata, spec.storage_class_name),
        volume_attributes_class=spec.volume_attributes_class_name or "",
        claim=_claim_ref(spec.claim_ref),
        node_affinity=node_affinity,
        phase=(wire.status or _Status()).phase or "",
        deleting=metadata.deletion_timestamp is not None,
    )


def decode_persistent_volume_claim(raw: bytes | msgspec.Raw) -> volumes.PersistentVolumeClaim:
    """Decode a v1.PersistentVolumeClaim. Raises DecodeError."""
    wire = decoding(_claim_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _ClaimSpec()
    annotations = texts(metadata.annotations)
    selector, selector_error = selector_and_error(spec.selector, absent=EVERYTHING)
    return volumes.PersistentVolumeClaim(
        **names_in_namespace("PersistentVolumeClaim", wire),
        volume=spec.volume_name or "",
        bind_completed=_BIND_COMPLETED in annotations,
        storage_class=_storage_class(metadata, spec.storage_class_name),
        selected_node=annotations.get(_SELECTED_NODE),
        requested=_storage_of((spec.resources or _Requests()).requests, "spec.resources.requests"),
        access_modes=frozenset(spec.access_modes or ()),
        volume_mode=volumes.FILESYSTEM if spec.volume_mode is None else spec.volume_mode,
        volume_attributes_class=spec.volume_attributes_class_name or "",
        selector=selector,
        selector_error=selector_error,
        phase=(wire.status or _Status()).phase or "",
        deleting=metadata.deletion_timestamp is not None,
        controller=controller_of(metadata.owner_references),
    )


def _source(spec: _VolumeSpec) -> volumes.VolumeSource | None:
    """Return the source if it is CSI, or a plugin whose migration affects the scheduler (upstream isCSIMigrationOn)."""
    if spec.csi is not None:
        return volumes.VolumeSource(spec.csi.driver or "", spec.csi.volume_handle or "")
    return next(spec.sources(), None)


def _storage_of(raw: msgspec.Raw, field: str) -> int | None:
    """Return the bytes of `storage`. As in Go, the other resources of the list are checked, too."""
    amounts = amounts_of(raw, field)
    return capped(amounts["storage"]) if "storage" in amounts else None


def _storage_class(metadata: AnnotatedMetadata, name: str | None) -> str:
    return texts(metadata.annotations).get(_BETA_CLASS, name or "")


def _claim_ref(reference: _ObjectReference | None) -> volumes.ClaimRef | None:
    if reference is None:
        return None
    return volumes.ClaimRef(reference.namespace or "", reference.name or "", reference.uid or "")


class _TopologyExpression(Wire):
    key: str | None = None
    values: list[str] | None = None


class _TopologyTerm(Wire):
    match_label_expressions: list[_TopologyExpression] | None = None


class _ClassMetadata(AnnotatedMetadata):
    creation_timestamp: str | None = None


class _StorageClass(WireObject):
    metadata: _ClassMetadata | None = None
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[_TopologyTerm] | None = None


class _Allocatable(Wire):
    count: Int32 | None = None


class _Driver(Wire):
    name: str | None = None
    allocatable: _Allocatable | None = None


class _CSINodeSpec(Wire):
    drivers: list[_Driver] | None = None


class _CSINode(AnnotatedObject):
    spec: _CSINodeSpec | None = None


_class_decoder: Final = msgspec.json.Decoder(_StorageClass)
_csi_node_decoder: Final = msgspec.json.Decoder(_CSINode)


def decode_storage_class(raw: bytes | msgspec.Raw) -> volumes.StorageClass:
    """Decode a storage.k8s.io/v1 StorageClass. Raises DecodeError."""
    wire = decoding(_class_decoder.decode, raw)
    metadata = wire.metadata or _ClassMetadata()
    is_default = any((metadata.annotations or {}).get(key) == "true" for key in _DEFAULT_CLASS)
    return volumes.StorageClass(
        **names_of("StorageClass", wire),
        default_since=(metadata.creation_timestamp or "") if is_default else None,
        provisioner=wire.provisioner or "",
        volume_binding_mode=wire.volume_binding_mode,
        allowed_topologies=_topologies(wire.allowed_topologies or []),
    )


def decode_csi_node(raw: bytes | msgspec.Raw) -> volumes.CSINode:
    """Decode a storage.k8s.io/v1 CSINode. Raises DecodeError."""
    wire = decoding(_csi_node_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    drivers = (wire.spec or _CSINodeSpec()).drivers or []
    migrated = texts(metadata.annotations).get(_MIGRATED_PLUGINS)
    return volumes.CSINode(
        **names_of("CSINode", wire),
        volume_limits={
            driver.name or "": driver.allocatable.count
            for driver in drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        },
        drivers=frozenset(driver.name or "" for driver in drivers),
        migrated_plugins=frozenset(migrated.split(",") if migrated else ()),
    )


def _topologies(terms: list[_TopologyTerm]) -> NodeSelector | None:
    """Upstream MatchTopologySelectorTerms: no terms allow every node, an empty or invalid term allows none."""
    if not terms:
        return None
    return parse_node_selector(
        [
            ([(each.key or "", "In", each.values or ()) for each in term.match_label_expressions or ()], ())
            for term in terms
        ]
    )


class _CSIDriverSpec(Wire):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class _CSIDriver(WireObject):
    spec: _CSIDriverSpec | None = None


class _CSIStorageCapacity(WireObject):
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


class _VolumeAttachment(WireObject):
    spec: _VolumeAttachmentSpec | None = None


_driver_decoder: Final = msgspec.json.Decoder(_CSIDriver)
_capacity_decoder: Final = msgspec.json.Decoder(_CSIStorageCapacity)
_attachment_decoder: Final = msgspec.json.Decoder(_VolumeAttachment)


def decode_csi_driver(raw: bytes | msgspec.Raw) -> volumes.CSIDriver:
    """Decode a storage.k8s.io/v1 CSIDriver. Raises DecodeError."""
    wire = decoding(_driver_decoder.decode, raw)
    spec = wire.spec or _CSIDriverSpec()
    return volumes.CSIDriver(
        **names_of("CSIDriver", wire),
        storage_capacity=spec.storage_capacity or False,
        prevents_scheduling_if_missing=spec.prevent_pod_scheduling_if_missing or False,
    )


def decode_csi_storage_capacity(raw: bytes | msgspec.Raw) -> volumes.CSIStorageCapacity:
    """Decode a storage.k8s.io/v1 CSIStorageCapacity. Raises DecodeError."""
    wire = decoding(_capacity_decoder.decode, raw)
    maximum = _size(wire.maximum_volume_size, "maximumVolumeSize")
    capacity = _size(wire.capacity, "capacity")
    return volumes.CSIStorageCapacity(
        **names_in_namespace("CSIStorageCapacity", wire),
        storage_class=wire.storage_class_name or "",
        topology=selector_or_nothing(wire.node_topology),  # as upstream nodeHasAccess, which logs the error
        limit=capacity if maximum is None else maximum,
        capacity=capacity or 0,
    )


def decode_volume_attachment(raw: bytes | msgspec.Raw) -> volumes.VolumeAttachment:
    """Decode a storage.k8s.io/v1 VolumeAttachment. Raises DecodeError."""
    wire = decoding(_attachment_decoder.decode, raw)
    spec = wire.spec or _VolumeAttachmentSpec()
    return volumes.VolumeAttachment(
        **names_of("VolumeAttachment", wire),
        attacher=spec.attacher or "",
        node=spec.node_name or "",
        volume=(spec.source or _AttachmentSource()).persistent_volume_name or "",
    )


def _size(raw: msgspec.Raw, field: str) -> int | None:
    return None if bytes(raw) == b"null" else capped(quantity_of(raw, field))
