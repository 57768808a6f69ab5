"""VolumeRestrictions: two pods share no disk that one writes, and no ReadWriteOncePod claim.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go. The equivalence
class design calls it NoDiskConflict.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeAlias, TypeGuard, TypeVar

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.obstacles import Candidates, Gone, Obstacles, pods_of
from core.explaining.pod_names import name_of
from core.framework.claims import ReadsClaims, find_claim, named_claims, not_found
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts, Versions
from core.framework.invalidation import InvalidationRule, Scope, differs
from core.mirror.changes import PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume, RBDImage
from core.objects.volumes import PersistentVolumeClaim

_Counted = TypeVar("_Counted", int, str)

Disk: TypeAlias = InlineDisk | RBDImage
DiskKey: TypeAlias = tuple[str, ...]
"""The identity of a disk."""

NAME: Final = "VolumeRestrictions"
_MAX_CLAIMS: Final = 16
"""How many disks are reported. A pod may name hundreds."""
EXCLUSIVE_PLUGINS: Final = frozenset({"kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/iscsi"})
"""In-tree plugins whose disks two pods on a node cannot both write. Azure disks and Cinder volumes are not included."""


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    """Return the disks of a pod that can be in conflict with another pod's (upstream needsRestrictionsCheck)."""
    return tuple([volume for volume in pod.volumes if _is_exclusive_volume(volume)]) if pod.volumes else ()


def _is_exclusive_volume(volume: PodVolume) -> TypeGuard[Disk]:
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
        for slot, pod in mirror.pods.placed_alike():
            if pod.volumes:
                self._count(pod, slot, 1)

    def changed(self, change: PodChange) -> None:
        """Update the counts for a pod that was added, removed or changed."""
        before, after = change.before, change.after
        if before is not None and after is not None and _read_of(before) == _read_of(after):
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
            elif _is_exclusive_volume(volume):
                for key in _keys(volume):
                    place = (key, volume.read_only)
                    _add(self.disks[place], slot, delta)
                    if not self.disks[place]:
                        del self.disks[place]


def _read_of(pod: Pod) -> tuple[str, tuple[PodVolume, ...]]:
    return pod.namespace, pod.volumes


def in_conflict(disk: Disk, other: Disk) -> bool:
    """Return whether two disks are the same and not both read-only, as `VolumesInUse.conflicts` does."""
    return not (disk.read_only and other.read_only) and not set(_keys(disk)).isdisjoint(_keys(other))


def _keys(disk: Disk) -> Collection[DiskKey]:
    """Return a key for each way to reach the disk: RBD images are the same if they share any monitor."""
    if isinstance(disk, RBDImage):
        return [("kubernetes.io/rbd", monitor, disk.pool, disk.image) for monitor in disk.monitors]
    return [(disk.source.plugin, disk.source.volume)]


def _add(counts: Counter[_Counted], key: _Counted, delta: int) -> None:
    counts[key] += delta
    if not counts[key]:
        del counts[key]


READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
"""The access mode of a claim that only one pod in the cluster can use."""

_CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
DISK_CONFLICT: Final = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",))
READ_WRITE_ONCE_POD_CONFLICT: Final = Status(Code.UNSCHEDULABLE, (_CLAIM_IN_USE,))
# In the order of evaluation: the first failure is a node's verdict.
_STATUSES: Final = (SUCCESS, DISK_CONFLICT, READ_WRITE_ONCE_POD_CONFLICT)

_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it has a GCE, EBS, iSCSI or RBD disk",
        because="stronger than the design, where an added pod breaks nothing: it may have taken a disk of the class",
        touches=differs(disks_of, ()),
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.COUNTERS,
        when="it is the first or the last to use a ReadWriteOncePod claim of the class",
        because="such a claim can be used by one pod, wherever that is",
    ),
    InvalidationRule(
        kind=PersistentVolumeClaim,
        scope=Scope.ALL,
        when="it comes or goes, or ReadWriteOncePod comes or goes among its access modes",
        because="the pods that name it fail without it, and with ReadWriteOncePod if it is in use",
        touches=differs(lambda claim: READ_WRITE_ONCE_POD in claim.access_modes),
    ),
)


class Restrictions(msgspec.Struct, frozen=True):
    """The slots where a disk of one incoming pod is in use, and whether a claim is. Stale after the next event."""

    capacity: int
    taken: set[int]
    exclusive_claim_in_use: bool


# What the plugin adds to explanations: the claims and disks in use, and the pods that use them.


class InUse(msgspec.Struct, frozen=True, gc=False):
    """A ReadWriteOncePod claim, or a disk, that other pods use."""

    name: str
    """NAMESPACE/NAME of a claim, or the name of the pod's volume that is the disk."""
    pods: Sequence[str]
    """NAMESPACE/NAME of pods that use it. For a claim, empty if there are too many pods to search."""


def claims_in_use(decision: Decision, limit: int) -> Sequence[InUse]:
    """Return the pod's ReadWriteOncePod claims that other pods use. They exclude every node."""
    state = decision.state_of(NAME)
    if not isinstance(state, Restrictions) or not state.exclusive_claim_in_use:
        return ()
    users = claim_users(decision)
    return [InUse(claim, [name_of(pod) for pod in pods[:limit]]) for claim, pods in users.items()]


def claim_users(decision: Decision) -> dict[str, list[Pod]]:
    """Return the pods that use each ReadWriteOncePod claim of the pod. Costs a pass over all pods of the mirror.

    No pods if the search has taken too long, see PodSearch.
    """
    mirror, pod = decision.mirror, decision.pod
    claims = (find_claim(mirror, pod, each) for each in named_claims(pod))
    found: dict[str, list[Pod]] = {
        each.name: [] for each in claims if each is not None and READ_WRITE_ONCE_POD in each.access_modes
    }
    if decision.search.may_look_at(len(mirror.pods.pods)):
        for _, other in mirror.placed_pods(attrgetter("volumes")):
            if other.namespace == pod.namespace:
                for volume in other.volumes:
                    if isinstance(volume, PodClaim) and not volume.ephemeral and volume.name in found:
                        found[volume.name].append(other)
    return {f"{pod.namespace}/{name}": pods for name, pods in found.items()}


def disks_on_node(decision: Decision, position: int, limit: int) -> Sequence[InUse]:
    """Return the disks of the pod that pods of a node have mounted, unless all mounts are read-only."""
    state = decision.state_of(NAME)
    if not isinstance(state, Restrictions) or position in decision.batch.unmirrored:
        return ()
    others = decision.mirror.pods_on(decision.batch.names[position])
    found = []
    for disk in disks_of(decision.pod)[:_MAX_CLAIMS]:
        users = [name_of(pod) for pod in others if any(in_conflict(disk, other) for other in disks_of(pod))]
        if users:
            name = disk.image if isinstance(disk, RBDImage) else disk.name
            found.append(InUse(name, users[:limit]))
    return found


def _volume_users(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that uses a ReadWriteOncePod claim of the pod, or the pods of the node with volumes."""
    decision = obstacles.decision
    state = decision.state_of(NAME)
    if isinstance(state, Restrictions) and state.exclusive_claim_in_use:
        users = {pod.uid: pod for pods in obstacles.once(_users).values() for pod in pods}
        return {uid: Gone(pod, pod.node_name) for uid, pod in users.items()} if len(users) == 1 else {}
    return pods_with_volumes(obstacles, position)


def _users(obstacles: Obstacles) -> Mapping[str, Sequence[Pod]]:
    return claim_users(obstacles.decision)


def pods_with_volumes(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that have volumes."""
    return {uid: each for uid, each in pods_of(obstacles, position).items() if each.pod.volumes}


class VolumeRestrictions(ReadsClaims, Explained, FilterPlugin[Restrictions]):
    """Filter by the disks and claims that pods have in use, exactly as the in-tree plugin."""

    name = NAME
    former_filters = ("NoDiskConflict",)
    needs_pre = ("filter",)
    pre_filter_rejects = True
    kinds = (Pod, PersistentVolumeClaim)
    class_fields = ("namespace", "volumes")
    invalidated_by = _INVALIDATED_BY
    states = (VolumesInUse,)
    events = (
        Event("Pod", ("Delete",)),
        Event("Node", ("Add",)),
        Event("PersistentVolumeClaim", ("Add",), may_help=lambda decision, _: _names_claims(decision.pod)),
    )
    measured = Measured(on_node={"disks": disks_on_node}, in_cluster={"claims_in_use": claims_in_use})
    remedies = Remedies(removable=_volume_users, counts_elsewhere=True)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, Restrictions | None]:
        """Look up the pod's disks and claims. Fails if a claim is missing. SKIP if no conflict is possible."""
        if not pod.volumes:
            return SKIP, None
        exclusive_claims: list[str] = []
        for named in named_claims(pod):
            claim = find_claim(mirror, pod, named)
            if claim is None:
                return not_found(PersistentVolumeClaim, named.name), None
            if READ_WRITE_ONCE_POD in claim.access_modes:
                exclusive_claims.append(claim.full_name)
        disks = disks_of(pod)
        in_use = bool(exclusive_claims) and not mirror.derived(VolumesInUse).claims.keys().isdisjoint(exclusive_claims)
        if not disks and not in_use:
            return SKIP, None
        taken = mirror.derived(VolumesInUse).conflicts(disks) if disks else set()
        return SUCCESS, Restrictions(mirror.nodes.capacity, taken, in_use)

    def filter(self, state: Restrictions, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch. A stranger has no pods, so no disk is in use there."""
        elsewhere = _STATUSES.index(READ_WRITE_ONCE_POD_CONFLICT if state.exclusive_claim_in_use else SUCCESS)
        if not state.taken:
            return Verdicts(np.full(len(batch), elsewhere, np.uint8), _STATUSES)
        by_slot = np.full(state.capacity, elsewhere, np.uint8)
        by_slot[list(state.taken)] = _STATUSES.index(DISK_CONFLICT)
        codes = by_slot[batch.slots]  # NO_SLOT reads the last slot, corrected below
        codes[list(batch.unmirrored)] = elsewhere
        return Verdicts(codes, _STATUSES)

    def filter_versions(self, state: Restrictions) -> Versions:
        """Return whether a claim of the pod is in use. Disks need no version, because rules for nodes cover them."""
        return (state.exclusive_claim_in_use,)


def _names_claims(pod: Pod) -> bool:
    return any(isinstance(each, PodClaim) and not each.ephemeral for each in pod.volumes)
