"""The plugin NodeVolumeLimits: its extension points, and its invalidation rules.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. The equivalence class design calls it
MaxEBSVolumeCount, MaxGCEPDVolumeCount, MaxAzureDiskVolumeCount and MaxCSIVolumeCount.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from core.events import Kind
from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.framework.claims import ClaimError, ReadsClaims
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.framework.invalidation import InvalidationRule, Scope, differs
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array
from core.objects.csi_migration import PORTWORX, is_migratable, zones_label
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from core.plugins.nodevolumelimits.volumes_in_use import (
    NO_LIMIT,
    DriversByVolume,
    Migration,
    NodeVolumes,
    StorageObjects,
    VolumesInUse,
    attachable_volumes,
    counted_volumes,
    required_drivers,
)
from core.plugins.volumerestrictions import pods_with_volumes

NAME: Final = "NodeVolumeLimits"
LIMIT_EXCEEDED: Final = Status(Code.UNSCHEDULABLE, ("node(s) exceed max volume count",))

_INVALIDATED_BY: Final = (
    InvalidationRule(
        kind=CSINode,
        scope=Scope.NODE,
        when="a limit changed, or the drivers, or whether Portworx is migrated, or the node has a CSINode at all",
        because=(
            "its allocatable counts are the limits, as the node's attachable-volumes were when the design was written; "
            "its events invalidated nothing (kubernetes issue 56163)"
        ),
        touches=differs(lambda node: (PORTWORX in node.migrated_plugins, node.volume_limits, node.drivers)),
    ),
    InvalidationRule(
        kind=CSIDriver,
        scope=Scope.ALL,
        when="it comes or goes, or preventPodSchedulingIfMissing changed",
        because="it says whether pods are kept off nodes that do not have the driver",
        touches=differs(lambda driver: driver.prevents_scheduling_if_missing),
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.NODE,
        when="it has a claim, or a disk of a migrated in-tree plugin",
        because="its volumes are attached to the node; and a volume of the class that is there already takes no room",
        touches=differs(counted_volumes, []),
    ),
    InvalidationRule(
        kind=PersistentVolumeClaim,
        scope=Scope.ALL,
        when="it comes or goes, or its volume, its class or its controller changed",
        because="a claim of the class, or of a pod on any node, is another volume then, or none, or cannot be counted",
        touches=differs(lambda claim: (claim.volume, claim.storage_class, claim.controller)),
    ),
    InvalidationRule(
        kind=PersistentVolume,
        scope=Scope.ALL,
        when="it comes or goes, or its source changed, or the zone label of one with an in-tree source",
        because="it is what counts for a claim, and what is attached; by its zone, too, a GCE disk is told apart",
        touches=differs(lambda volume: (volume.source, zones_label(volume) if is_migratable(volume.source) else "")),
    ),
    InvalidationRule(
        kind=StorageClass,
        scope=Scope.ALL,
        when="it comes or goes, or its provisioner changed",
        because=(
            "claims without a volume count under the provisioner; its events invalidated nothing (kubernetes issue "
            "56163)"
        ),
        touches=differs(lambda storage_class: storage_class.provisioner),
    ),
    InvalidationRule(
        kind=VolumeAttachment,
        scope=Scope.ALL,
        when="it comes or goes, or its attacher, node or volume changed; not its status",
        because="a volume is attached before its pod is there, and for a while after it is gone",
        touches=differs(lambda each: (each.attacher, each.node, each.volume)),
    ),
)


class NewVolumes:
    """The volumes that an incoming pod would attach. Stale after the next event."""

    __slots__ = ("_by_migration", "_mirror", "_pod", "_required", "in_use")

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        self.in_use = mirror.derived(VolumesInUse)
        self._mirror = mirror
        self._pod = pod
        self._by_migration: dict[Migration, DriversByVolume | Status] = {}
        self._required = required_drivers(mirror)

    def missing(self, new: DriversByVolume) -> Iterator[str]:
        """Yield the drivers of new volumes that a node must have but lacks, in the order of the volumes."""
        return (driver for driver in dict.fromkeys(new.values()) if self._required(driver))

    def on(self, migration: Migration) -> DriversByVolume | Status:
        """Return the pod's volumes on nodes with this migration, or the status if they cannot be counted."""
        found = self._by_migration.get(migration)
        if found is None:
            try:
                found = attachable_volumes(StorageObjects(self._mirror), self._pod, migration, is_new=True)
            except ClaimError as error:
                found = error.status
            self._by_migration[migration] = found
        return found


# What the plugin adds to explanations: the limits of the drivers.


class DriverOnNode(msgspec.Struct, frozen=True, gc=False):
    """A CSI driver of the pod's volumes, on one node."""

    driver: str
    limit: int | None
    """How many volumes the driver can attach to the node. None means no limit."""
    attached: int
    added: int
    """Volumes that the pod would add."""

    @property
    def text(self) -> str:
        """The limit in words."""
        limit = "no limit" if self.limit is None else f"limit {self.limit}"
        return f"volumes of {self.driver}: {self.attached} attached, {self.added} more, {limit}"


class DriverInCluster(msgspec.Struct, frozen=True, gc=False):
    """A CSI driver of the pod's volumes, over the nodes that limit it."""

    driver: str
    added: int
    """Volumes of the pod, including any that are already attached to a node."""
    nodes: int
    """Nodes with a limit."""
    most_free: int
    most_free_node: str
    limit: int
    """The limit of this node."""

    @property
    def text(self) -> str:
        """The limits in words."""
        most = f"most free on any node: {self.most_free} of a limit of {self.limit}, on {self.most_free_node}"
        return f"volumes of {self.driver}: needs {self.added}; {most}"


def drivers_on_node(decision: Decision, position: int) -> Sequence[DriverOnNode]:
    """Return the CSI drivers of the pod's volumes on a known node, with their limits there."""
    state = decision.state_of(NAME)
    if not isinstance(state, NewVolumes) or position in decision.batch.unmirrored:
        return ()
    in_use = state.in_use
    in_use.refresh()
    slot = int(decision.batch.slots[position])
    new = state.on(Migration(int(in_use.migration[slot])))
    if isinstance(new, Status):
        return ()
    added = Counter(driver for volume, driver in new.items() if slot not in in_use.users.get(volume, ()))
    found = []
    for driver, number in sorted(added.items()):
        limits, attached = in_use.limits.get(driver), in_use.attached.get(driver)
        limit = NO_LIMIT if limits is None else int(limits[slot])
        found.append(
            DriverOnNode(
                driver, None if limit == NO_LIMIT else limit, 0 if attached is None else int(attached[slot]), number
            )
        )
    return found


def drivers_in_cluster(decision: Decision) -> Sequence[DriverInCluster]:
    """Return the CSI drivers of the pod's volumes, with the free attachments of the nodes that limit them."""
    state = decision.state_of(NAME)
    if not isinstance(state, NewVolumes) or not len(decision.known):
        return ()
    in_use, slots = state.in_use, decision.batch.slots[decision.known]
    in_use.refresh()
    new = state.on(Migration.ALL)
    added = Counter() if isinstance(new, Status) else Counter(new.values())
    found = []
    for driver, number in sorted(added.items()):
        limits, attached = in_use.limits.get(driver), in_use.attached.get(driver)
        limited = np.zeros(0, np.intp) if limits is None else np.flatnonzero(limits[slots] != NO_LIMIT)
        if limits is None or not len(limited):
            continue
        free = limits[slots[limited]] - (0 if attached is None else attached[slots[limited]])
        most = int(free.argmax())
        name = decision.batch.names[int(decision.known[limited[most]])]
        limit = int(limits[slots[limited[most]]])
        found.append(DriverInCluster(driver, number, len(limited), int(free[most]), name, limit))
    return found


class NodeVolumeLimits(ReadsClaims, Explained, FilterPlugin[NewVolumes]):
    """Filters by how many volumes of each CSI driver a node can attach, exactly as the in-tree plugin.

    The limits come from the CSINodes. They include in-tree volumes, which CSI drivers have taken over. A missing driver
    is reported before any limit, if the release or the CSIDriver requires the driver.
    """

    name = NAME
    former_filters = (
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "MaxCinderVolumeCount",
        "MaxPDVolumeCountPredicate",
        "MaxCSIVolumeCount",
        "MaxCSIVolumeCountPred",
        "EBSLimits",
        "GCEPDLimits",
        "AzureDiskLimits",
        "CinderLimits",
    )
    kinds = (Node, Pod, PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, CSIDriver, VolumeAttachment)
    class_fields = ("namespace", "volumes")
    invalidated_by = _INVALIDATED_BY
    states = (VolumesInUse,)
    keeps_off = "the limits of volumes"
    events = (
        Event("CSINode", ("Add", "Update")),
        Event("Pod", ("Delete",)),
        Event("PersistentVolumeClaim", ("Add",), may_help=lambda decision, _: _names_claims(decision.pod)),
        Event("VolumeAttachment", ("Delete",)),
    )
    measured = Measured(
        on_node={"drivers": lambda decision, position, _: drivers_on_node(decision, position)},
        in_cluster={"drivers": lambda decision, _: drivers_in_cluster(decision)},
    )
    remedies = Remedies(removable=pods_with_volumes)

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, NewVolumes | None]:
        """SKIP for a pod without volumes that could count. An error in the volumes is reported per node, by Filter."""
        return (SUCCESS, NewVolumes(mirror, pod)) if counted_volumes(pod) else (SKIP, None)

    def filter(self, state: NewVolumes, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        state.in_use.refresh()
        statuses = {SUCCESS: 0, LIMIT_EXCEEDED: 1}  # status -> code
        migration = state.in_use.migration[batch.slots]
        codes = np.zeros(len(batch), np.int64)
        for each in np.unique(migration).tolist():
            of_slot = _codes_by_slot(state, Migration(each), statuses)
            where = migration == each
            codes[where] = of_slot[batch.slots[where]]
        for position, node in batch.unmirrored.items():
            if node is not None:
                verdict = _verdict(state, state.in_use.counted(node.name))
                codes[position] = statuses.setdefault(verdict, len(statuses))
        return Verdicts(codes, tuple(statuses))

    def reads(self, _mirror: ClusterMirror, pod: Pod, missing: Collection[Kind]) -> Collection[Kind]:
        """Return all kinds for a pod with volumes, because the volumes of all pods count."""
        return missing if pod.volumes else ()


def _names_claims(pod: Pod) -> bool:
    return any(isinstance(each, PodClaim) for each in pod.volumes)


def _codes_by_slot(state: NewVolumes, migration: Migration, statuses: dict[Status, int]) -> Int64Array:
    """Return the verdict of every slot whose node has this migration. Values of other slots have no meaning."""
    in_use, new = state.in_use, state.on(migration)
    codes = np.zeros(len(in_use.limited), np.int64)
    if isinstance(new, Status):
        codes[:] = statuses.setdefault(new, len(statuses))
    elif new:
        codes[_exceeded(in_use, new)] = statuses[LIMIT_EXCEEDED]
        for slot, error in in_use.errors.items():
            if in_use.limited[slot]:
                codes[slot] = statuses.setdefault(error, len(statuses))
        for driver in reversed([*state.missing(new)]):  # reversed, so that the first missing driver gives the reason
            lacking = np.ones(len(codes), np.bool_)
            lacking[list(in_use.having.get(driver, ()))] = False
            codes[lacking] = statuses.setdefault(_not_installed(driver), len(statuses))
    return codes


def _not_installed(driver: str) -> Status:
    return Status(Code.UNSCHEDULABLE, (f"{driver} CSI driver is not installed on the node",))


def _exceeded(in_use: VolumesInUse, new: DriversByVolume) -> BoolArray:
    exceeded = np.zeros(len(in_use.limited), np.bool_)
    by_driver: defaultdict[str, list[str]] = defaultdict(list)
    for volume, driver in new.items():
        by_driver[driver].append(volume)
    for driver, volumes in by_driver.items():
        limits = in_use.limits.get(driver)
        if limits is None:
            continue
        added = np.full(len(limits), len(volumes), np.int64)
        for volume in volumes:
            added[list(in_use.users.get(volume, ()))] -= 1
        attached = in_use.attached.get(driver, 0)
        exceeded |= (added > 0) & (attached + added > limits)
    return exceeded


def _verdict(state: NewVolumes, node: NodeVolumes) -> Status:
    new = state.on(node.migration)
    if isinstance(new, Status):
        return new
    if absent := next((driver for driver in state.missing(new) if driver not in node.drivers), ""):
        return _not_installed(absent)
    return LIMIT_EXCEEDED if node.exceeded_by(new) else SUCCESS
