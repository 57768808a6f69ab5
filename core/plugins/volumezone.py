"""VolumeZone: rejects nodes outside the zones and regions in the labels of the pod's bound volumes.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumezone/volume_zone.go. The equivalence class design calls
it NoVolumeZoneConflict.
"""

from typing import Final, TypeAlias

import msgspec

from core.explaining.bound_claims import Judge, Reach, elsewhere_in_cluster, elsewhere_on_node
from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured
from core.framework.claims import ReadsClaims, find_claim, named_claims, not_found
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Scope, differs, node_update
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, NodeValues, labels_of
from core.objects.csi_migration import ZONES_DELIMITER
from core.objects.node import BETA_REGION, BETA_ZONE, REGION, TOPOLOGY_LABELS, ZONE, Node
from core.objects.pod import Pod
from core.objects.quantity import quoted
from core.objects.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim, StorageClass

Topology: TypeAlias = tuple[str, frozenset[str]]
"""A topology label of a volume, and its values. A node must have one of the values."""

NAME: Final = "VolumeZone"
ZONE_CONFLICT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had no available volume zone",))
_STATUSES: Final = (SUCCESS, ZONE_CONFLICT)

_GA_LABELS: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}  # beta label -> the label that a node may have instead


def volume_topologies(volume: PersistentVolume) -> frozenset[Topology]:
    """Return the requirements of a volume on nodes. A label with an empty value in its list requires nothing.

    Source: getPVTopologies, k8s.io/cloud-provider volume/helpers/zones.go (LabelZonesToSet).
    """
    topologies = set()
    for key in TOPOLOGY_LABELS:
        if key in volume.labels:
            values = frozenset([value.strip() for value in volume.labels[key].split(ZONES_DELIMITER)])
            if "" not in values:
                topologies.add((key, values))
    return frozenset(topologies)


class ZoneConstraints(msgspec.Struct, frozen=True):
    """The requirements of one incoming pod's bound volumes on nodes. Stale after the next event."""

    nodes: NodeValues[LabelValues]
    topologies: frozenset[Topology]

    def code(self, values: LabelValues | None) -> int:
        """Return the verdict on nodes with these values of TOPOLOGY_LABELS."""
        labels = labels_of(TOPOLOGY_LABELS, values)
        if not labels:
            return 0  # nodes of a cluster with a single zone need no zone label
        admitted = (labels.get(key, labels.get(_GA_LABELS.get(key, key))) in values for key, values in self.topologies)
        return 0 if all(admitted) else _STATUSES.index(ZONE_CONFLICT)


def _judge(decision: Decision) -> Judge:
    """Return how a volume is judged: by its zones and regions, if the plugin judges the pod."""
    state = decision.state_of(NAME)

    def judge(volume: PersistentVolume, batch: NodeBatch) -> Reach | None:
        topologies = volume_topologies(volume)
        if not (isinstance(state, ZoneConstraints) and topologies):
            return None
        rejected = state.nodes.judged(batch, ZoneConstraints(state.nodes, topologies).code) > 0
        needs = ", ".join(f"{key} in ({', '.join(sorted(values))})" for key, values in sorted(topologies))
        return Reach(needs, {key for key, _ in topologies}, rejected)

    return judge


class VolumeZone(ReadsClaims, Explained, FilterPlugin[ZoneConstraints]):
    """Filters by the zones and regions of bound volumes, exactly as the in-tree plugin."""

    name = NAME
    former_filters = ("NoVolumeZoneConflict",)
    pre_filter_rejects = True
    kinds = (Node, PersistentVolume, PersistentVolumeClaim, StorageClass)
    class_fields = ("namespace", "volumes")
    invalidated_by = (
        node_update(
            when="a zone or region label came, changed or went",
            because="the labels of volumes are held against them",
            reads=lambda node: [node.labels.get(key) for key in TOPOLOGY_LABELS],
        ),
        InvalidationRule(
            kind=PersistentVolume,
            scope=Scope.ALL,
            when="it comes or goes, or its zones or regions changed, removed ones too",
            because="a claim may name it, and the pod fails without it",
            touches=differs(volume_topologies),
        ),
        InvalidationRule(
            kind=PersistentVolumeClaim,
            scope=Scope.ALL,
            when="it comes or goes, or names another volume, or another class while it names no volume",
            because="it names the volume, or none yet",
            touches=differs(lambda claim: (claim.volume, "" if claim.volume else claim.storage_class)),
        ),
        InvalidationRule(
            kind=StorageClass,
            scope=Scope.ALL,
            when="it comes or goes, or its volumeBindingMode changed",
            because="a claim without a volume holds the pod back unless its class waits for the first consumer",
            touches=differs(lambda each: (each.volume_binding_mode,)),
        ),
    )
    keeps_off = "the zone of a volume"
    events = (
        Event("StorageClass", ("Add",)),
        Event("Node", ("Add", "UpdateNodeLabel")),
        Event("PersistentVolumeClaim", ("Add", "Update")),
        Event("PersistentVolume", ("Add", "Update")),
    )
    measured = Measured(
        on_node={"bound_elsewhere": lambda decision, at, _: elsewhere_on_node(decision, at, NAME, _judge(decision))},
        in_cluster={"bound_elsewhere": lambda decision, _: elsewhere_in_cluster(decision, NAME, _judge(decision))},
    )

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, ZoneConstraints | None]:
        """Collect the pod's volumes. Fails for the first faulty claim. SKIP if no volume has a zone or region."""
        if not pod.volumes:
            return SKIP, None
        topologies: set[Topology] = set()
        for named in named_claims(pod):
            if not named.name:
                return _unresolvable("PersistentVolumeClaim had no name"), None
            claim = find_claim(mirror, pod, named)
            if claim is None:
                return not_found(PersistentVolumeClaim, named.name), None
            if not claim.volume:
                if failure := _failure_of_unbound(mirror, claim):
                    return failure, None
                continue
            volume = mirror.objects(PersistentVolume).get(claim.volume)
            if volume is None:
                return not_found(PersistentVolume, claim.volume), None
            topologies |= volume_topologies(volume)
        nodes = mirror.derived(LabelProjections).of(TOPOLOGY_LABELS)
        return (SUCCESS, ZoneConstraints(nodes, frozenset(topologies))) if topologies else (SKIP, None)

    def filter(self, state: ZoneConstraints, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch, once for all nodes with the same labels."""
        return Verdicts(state.nodes.judged(batch, state.code), _STATUSES)


def _failure_of_unbound(mirror: ClusterMirror, claim: PersistentVolumeClaim) -> Status | None:
    """Return why a claim without a volume prevents scheduling, or None if its volume waits for the pod."""
    if not claim.storage_class:
        return _unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = mirror.objects(StorageClass).get(claim.storage_class)
    if storage_class is None:
        return not_found(StorageClass, claim.storage_class)
    if storage_class.volume_binding_mode is None:
        return _unresolvable(f"VolumeBindingMode not set for StorageClass {quoted(claim.storage_class)}")
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return _unresolvable("PersistentVolume had no name")
    return None


def _unresolvable(reason: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
