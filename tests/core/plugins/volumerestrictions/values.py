"""Volumes, pods and claims as VolumeRestrictions is given them."""

from core.objects.pod import InlineDisk, Pod, PodVolume, RBDImage
from core.objects.volumes import PersistentVolumeClaim, VolumeSource


def pod_with(*volumes: PodVolume, name: str = "incoming", on: str = "", namespace: str = "default") -> Pod:
    """Return a pod with these volumes, whose name is its uid."""
    return Pod(uid=name, namespace=namespace, name=name, volumes=volumes, node_name=on)


def gce(disk: str, *, read_only: bool = False) -> InlineDisk:
    """Return a GCE persistent disk."""
    return _disk("kubernetes.io/gce-pd", disk, read_only=read_only)


def ebs(disk: str) -> InlineDisk:
    """Return an EBS volume."""
    return _disk("kubernetes.io/aws-ebs", disk)


def iscsi(iqn: str, *, read_only: bool = False) -> InlineDisk:
    """Return an iSCSI disk."""
    return _disk("kubernetes.io/iscsi", iqn, read_only=read_only)


def azure(disk: str) -> InlineDisk:
    """Return an Azure disk."""
    return _disk("kubernetes.io/azure-disk", disk)


def cinder(disk: str) -> InlineDisk:
    """Return a Cinder volume."""
    return _disk("kubernetes.io/cinder", disk)


def rbd(*monitors: str, pool: str = "rbd", image: str = "i", read_only: bool = False) -> RBDImage:
    """Return a Ceph block device."""
    return RBDImage(frozenset(monitors), pool, image, read_only)


def claim(name: str, *modes: str, namespace: str = "default", uid: str = "") -> PersistentVolumeClaim:
    """Return a claim with these access modes."""
    return PersistentVolumeClaim(
        namespace=namespace, name=name, access_modes=frozenset(modes), uid=uid or f"{namespace}/{name}"
    )


def _disk(plugin: str, volume: str, *, read_only: bool = False) -> InlineDisk:
    return InlineDisk("v", VolumeSource(plugin, volume, in_tree=True), read_only=read_only)
