"""Pods, claims, volumes and limits as NodeVolumeLimits is given them."""

from core.objects.kinds import ControllerRef
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume
from core.objects.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)

DRIVER = "csi.example.com"
EBS_DRIVER = "ebs.csi.aws.com"


def pod_with(*volumes: str | PodVolume, name: str = "incoming", on: str = "") -> Pod:
    """Return a pod of the namespace `default`, whose name is its uid; a text is the name of a claim."""
    return Pod(
        uid=name,
        namespace="default",
        name=name,
        node_name=on,
        volumes=tuple(PodClaim(each) if isinstance(each, str) else each for each in volumes),
    )


def claim(
    name: str, volume: str = "", *, storage_class: str = "", owner: str = "", uid: str = ""
) -> PersistentVolumeClaim:
    """Return a claim; `owner` is the uid of the pod for which it was made."""
    return PersistentVolumeClaim(
        namespace="default",
        name=name,
        volume=volume,
        storage_class=storage_class,
        controller=ControllerRef("Pod", owner, owner) if owner else None,
        uid=uid or name,
    )


def csi_volume(name: str, handle: str = "", driver: str = DRIVER) -> PersistentVolume:
    """Return a volume with a CSI source, whose handle is its name unless it is said."""
    return PersistentVolume(name=name, source=VolumeSource(driver, handle or name))


def in_tree_volume(name: str, plugin: str, volume: str, **labels: str) -> PersistentVolume:
    """Return a volume with the source of an in-tree plugin; labels are `topology.kubernetes.io/` ones."""
    return PersistentVolume(
        name=name,
        source=VolumeSource(f"kubernetes.io/{plugin}", volume, in_tree=True),
        labels={f"topology.kubernetes.io/{key}": value for key, value in labels.items()},
    )


def disk(plugin: str, volume: str, *, kind: str | None = None) -> InlineDisk:
    """Return a disk of an in-tree plugin that a pod names itself."""
    return InlineDisk("data", VolumeSource(f"kubernetes.io/{plugin}", volume, in_tree=True), kind=kind)


def storage_class(name: str, provisioner: str) -> StorageClass:
    """Return a class of a provisioner."""
    return StorageClass(name=name, provisioner=provisioner)


def csi_node(name: str, limit: int | None = None, driver: str = DRIVER, *migrated: str) -> CSINode:
    """Return the CSINode of a node, with the limit of one driver."""
    return CSINode(
        name=name, volume_limits={} if limit is None else {driver: limit}, migrated_plugins=frozenset(migrated)
    )


def attachment(name: str, volume: str, node: str, attacher: str = DRIVER) -> VolumeAttachment:
    """Return an attachment of a volume to a node."""
    return VolumeAttachment(name=name, attacher=attacher, node=node, volume=volume)
