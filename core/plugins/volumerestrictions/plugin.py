"""The plugin: its arguments and its extension points.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go. The equivalence
class design calls it NoDiskConflict.
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from core.events import Kind
from core.framework.claims import claim_uids, find_claim, named_claims, not_found
from core.framework.interface import (
    SKIP,
    SUCCESS,
    Code,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    Status,
    Verdicts,
    Versions,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.objects.volumes import PersistentVolumeClaim
from core.plugins.volumerestrictions.volumes_in_use import Disk, VolumesInUse, disks_of

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
"""The access mode of a claim that only one pod in the cluster can use."""

_CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
DISK_CONFLICT: Final = Status(Code.UNSCHEDULABLE, ("node(s) had no available disk",))
READ_WRITE_ONCE_POD_CONFLICT: Final = Status(Code.UNSCHEDULABLE, (_CLAIM_IN_USE,))
# In the order of evaluation: the first failure is a node's verdict.
_STATUSES: Final = (SUCCESS, DISK_CONFLICT, READ_WRITE_ONCE_POD_CONFLICT)

_ANY: Final = (Operation.ADD, Operation.UPDATE, Operation.DELETE)


def _disks(pod: Pod | None) -> tuple[Disk, ...]:
    return () if pod is None else disks_of(pod)


def _is_exclusive(claim: PersistentVolumeClaim | None) -> bool | None:
    return None if claim is None else READ_WRITE_ONCE_POD in claim.access_modes


_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Pod,
        operations=_ANY,
        scope=Scope.NODE,
        when="it has a GCE, EBS, iSCSI or RBD disk",
        because="stronger than the design, where an added pod breaks nothing: it may have taken a disk of the class",
        touches=lambda before, after: _disks(before) != _disks(after),
    ),
    InvalidationRule(
        kind=Pod,
        operations=_ANY,
        scope=Scope.COUNTERS,
        when="it is the first or the last to use a ReadWriteOncePod claim of the class",
        because="such a claim can be used by one pod, wherever that is",
    ),
    InvalidationRule(
        kind=PersistentVolumeClaim,
        operations=_ANY,
        scope=Scope.ALL,
        when="it comes or goes, or ReadWriteOncePod comes or goes among its access modes",
        because="the pods that name it fail without it, and with ReadWriteOncePod if it is in use",
        touches=lambda before, after: _is_exclusive(before) != _is_exclusive(after),
    ),
)


class Restrictions:
    """The disks and claims that keep one incoming pod from nodes. Stale after the next event."""

    __slots__ = ("_capacity", "_taken", "exclusive_claim_in_use")

    def __init__(self, mirror: ClusterMirror, disks: tuple[Disk, ...], *, exclusive_claim_in_use: bool) -> None:
        self._capacity = mirror.nodes.capacity
        self._taken = mirror.derived(VolumesInUse).conflicts(disks) if disks else set()
        self.exclusive_claim_in_use = exclusive_claim_in_use

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Return the verdict on each node. A stranger has no pods, so no disk is in use there."""
        elsewhere = _STATUSES.index(READ_WRITE_ONCE_POD_CONFLICT if self.exclusive_claim_in_use else SUCCESS)
        if not self._taken:
            return Verdicts(np.full(len(batch), elsewhere, np.uint8), _STATUSES)
        by_slot = np.full(self._capacity, elsewhere, np.uint8)
        by_slot[list(self._taken)] = _STATUSES.index(DISK_CONFLICT)
        codes = by_slot[batch.slots]  # NO_SLOT reads the last slot, corrected below
        codes[list(batch.strangers)] = elsewhere
        return Verdicts(codes, _STATUSES)


class VolumeRestrictions(FilterPlugin[Restrictions]):
    """Filter by the disks and claims that pods have in use, exactly as the in-tree plugin."""

    name = "VolumeRestrictions"
    kinds: tuple[Kind, ...] = (Pod, PersistentVolumeClaim)
    class_fields = ("namespace", "volumes")
    invalidated_by = _INVALIDATED_BY

    def references(self, mirror: ClusterMirror, pod: Pod) -> Hashable:
        """Return the UIDs of the pod's claims."""
        return claim_uids(mirror, pod)

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
        return SUCCESS, Restrictions(mirror, disks, exclusive_claim_in_use=in_use)

    def filter(self, state: Restrictions, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def filter_versions(self, state: Restrictions) -> Versions:
        """Return whether a claim of the pod is in use. Disks need no version, because rules for nodes cover them."""
        return (state.exclusive_claim_in_use,)
