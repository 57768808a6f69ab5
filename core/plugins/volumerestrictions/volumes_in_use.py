"""The disks that pods have mounted on each node, and the claims that they use anywhere."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias, TypeGuard, TypeVar

from core.mirror.changes import Change, PodChange
from core.mirror.cluster import ClusterMirror
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume, RBDImage

_Counted = TypeVar("_Counted", int, str)

Disk: TypeAlias = InlineDisk | RBDImage
DiskKey: TypeAlias = tuple[str, ...]
"""The identity of a disk."""

EXCLUSIVE_PLUGINS: Final = frozenset({"kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/iscsi"})
"""In-tree plugins whose disks two pods on a node cannot both write. Azure disks and Cinder volumes are not included."""


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    """Return the disks of a pod that can be in conflict with another pod's (upstream needsRestrictionsCheck)."""
    return tuple([volume for volume in pod.volumes if _is_exclusive(volume)]) if pod.volumes else ()


def _is_exclusive(volume: PodVolume) -> TypeGuard[Disk]:
    if isinstance(volume, InlineDisk):
        return volume.source.plugin in EXCLUSIVE_PLUGINS
    return isinstance(volume, RBDImage)


class VolumesInUse:
    """The volumes of the pods on known nodes, updated by every event."""

    hears: Final = (PodChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        # (disk, mounted read-only) -> slot -> number of volumes
        self.disks: defaultdict[tuple[DiskKey, bool], Counter[int]] = defaultdict(Counter)
        self.claims: Counter[str] = Counter()  # NAMESPACE/NAME of a claim -> number of volumes, without ephemeral ones
        for slot, pod in mirror.placed_pods():
            if pod.volumes:
                self._count(pod, slot, 1)

    def changed(self, change: Change) -> None:
        """Update the counts for a pod that was added, removed or changed."""
        if not isinstance(change, PodChange):
            return
        before, after = change.before, change.after
        if before is not None and after is not None and _same_volumes(before, after):
            return
        if before is not None:
            self._count(before, change.slot, -1)
        if after is not None:
            self._count(after, change.slot, 1)

    def conflicts(self, disks: Iterable[Disk]) -> set[int]:
        """Return the slots of the nodes where a pod has mounted one of the disks, unless both pods only read the disk.

        Upstream isVolumeConflict. Only GCE, iSCSI and RBD disks can be shared by readers.
        """
        slots: set[int] = set()
        for disk in disks:
            for key in _keys(disk):
                slots.update(self.disks.get((key, False), ()))
                if not disk.read_only:
                    slots.update(self.disks.get((key, True), ()))
        return slots

    def _count(self, pod: Pod, slot: int, delta: int) -> None:
        for volume in pod.volumes:
            if isinstance(volume, PodClaim):
                if not volume.ephemeral:
                    _add(self.claims, f"{pod.namespace}/{volume.name}", delta)
            elif _is_exclusive(volume):
                for key in _keys(volume):
                    place = (key, volume.read_only)
                    _add(self.disks[place], slot, delta)
                    if not self.disks[place]:
                        del self.disks[place]


def in_conflict(disk: Disk, other: Disk) -> bool:
    """Return whether two disks are the same and not both read-only, as `VolumesInUse.conflicts` does."""
    return not (disk.read_only and other.read_only) and not set(_keys(disk)).isdisjoint(_keys(other))


def _keys(disk: Disk) -> Collection[DiskKey]:
    """Return a key for each way to reach the disk: RBD images are the same if they share any monitor."""
    if isinstance(disk, RBDImage):
        return [("kubernetes.io/rbd", monitor, disk.pool, disk.image) for monitor in disk.monitors]
    return [(disk.source.plugin, disk.source.volume)]


def _same_volumes(before: Pod, after: Pod) -> bool:
    return before.volumes == after.volumes and before.namespace == after.namespace


def _add(counts: Counter[_Counted], key: _Counted, delta: int) -> None:
    counts[key] += delta
    if not counts[key]:
        del counts[key]
