"""The plugin VolumeBinding: its extension points, and its invalidation rules.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go. The equivalence class design
calls it CheckVolumeBinding.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from core.framework.arguments import NotNegative
from core.framework.claims import ClaimError, ReadsClaims
from core.framework.interface import SKIP, SUCCESS, FilterPlugin, ScorePlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Scope, differs, node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.csi_migration import is_migratable
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import (
    AVAILABLE,
    ClaimRef,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.claims import LOST, MigratedPlugins, Offers, claims_of
from core.plugins.volumebinding.explaining import ExplainedBinding
from core.plugins.volumebinding.filtering import NAME, BindingState, NodeView, PodVolumes, Provisioning, node_views
from core.releases.release import Rules


def _claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Keep only the fields of a claim that the plugin reads, without the history of its binding."""
    return replace(claim, phase=_known(claim.phase, LOST), resource_version="")


def _volume(volume: PersistentVolume) -> PersistentVolume:
    """Keep only the fields of a volume that the plugin reads: no handle of a CSI source, no unselected labels."""
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


def _unversioned(each: Any) -> Any:  # noqa: ANN401  # a class or a capacity
    return replace(each, uid="", resource_version="")


_INVALIDATED_BY: Final = (
    node_update(
        when="a label changed",
        because="volumes, topologies of classes and capacities select nodes by any label, old or new",
        reads=lambda node: node.labels,
    ),
    InvalidationRule(
        kind=CSINode,
        scope=Scope.NODE,
        when="its migrated plugins changed",
        because=(
            "where its plugin is migrated, an in-tree volume has the topology of the driver; events of CSINodes "
            "invalidated nothing (kubernetes issue 56163)"
        ),
        touches=differs(lambda csi_node: csi_node.migrated_plugins, frozenset()),
    ),
    InvalidationRule(
        kind=PersistentVolumeClaim,
        scope=Scope.ALL,
        when="it comes or goes, or anything changed but a phase other than Lost",
        because="pods wait for it to come, to be bound, or to be provisioned on a selected node, and not if it goes",
        touches=differs(_claim),
    ),
    InvalidationRule(
        kind=PersistentVolume,
        scope=Scope.ALL,
        when=(
            "it comes or goes, becomes or is no longer Available, or its affinity, its claim, a label or what else "
            "claims ask of it changed"
        ),
        because=(
            "no node can reach a volume that is missing; a free one may be what a claim waits for, on any node that "
            "can reach it; a zone label that is removed counts as one that is added"
        ),
        touches=differs(_volume),
    ),
    InvalidationRule(
        kind=StorageClass,
        scope=Scope.ALL,
        when="it comes or goes, or its provisioner, binding mode or topologies changed",
        because=(
            "it says whether a claim waits for its pod and where a volume can be made for it; its events invalidated "
            "nothing (kubernetes issue 56163)"
        ),
        touches=differs(_unversioned),
    ),
    InvalidationRule(
        kind=CSIDriver,
        scope=Scope.ALL,
        when="it begins or ends to publish capacities",
        because="only then volumes are not made on nodes without capacity for them",
        touches=differs(lambda driver: driver.storage_capacity, absent=False),
    ),
    InvalidationRule(
        kind=CSIStorageCapacity,
        scope=Scope.ALL,
        when="the size it leaves, its class or its topology changed",
        because="a topology can be any number of nodes",
        touches=differs(lambda room: None if room.limit is None or room.topology.nothing else _unversioned(room)),
    ),
)

_DEFAULT_SHAPES: Final[list[object]] = [None, [], [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]]
"""Values of VolumeBindingArgs.shape that mean the default: SetDefaults_VolumeBindingArgs."""


class VolumeBinding(ReadsClaims, ExplainedBinding, FilterPlugin[BindingState], ScorePlugin[BindingState]):
    """Filters by the volumes of the pod's claims: bound volumes, volumes to take, and volumes to create.

    It gives the results of the in-tree plugin's Filter and, if the release has one, its Score. It does not bind.
    """

    name = NAME
    former_filters = ("CheckVolumeBinding",)
    points = ("preFilter", "filter", "preScore", "score", "reserve", "preBind")
    needs_pre = ("filter",)
    pre_filter_rejects = True
    left_out: Mapping[str, Any] = {"bindTimeoutSeconds": NotNegative, "shape": Any}
    not_scored = (("shape", _DEFAULT_SHAPES),)
    waits_by = "bindTimeoutSeconds"
    missed = "pods are bound without their claims"
    kinds = (Node, PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, CSIStorageCapacity)
    class_fields = ("namespace", "volumes")
    invalidated_by = _INVALIDATED_BY
    states = (Offers, MigratedPlugins)
    scores_alone = True
    normalizes_alone = True

    @staticmethod
    def reserves_for(mirror: ClusterMirror, pod: Pod) -> str:
        """Return the first claim whose volume waits for the pod."""
        try:
            _, unbound = claims_of(mirror, pod)
        except ClaimError:
            return ""  # the filter rejects all nodes for this pod, with the reason
        return (
            f"has the unbound claim {unbound[0].name}, which needs the in-tree plugin VolumeBinding" if unbound else ""
        )

    def reserve(self, mirror: ClusterMirror, fork: Fork, pod: Pod) -> None:
        """Suppose that volumes are reserved for the pod's claims, or made for its node, of what capacity is left.

        Source: binder.go (AssumePodVolumes), which is what the next pod finds. The volume itself comes later.
        """
        try:
            bound, unbound = claims_of(mirror, pod)
        except ClaimError:
            return
        if not unbound:
            return
        once = [*{each.full_name: each for each in unbound}.values()]  # a pod may name a claim in two of its volumes
        volumes = PodVolumes(mirror, bound, once)
        _, views = node_views(mirror, volumes, mirror.batch([pod.node_name]))
        for claim, volume in [*volumes.taken_on(views[0])]:
            if volume is not None:
                fork.change_object(replace(volume, claim=ClaimRef(claim.namespace, claim.name, claim.uid)))
            elif claim.selected_node is None:
                # Another pod of the claim asks for no more capacity.
                fork.change_object(replace(claim, selected_node=pod.node_name, requested=None))
                _use_capacity(mirror, fork, claim, views[0])

    def scores_in(self, rules: Rules) -> bool:
        """Return whether the release has StorageCapacityScoring."""
        return rules.storage_capacity_scored

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, BindingState | None]:
        """Collect the pod's claims. SKIP without claims. Fails for claims that cannot be satisfied on any node."""
        if not any(isinstance(volume, PodClaim) for volume in pod.volumes):
            return SKIP, None
        try:
            bound, unbound = claims_of(mirror, pod)
        except ClaimError as error:
            return error.status, None
        return SUCCESS, BindingState(mirror, PodVolumes(mirror, bound, unbound))

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


def _use_capacity(mirror: ClusterMirror, fork: Fork, claim: PersistentVolumeClaim, node: NodeView) -> None:
    """Suppose that the driver has made the volume, and has published what is left of the largest capacity there.

    kube-scheduler does not count it: until the driver publishes, it gives the same room to another pod, whose volume
    cannot be made, so that this pod is scheduled once more.
    """
    storage_class = mirror.objects(StorageClass)[claim.storage_class]
    room = Provisioning(mirror, mirror.derived(Offers), storage_class).capacity(node.labels)
    if room is not None and claim.requested is not None:
        fork.adjust_object(room, partial(_without, claim.requested))


def _without(size: int, room: CSIStorageCapacity) -> CSIStorageCapacity:
    """Return a capacity after a volume was made of it. Of a maximumVolumeSize alone it is not known what is left."""
    if not room.capacity:
        return room
    left = max(0, room.capacity - size)
    return replace(room, capacity=left, limit=min(room.limit or 0, left))
