"""Pods, claims, volumes and classes as VolumeBinding is given them."""

from typing import Any

from msgspec.structs import replace

from core.objects.affinity import NodeSelector, parse_node_selector
from core.objects.labels import parse_selector
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim, PodVolume
from core.objects.volumes import (
    ClaimRef,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeSource,
)

DRIVER = "csi.example.com"
EBS = "kubernetes.io/aws-ebs"
ZONE = "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def node(name: str, **labels: str) -> Node:
    """Return a node with labels."""
    return Node(name=name, labels=labels)


def pod_with(*volumes: str | PodVolume, uid: str = "incoming") -> Pod:
    """Return a pod of the namespace `default`; a text is the name of a claim."""
    return Pod(
        uid=uid,
        namespace="default",
        name="incoming",
        volumes=tuple(PodClaim(each) if isinstance(each, str) else each for each in volumes),
    )


def within(key: str, *values: str) -> NodeSelector:
    """Return the affinity of a volume to nodes with one of these values of a label."""
    return parse_node_selector([([(key, "In", values)], [])])


def unbound(
    name: str,
    storage_class: str = "wait",
    requested: int | None = 5,
    **more: Any,  # noqa: ANN401 - members of every type
) -> PersistentVolumeClaim:
    """Return a claim without a volume."""
    claim = PersistentVolumeClaim(
        namespace="default",
        name=name,
        storage_class=storage_class,
        requested=requested,
        access_modes=frozenset({"ReadWriteOnce"}),
        uid=name,
    )
    return replace(claim, **more)


def bound(name: str, volume: str) -> PersistentVolumeClaim:
    """Return a claim with a volume."""
    return PersistentVolumeClaim(namespace="default", name=name, uid=name, volume=volume, bind_completed=True)


def free_volume(
    name: str,
    affinity: NodeSelector | None = None,
    capacity: int = 10,
    storage_class: str = "wait",
    **more: Any,  # noqa: ANN401 - members of every type
) -> PersistentVolume:
    """Return a volume that waits for a claim."""
    volume = PersistentVolume(
        name=name,
        node_affinity=affinity,
        capacity=capacity,
        storage_class=storage_class,
        access_modes=frozenset({"ReadWriteOnce"}),
        phase="Available",
    )
    return replace(volume, **more)


def reserved_volume(
    name: str, claim: str, affinity: NodeSelector | None = None, capacity: int = 10, uid: str = ""
) -> PersistentVolume:
    """Return a volume that is there for one claim."""
    return free_volume(name, affinity, capacity, claim=ClaimRef("default", claim, uid), phase="Pending")


def ebs_volume(
    name: str, affinity: NodeSelector | None = None, volume: str = "vol-1", **labels: str
) -> PersistentVolume:
    """Return an in-tree volume that a CSI driver has taken over; labels are `topology.kubernetes.io/` ones."""
    return PersistentVolume(
        name=name,
        source=VolumeSource(EBS, volume, in_tree=True),
        node_affinity=affinity,
        labels={f"topology.kubernetes.io/{key}": value for key, value in labels.items()},
    )


def waiting(
    name: str = "wait", provisioner: str = "kubernetes.io/no-provisioner", topologies: NodeSelector | None = None
) -> StorageClass:
    """Return a class whose volumes wait for the first pod."""
    return StorageClass(
        name=name,
        provisioner=provisioner,
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=topologies,
    )


def room(name: str, limit: int | None, storage_class: str = "wait", **labels: str) -> CSIStorageCapacity:
    """Return the capacity of nodes with these labels."""
    return CSIStorageCapacity(
        namespace="kube-system",
        name=name,
        storage_class=storage_class,
        topology=parse_selector(labels, ()),
        limit=limit,
    )
