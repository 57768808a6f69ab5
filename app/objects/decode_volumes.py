"""JSON of a pod's volumes to the core's values: the kinds that a plugin reads."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from app.objects.decode import Wire
from core.objects.pod import InlineDisk, PodClaim, PodVolume, RBDImage, normalized_image_name
from core.objects.volumes import VolumeSource

_MEMO_ENTRIES: Final = 8192
_SHARED_SIZE: Final = 1024  # characters; longer volumes are not shared, so the memo has at most some 16 MiB


class _Claim(Wire):
    claim_name: str | None = None


class _Ephemeral(Wire):
    """The template of the claim. The claim itself is found by its name."""


class WireVolumeID(Wire):
    """The source of several kinds of volumes, of pods and of PersistentVolumes."""

    volume: str | None = msgspec.field(default=None, name="volumeID")


class WireGCEPersistentDisk(Wire):
    """A v1.GCEPersistentDiskVolumeSource."""

    volume: str | None = msgspec.field(default=None, name="pdName")
    read_only: bool | None = None


class WireAzureDisk(Wire):
    """A v1.AzureDiskVolumeSource."""

    volume: str | None = msgspec.field(default=None, name="diskURI")
    kind: str | None = None


class _ISCSI(Wire):
    volume: str | None = msgspec.field(default=None, name="iqn")
    read_only: bool | None = None


class _RBD(Wire):
    monitors: list[str] | None = None
    pool: str | None = None
    image: str | None = None
    read_only: bool | None = None


class _ImageVolumeSource(Wire):
    reference: str | None = None


class WireVolume(Wire):
    """A v1.Volume. Kinds that no plugin reads are ignored."""

    name: str | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Ephemeral | None = None
    gce_persistent_disk: WireGCEPersistentDisk | None = None
    aws_elastic_block_store: WireVolumeID | None = None
    azure_disk: WireAzureDisk | None = None
    cinder: WireVolumeID | None = None
    portworx_volume: WireVolumeID | None = None
    iscsi: _ISCSI | None = None
    rbd: _RBD | None = None
    image: _ImageVolumeSource | None = None


def image_volumes_of(wires: Sequence[WireVolume]) -> tuple[str, ...]:
    """Return the normalized image names of all image volumes, sorted."""
    names = [wire.image.reference or "" for wire in wires if wire.image is not None]
    return tuple(sorted(map(normalized_image_name, names))) if names else ()


def volumes_of(pod: str, wires: Sequence[WireVolume]) -> tuple[PodVolume, ...]:
    """Return the volumes of the pod with that name. Pods with equal volumes mostly share them."""
    volumes = [
        _volume(pod, wire)
        for wire in wires
        # Most volumes of most pods are of other kinds. They cost no call here.
        if (wire.persistent_volume_claim or wire.ephemeral or wire.rbd or wire.iscsi or wire.gce_persistent_disk)
        or (wire.aws_elastic_block_store or wire.azure_disk or wire.cinder or wire.portworx_volume)
    ]
    if not volumes:
        return ()
    return _shared(tuple(volumes)) if sum(map(_size, volumes)) <= _SHARED_SIZE else tuple(volumes)


def _size(volume: PodVolume) -> int:
    """Return the approximate number of characters of a volume."""
    if isinstance(volume, PodClaim):
        return len(volume.name)
    if isinstance(volume, InlineDisk):
        return len(volume.name) + len(volume.source.volume) + len(volume.source.kind or "")
    return len(volume.pool) + len(volume.image) + sum(map(len, volume.monitors))


@lru_cache(maxsize=_MEMO_ENTRIES)
def _shared(volumes: tuple[PodVolume, ...]) -> tuple[PodVolume, ...]:
    return volumes


def _volume(pod: str, wire: WireVolume) -> PodVolume:
    """Return the backend of a volume. The API server allows only one."""
    if wire.persistent_volume_claim is not None:
        return PodClaim(wire.persistent_volume_claim.claim_name or "")
    if wire.ephemeral is not None:
        return PodClaim(f"{pod}-{wire.name or ''}", ephemeral=True)
    if (rbd := wire.rbd) is not None:
        return RBDImage(frozenset(rbd.monitors or ()), rbd.pool or "", rbd.image or "", rbd.read_only or False)
    disks = (
        ("gce-pd", wire.gce_persistent_disk),
        ("iscsi", wire.iscsi),
        ("azure-disk", wire.azure_disk),
        ("aws-ebs", wire.aws_elastic_block_store),
        ("cinder", wire.cinder),
        ("portworx-volume", wire.portworx_volume),
    )
    plugin, disk = next((plugin, disk) for plugin, disk in disks if disk is not None)
    kind = disk.kind if isinstance(disk, WireAzureDisk) else None
    source = VolumeSource(f"kubernetes.io/{plugin}", disk.volume or "", in_tree=True, kind=kind)
    read_only = isinstance(disk, WireGCEPersistentDisk | _ISCSI) and disk.read_only is True
    return InlineDisk(wire.name or "", source, read_only)
