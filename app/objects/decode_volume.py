"""JSON of v1 PersistentVolumes and their claims to the core's values."""

from typing import Final

import msgspec

from app.objects.decode import (
    NULL,
    AnnotatedMetadata,
    LabelSelector,
    Wire,
    checked_name,
    controller_of,
    decoding,
    labels_of,
    selector_of,
    under,
)
from app.objects.decode_node_selector import WireNodeSelector, node_selector_of
from app.objects.decode_resources import amounts_of
from core.objects.labels import EVERYTHING, NOTHING, SelectorError
from core.objects.quantity import units
from core.objects.volumes import FILESYSTEM, ClaimRef, PersistentVolume, PersistentVolumeClaim, VolumeSource

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


class _VolumeNodeAffinity(Wire):
    required: WireNodeSelector | None = None


class _ObjectReference(Wire):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class _CSISource(Wire):
    driver: str | None = None
    volume_handle: str | None = None


class _InTreeSource(Wire):
    volume: str | None = msgspec.field(default=None, name="volumeID")


class _GCEPersistentDisk(Wire):
    volume: str | None = msgspec.field(default=None, name="pdName")


class _AzureDisk(Wire):
    volume: str | None = msgspec.field(default=None, name="diskURI")


class _VolumeSpec(Wire):
    csi: _CSISource | None = None
    aws_elastic_block_store: _InTreeSource | None = None
    gce_persistent_disk: _GCEPersistentDisk | None = None
    azure_disk: _AzureDisk | None = None
    cinder: _InTreeSource | None = None
    portworx_volume: _InTreeSource | None = None
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


class _PersistentVolume(Wire):
    kind: str | None = None
    metadata: AnnotatedMetadata | None = None
    spec: _VolumeSpec | None = None
    status: _Status | None = None


class _PersistentVolumeClaim(Wire):
    kind: str | None = None
    metadata: AnnotatedMetadata | None = None
    spec: _ClaimSpec | None = None
    status: _Status | None = None


_volume_decoder: Final = msgspec.json.Decoder(_PersistentVolume)
_claim_decoder: Final = msgspec.json.Decoder(_PersistentVolumeClaim)


def decode_persistent_volume(raw: bytes | msgspec.Raw) -> PersistentVolume:
    """Decode a v1.PersistentVolume. Raises DecodeError."""
    wire = decoding(_volume_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _VolumeSpec()
    affinity = (spec.node_affinity or _VolumeNodeAffinity()).required
    with under("spec.nodeAffinity.required"):
        node_affinity = None if affinity is None else node_selector_of(affinity)
    return PersistentVolume(
        name=checked_name("PersistentVolume", wire.kind, metadata),
        labels=labels_of(metadata),
        source=_source(spec),
        capacity=_storage(spec.capacity, "spec.capacity") or 0,
        access_modes=frozenset(spec.access_modes or ()),
        volume_mode=FILESYSTEM if spec.volume_mode is None else spec.volume_mode,
        storage_class=_storage_class(metadata, spec.storage_class_name),
        volume_attributes_class=spec.volume_attributes_class_name or "",
        claim=_claim_ref(spec.claim_ref),
        node_affinity=node_affinity,
        phase=(wire.status or _Status()).phase or "",
        deleting=metadata.deletion_timestamp is not None,
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def decode_persistent_volume_claim(raw: bytes | msgspec.Raw) -> PersistentVolumeClaim:
    """Decode a v1.PersistentVolumeClaim. Raises DecodeError."""
    wire = decoding(_claim_decoder.decode, raw)
    metadata = wire.metadata or AnnotatedMetadata()
    spec = wire.spec or _ClaimSpec()
    annotations = metadata.annotations or {}
    selector, selector_error = EVERYTHING, ""
    try:
        selector = selector_of("spec.selector", spec.selector, absent=EVERYTHING)
    except SelectorError as error:
        selector, selector_error = NOTHING, str(error)
    return PersistentVolumeClaim(
        namespace=metadata.namespace or "default",
        name=checked_name("PersistentVolumeClaim", wire.kind, metadata),
        volume=spec.volume_name or "",
        bind_completed=_BIND_COMPLETED in annotations,
        storage_class=_storage_class(metadata, spec.storage_class_name),
        selected_node=annotations.get(_SELECTED_NODE),
        requested=_storage((spec.resources or _Requests()).requests, "spec.resources.requests"),
        access_modes=frozenset(spec.access_modes or ()),
        volume_mode=FILESYSTEM if spec.volume_mode is None else spec.volume_mode,
        volume_attributes_class=spec.volume_attributes_class_name or "",
        selector=selector,
        selector_error=selector_error,
        phase=(wire.status or _Status()).phase or "",
        deleting=metadata.deletion_timestamp is not None,
        controller=controller_of(metadata),
        uid=metadata.uid or "",
        resource_version=metadata.resource_version or "",
    )


def _source(spec: _VolumeSpec) -> VolumeSource | None:
    """Return the source if it is CSI, or a plugin whose migration affects the scheduler (upstream isCSIMigrationOn)."""
    if spec.csi is not None:
        return VolumeSource(spec.csi.driver or "", spec.csi.volume_handle or "")
    in_tree = {
        "kubernetes.io/aws-ebs": spec.aws_elastic_block_store,
        "kubernetes.io/gce-pd": spec.gce_persistent_disk,
        "kubernetes.io/azure-disk": spec.azure_disk,
        "kubernetes.io/cinder": spec.cinder,
        "kubernetes.io/portworx-volume": spec.portworx_volume,
    }
    for plugin, source in in_tree.items():
        if source is not None:
            return VolumeSource(plugin, source.volume or "", in_tree=True)
    return None


def _storage(raw: msgspec.Raw, field: str) -> int | None:
    """Return the bytes of `storage`. As in Go, the other resources of the list are checked, too."""
    amounts = amounts_of(raw, field)
    return units(amounts["storage"]) if "storage" in amounts else None


def _storage_class(metadata: AnnotatedMetadata, name: str | None) -> str:
    return (metadata.annotations or {}).get(_BETA_CLASS, name or "")


def _claim_ref(reference: _ObjectReference | None) -> ClaimRef | None:
    if reference is None:
        return None
    return ClaimRef(reference.namespace or "", reference.name or "", reference.uid or "")
