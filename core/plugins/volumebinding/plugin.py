"""The plugin: its extension points, and its invalidation rules.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go. The equivalence class design
calls it CheckVolumeBinding.
"""

from collections.abc import Hashable
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from core.events import Kind
from core.framework.claims import claim_uids
from core.framework.interface import (
    SKIP,
    SUCCESS,
    FilterPlugin,
    InvalidationRule,
    Operation,
    Scope,
    ScorePlugin,
    Status,
    Verdicts,
)
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.csi_migration import is_migratable
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.claims import AVAILABLE, LOST, ClaimError, claims_of
from core.plugins.volumebinding.filtering import PodVolumes, node_views

_ANY: Final = (Operation.ADD, Operation.UPDATE, Operation.DELETE)


def _claim(claim: PersistentVolumeClaim | None) -> PersistentVolumeClaim | None:
    """Keep only the fields of a claim that the plugin reads, without the history of its binding."""
    return None if claim is None else replace(claim, phase=_known(claim.phase, LOST), resource_version="")


def _volume(volume: PersistentVolume | None) -> PersistentVolume | None:
    """Keep only the fields of a volume that the plugin reads: no handle of a CSI source, no unselected labels."""
    if volume is None:
        return None
    migratable = is_migratable(volume.source)
    return replace(
        volume,
        source=volume.source if migratable else None,
        labels=volume.labels if migratable or volume.claim is None else {},
        phase=_known(volume.phase, AVAILABLE),
        uid="",
        resource_version="",
    )


def _known(phase: str, known: str) -> str:
    return phase if phase == known else ""


def _storage_class(storage_class: StorageClass | None) -> StorageClass | None:
    return None if storage_class is None else replace(storage_class, uid="", resource_version="")


def _migrated(csi_node: CSINode | None) -> frozenset[str]:
    return frozenset() if csi_node is None else csi_node.migrated_plugins


def _tracks_capacity(driver: CSIDriver | None) -> bool:
    return driver is not None and driver.storage_capacity


def _room(capacity: CSIStorageCapacity | None) -> CSIStorageCapacity | None:
    if capacity is None or capacity.limit is None or capacity.topology.nothing:
        return None
    return replace(capacity, uid="", resource_version="")


_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="a label changed",
        because="volumes, topologies of classes and capacities select nodes by any label, old or new",
        touches=lambda before, after: before.labels != after.labels,
    ),
    InvalidationRule(
        kind=CSINode,
        operations=_ANY,
        scope=Scope.NODE,
        when="its migrated plugins changed",
        because=(
            "where its plugin is migrated, an in-tree volume has the topology of the driver; events of CSINodes "
            "invalidated nothing (kubernetes issue 56163)"
        ),
        touches=lambda before, after: _migrated(before) != _migrated(after),
    ),
    InvalidationRule(
        kind=PersistentVolumeClaim,
        operations=_ANY,
        scope=Scope.ALL,
        when="it comes or goes, or anything changed but a phase other than Lost",
        because="pods wait for it to come, to be bound, or to be provisioned on a selected node, and not if it goes",
        touches=lambda before, after: _claim(before) != _claim(after),
    ),
    InvalidationRule(
        kind=PersistentVolume,
        operations=_ANY,
        scope=Scope.ALL,
        when=(
            "it comes or goes, becomes or is no longer Available, or its affinity, its claim, a label or what else "
            "claims ask of it changed"
        ),
        because=(
            "no node can reach a volume that is missing; a free one may be what a claim waits for, on any node that "
            "can reach it; a zone label that is removed counts as one that is added"
        ),
        touches=lambda before, after: _volume(before) != _volume(after),
    ),
    InvalidationRule(
        kind=StorageClass,
        operations=_ANY,
        scope=Scope.ALL,
        when="it comes or goes, or its provisioner, binding mode or topologies changed",
        because=(
            "it says whether a claim waits for its pod and where a volume can be made for it; its events invalidated "
            "nothing (kubernetes issue 56163)"
        ),
        touches=lambda before, after: _storage_class(before) != _storage_class(after),
    ),
    InvalidationRule(
        kind=CSIDriver,
        operations=_ANY,
        scope=Scope.ALL,
        when="it begins or ends to publish capacities",
        because="only then volumes are not made on nodes without capacity for them",
        touches=lambda before, after: _tracks_capacity(before) != _tracks_capacity(after),
    ),
    InvalidationRule(
        kind=CSIStorageCapacity,
        operations=_ANY,
        scope=Scope.ALL,
        when="the size it leaves, its class or its topology changed",
        because="a topology can be any number of nodes",
        touches=lambda before, after: _room(before) != _room(after),
    ),
)


class BindingState(msgspec.Struct, frozen=True):
    """A pod's volumes, with the mirror. Stale after the next event."""

    mirror: ClusterMirror
    volumes: PodVolumes


class VolumeBinding(FilterPlugin[BindingState], ScorePlugin[BindingState]):
    """Filters by the volumes of the pod's claims: bound volumes, volumes to take, and volumes to create.

    It gives the results of the in-tree plugin's Filter and, if the release has one, its Score. It does not bind.
    """

    name = "VolumeBinding"
    kinds: tuple[Kind, ...] = (
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
    )
    class_fields = ("namespace", "volumes")
    invalidated_by = _INVALIDATED_BY
    scores_alone = True
    normalizes_alone = True

    def references(self, mirror: ClusterMirror, pod: Pod) -> Hashable:
        """Return the UIDs of the pod's claims."""
        return claim_uids(mirror, pod)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, BindingState | None]:
        """Collect the pod's claims. SKIP for a pod without claims.

        Fails for claims that cannot be satisfied on any node.
        """
        if not any(isinstance(volume, PodClaim) for volume in pod.volumes):
            return SKIP, None
        try:
            claims = claims_of(mirror, pod)
        except ClaimError as error:
            return error.status, None
        return SUCCESS, BindingState(mirror, PodVolumes(mirror, claims))

    def filter(self, state: BindingState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch. Equal nodes are judged once."""
        places, views = node_views(state.mirror, state.volumes, batch)
        statuses = {SUCCESS: 0}  # status -> code
        codes = [statuses.setdefault(state.volumes.judge(view), len(statuses)) for view in views]
        return Verdicts(np.array(codes, np.int64)[places], tuple(statuses))

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, BindingState | None]:
        """Collect the pod's claims. SKIP without claims, or if the release does not score (StorageCapacityScoring)."""
        if not mirror.rules.storage_capacity_scored:
            return SKIP, None
        return self.pre_filter(mirror, pod)

    def score(self, state: BindingState, batch: NodeBatch) -> Int64Array:
        """Return how little of its storage every node would give, 0..100. Equal nodes are scored once."""
        places, views = node_views(state.mirror, state.volumes, batch)
        return np.array([state.volumes.score(view) for view in views], np.int64)[places]

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Return the scores, which are already 0..100 (upstream has no NormalizeScore)."""
        return raw
