"""VolumeRestrictions: which disks conflict, and what is kept of volumes in use."""

from typing import Final

from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume, RBDImage
from core.objects.volumes import PersistentVolumeClaim, VolumeSource
from core.plugins.volumerestrictions import VolumeRestrictions, VolumesInUse
from tests.core.plugins.values import mirror_of, tell


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


VOLUMES: list[tuple[PodVolume, ...]] = [
    (gce("d"), gce("d")),
    (gce("d", read_only=True), PodClaim("c")),
    (rbd("a", "b"), PodClaim("p1-v", ephemeral=True)),
    (rbd("b", read_only=True), ebs("e")),
    (azure("d"), PodClaim("c"), PodClaim("c")),
    (),
]


def test_nothing_is_left_of_a_pod_that_is_gone() -> None:
    mirror = ClusterMirror()
    retained = mirror.derived(VolumesInUse)
    pod = pod_with(*VOLUMES[2], *VOLUMES[1], on="n")
    for event in (ClusterEvent("Add", Node(name="n")), ClusterEvent("Add", pod), ClusterEvent("Delete", pod)):
        mirror.apply(event)
    assert (dict(retained.disks), dict(retained.claims)) == ({}, {})


def test_readers_of_one_disk_are_in_no_conflict() -> None:
    mirror = mirror_of(Node(name="n"), pod_with(gce("d", read_only=True), on="n"))
    retained = mirror.derived(VolumesInUse)
    found = [retained.conflicts([gce("d", read_only=read_only)]) for read_only in (True, False)]
    assert found == [set(), {mirror.nodes.slots["n"]}]


def test_asking_for_a_disk_that_nobody_uses_leaves_nothing_behind() -> None:
    retained = ClusterMirror().derived(VolumesInUse)
    assert retained.conflicts([gce("d"), rbd("a")]) == set()
    assert not retained.disks


# Which nodes VolumeRestrictions keeps a pod from, and what changes that.
#
# Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go.

NODES: Final = (Node(name="n1"), Node(name="n2"))
ONCE: Final = claim("once", "ReadWriteOncePod")


def mirror_with(*objects: Object) -> ClusterMirror:
    return mirror_of(*NODES, *objects)


def test_verdicts_follow_from_whether_a_claim_of_the_pod_is_in_use() -> None:
    mirror = mirror_with(ONCE, claim("other", "ReadWriteOncePod"))
    plugin, pod = VolumeRestrictions(), pod_with(gce("d"), PodClaim("once"))
    found = []
    for there in (pod_with(name="a", on="n1"), pod_with(PodClaim("other"), name="b", on="n1")):
        tell(mirror, there)
        found.append(versions(plugin, mirror, pod))
    tell(mirror, pod_with(PodClaim("once"), name="c", on="n1"))
    assert [*found, versions(plugin, mirror, pod)] == [(False,), (False,), (True,)]


def versions(plugin: VolumeRestrictions, mirror: ClusterMirror, pod: Pod) -> tuple[object, ...]:
    _, state = plugin.pre_filter(mirror, pod)
    assert state is not None
    return plugin.filter_versions(state)
