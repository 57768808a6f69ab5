"""JSON of a pod's volumes to the core's values: the kinds that a plugin reads."""

from collections.abc import Iterator, Sequence
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


class _VolumeID(Wire):
    volume: str | None = msgspec.field(default=None, name="volumeID")


class _GCEPersistentDisk(Wire):
    volume: str | None = msgspec.field(default=None, name="pdName")
    read_only: bool | None = None


class _AzureDisk(Wire):
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


class WireDisks(Wire):
    """The disks that both pods and PersistentVolumes have: those of in-tree plugins whose migration is of interest."""

    gce_persistent_disk: _GCEPersistentDisk | None = None
    aws_elastic_block_store: _VolumeID | None = None
    azure_disk: _AzureDisk | None = None
    cinder: _VolumeID | None = None
    portworx_volume: _VolumeID | None = None

    def sources(self) -> Iterator[VolumeSource]:
        """Yield the source. The API server allows only one."""
        disks = {
            "gce-pd": self.gce_persistent_disk,
            "azure-disk": self.azure_disk,
            "aws-ebs": self.aws_elastic_block_store,
            "cinder": self.cinder,
            "portworx-volume": self.portworx_volume,
        }
        for plugin, disk in disks.items():
            if disk is not None:
                kind = disk.kind if isinstance(disk, _AzureDisk) else None
                yield VolumeSource(f"kubernetes.io/{plugin}", disk.volume or "", in_tree=True, kind=kind)


class WireVolume(WireDisks):
    """A v1.Volume. Kinds that no plugin reads are ignored."""

    name: str | None = None
    persistent_volume_claim: _Claim | None = None
    ephemeral: _Ephemeral | None = None
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
    if (iscsi := wire.iscsi) is not None:
        source = VolumeSource("kubernetes.io/iscsi", iscsi.volume or "", in_tree=True)
        return InlineDisk(wire.name or "", source, iscsi.read_only or False)
    gce = wire.gce_persistent_disk
    return InlineDisk(wire.name or "", next(wire.sources()), gce is not None and gce.read_only is True)
