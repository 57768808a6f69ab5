"""How many volumes every node has attached, by driver, updated by events.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (Filter, filterAttachableVolumes,
getVolumeLimits, getNodeVolumeAttachmentInfo) and utils.go (isCSIMigrationOn).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np

from core.events import Kind
from core.framework.claims import ClaimError, not_found_text, ownership_error
from core.framework.interface import Code, Status
from core.mirror.changes import Change, NodeChange, ObjectChange, PodChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.generation_store import StoredObject
from core.mirror.node_info import NO_SLOT
from core.mirror.topology import BoolArray, Int64Array
from core.objects.csi_migration import (
    CSI_DRIVERS,
    NEVER_COUNTED,
    PORTWORX,
    CSIVolume,
    TranslationError,
    is_migratable,
    translate_inline,
    translate_volume,
)
from core.objects.pod import InlineDisk, Pod, PodClaim, PodVolume
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from core.releases.release import MissingDriver, Rules

ObjectKey: TypeAlias = tuple[Kind, str]
"""An object by kind and full name. It need not exist."""
DriversByVolume: TypeAlias = dict[str, str]
"""Unique name of a volume -> name of the driver that attaches the volume."""

# Prefix of the name of a claim without a volume. No handle begins with it (upstream takes 32 random characters).
_UNBOUND = "\0"


class Migration(IntEnum):
    """The in-tree plugins whose volumes a node attaches by CSI."""

    NONE = 0
    """The node has no CSINode."""
    ALL_BUT_PORTWORX = 1
    """Regardless of the CSINode, because the in-tree code of these plugins no longer exists."""
    ALL = 2
    """All plugins, including Portworx."""

    @classmethod
    def of(cls, csi_node: CSINode | None, rules: Rules) -> "Migration":
        """Return the migration for the node's CSINode. Since v1.36 Portworx needs no annotation there."""
        if csi_node is None:
            return cls.NONE
        migrated = PORTWORX in csi_node.migrated_plugins or not rules.portworx_needs_annotation
        return cls.ALL if migrated else cls.ALL_BUT_PORTWORX

    def covers(self, plugin: str) -> bool:
        """Return whether a plugin's volumes are migrated."""
        return self is not Migration.NONE and plugin in CSI_DRIVERS and (self is Migration.ALL or plugin != PORTWORX)


class StorageObjects:
    """Claims, volumes and classes by full name. `looked_up` has the objects that were looked up, found or not."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.looked_up: set[ObjectKey] = set()
        self._mirror = mirror

    def get(self, kind: type[StoredObject], full_name: str) -> StoredObject | None:
        """Look up an object. Returns None if it does not exist."""
        self.looked_up.add((kind, full_name))  # type: ignore[arg-type]  # StoredObject's bound is wider than Kind
        return self._mirror.objects(kind).get(full_name)


def required_drivers(mirror: ClusterMirror) -> Callable[[str], bool]:
    """Return a check whether a node must have a given driver of a pod's volumes (checkCSIDriverOnNode)."""
    rule, drivers = mirror.rules.missing_driver, mirror.objects(CSIDriver)
    if rule is MissingDriver.ALLOWED:
        return lambda _: False
    if rule is MissingDriver.REJECTED:
        return drivers.__contains__
    return lambda name: (driver := drivers.get(name)) is not None and driver.prevents_scheduling_if_missing


def counted_volumes(pod: Pod) -> list[PodVolume]:
    """Return the volumes of a pod that are of the kinds that can count."""
    if not pod.volumes:
        return []
    return [
        volume
        for volume in pod.volumes
        if isinstance(volume, PodClaim) or (isinstance(volume, InlineDisk) and is_migratable(volume.source))
    ]


def attachable_volumes(
    objects: StorageObjects, pod: Pod, migration: Migration, *, is_new: bool = False
) -> DriversByVolume:
    """Return the volumes of a pod that a CSI driver attaches. Raises ClaimError for the first faulty one.

    A missing claim is a fault of a new pod, which cannot run without the claim. For an existing pod it does not count.
    """
    found: DriversByVolume = {}
    for volume in pod.volumes:
        attached = None
        if isinstance(volume, PodClaim):
            attached = _of_claim(objects, pod, volume, migration, is_new=is_new)
        elif isinstance(volume, InlineDisk):
            attached = _of_disk(volume, migration)
        if attached is not None:
            found[attached.unique_name] = attached.driver
    return found


def _of_disk(disk: InlineDisk, migration: Migration) -> CSIVolume | None:
    if not migration.covers(disk.source.plugin):
        return None
    try:
        return translate_inline(disk)
    except TranslationError as error:
        raise ClaimError(f"converting volume({disk.name}) from inline to csi: {error}", Code.ERROR) from None


def _of_claim(
    objects: StorageObjects, pod: Pod, volume: PodClaim, migration: Migration, *, is_new: bool
) -> CSIVolume | None:
    if not volume.name:
        raise ClaimError("PersistentVolumeClaim had no name", Code.ERROR)
    full_name = f"{pod.namespace}/{volume.name}"
    claim = objects.get(PersistentVolumeClaim, full_name)
    if claim is None:
        if is_new:
            problem = f"looking up PVC {full_name}: {not_found_text(PersistentVolumeClaim, volume.name)}"
            raise ClaimError(problem)
        return None
    if error := ownership_error(pod, volume, claim):
        raise ClaimError(error, Code.ERROR)
    attached = _volume_of(objects, claim, migration)
    return attached if attached is not None and attached.driver and attached.handle else None


def _volume_of(objects: StorageObjects, claim: PersistentVolumeClaim, migration: Migration) -> CSIVolume | None:
    """Upstream getCSIDriverInfo. A volume that cannot be translated does not count."""
    volume = objects.get(PersistentVolume, claim.volume) if claim.volume else None
    if volume is None:  # not bound yet, or deleted
        return _volume_to_come(objects, claim, migration)
    source = volume.source
    if source is None:
        return None
    if not source.in_tree:
        return CSIVolume(source.plugin, source.volume)
    if not migration.covers(source.plugin):
        return None
    try:
        return translate_volume(volume)
    except TranslationError:
        return None


def _volume_to_come(objects: StorageObjects, claim: PersistentVolumeClaim, migration: Migration) -> CSIVolume | None:
    """Upstream getCSIDriverInfoFromSC: a volume that the class's provisioner will create already counts."""
    storage_class = objects.get(StorageClass, claim.storage_class) if claim.storage_class else None
    if storage_class is None or storage_class.provisioner in NEVER_COUNTED:
        return None
    driver = storage_class.provisioner
    if driver in CSI_DRIVERS:
        if not migration.covers(driver):
            return None
        driver = CSI_DRIVERS[driver]
    return CSIVolume(driver, f"{_UNBOUND}{claim.full_name}")


Key = TypeVar("Key", str, ObjectKey)

NO_LIMIT: Final = 2**62


class NodeVolumes(msgspec.Struct, frozen=True, kw_only=True):
    """The volumes of one node with its limits. `drivers` are the node's CSI drivers.

    `in_use` are the volumes of the node's pods. `attached` is the number of volumes by driver, including volumes that
    are attached but that no pod uses. `error` is set if the volumes of a pod of the node cannot be counted.
    """

    migration: Migration = Migration.NONE
    drivers: frozenset[str] = frozenset()
    limits: Mapping[str, int] = {}
    in_use: Mapping[str, str] = {}
    attached: Mapping[str, int] = {}
    error: Status | None = None
    looked_up: frozenset[ObjectKey] = frozenset()
    """The objects that were looked up for this value."""

    def exceeded_by(self, new: DriversByVolume) -> bool:
        """Return whether new volumes would exceed a limit of the node. Volumes already in use do not count as new."""
        added = Counter(driver for volume, driver in new.items() if volume not in self.in_use)
        return any(
            self.attached.get(driver, 0) + number > self.limits.get(driver, NO_LIMIT)
            for driver, number in added.items()
        )


_NOTHING: Final = NodeVolumes()


class VolumesInUse:
    """The NodeVolumes of all known nodes, in columns by slot. Call `refresh` before any read.

    An event only marks nodes to recount: those whose value depends on the changed object.
    """

    hears: Final = (NodeChange, ObjectChange, PodChange, RulesChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        self.migration = np.zeros(0, np.int8)  # slot -> Migration
        self.limited: BoolArray = np.zeros(0, np.bool_)  # slot -> whether its node has any limit
        self.having: defaultdict[str, set[int]] = defaultdict(set)  # driver -> slots whose nodes have the driver
        self.limits: dict[str, Int64Array] = {}  # driver -> slot -> limit, NO_LIMIT for none
        self.attached: dict[str, Int64Array] = {}  # driver -> slot -> number of volumes
        self.users: defaultdict[str, set[int]] = defaultdict(set)  # volume -> slots whose pods use the volume
        self.errors: dict[int, Status] = {}  # slot -> why its volumes cannot be counted
        self._mirror = mirror
        self._names: dict[int, str] = {}  # slot -> node name
        self._pods: defaultdict[int, dict[str, Pod]] = defaultdict(dict)  # slot -> uid -> pod with volumes that count
        self._attachments: defaultdict[str, dict[str, VolumeAttachment]] = defaultdict(dict)  # by node and full name
        self._readers: defaultdict[ObjectKey, set[int]] = defaultdict(set)  # object -> slots that depend on it
        self._in_columns: dict[int, NodeVolumes] = {}  # slot -> its values in the columns
        self._stale: set[int] = set()
        for slot, node in mirror.nodes:
            self._names[slot] = node.name
            self._stale.add(slot)
        for slot, pod in mirror.placed_pods(counted_volumes):
            self._pods[slot][pod.uid] = pod
        for attachment in mirror.objects(VolumeAttachment).values():
            self._attachments[attachment.node][attachment.full_name] = attachment

    def changed(self, change: Change) -> None:
        """Mark the nodes to recount."""
        if isinstance(change, PodChange):
            self._pod_changed(change)
        elif isinstance(change, ObjectChange):
            self._object_changed(change)
        elif isinstance(change, NodeChange):
            if change.after is None:
                self._names.pop(change.slot, None)
                self._pods.pop(change.slot, None)
                self._stale.add(change.slot)
            elif change.before is None:
                self._names[change.slot] = change.after.name
                self._stale.add(change.slot)
        elif isinstance(change, RulesChange):  # the rules decide which volumes are attached
            self._stale.update(self._names)

    def refresh(self) -> None:
        """Recount the marked nodes."""
        if self._mirror.nodes.capacity > len(self.limited):
            self._grow(self._mirror.nodes.capacity)
        for slot in self._stale:
            name = self._names.get(slot)
            self._hold(slot, _NOTHING if name is None else self.counted(name, self._pods.get(slot, {}).values()))
        self._stale.clear()

    def _pod_changed(self, change: PodChange) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None and before.volumes == after.volumes:
            return
        if before is not None and self._pods[change.slot].pop(before.uid, None) is not None:
            self._stale.add(change.slot)
        if after is not None and counted_volumes(after):
            self._pods[change.slot][after.uid] = after
            self._stale.add(change.slot)

    def _object_changed(self, change: ObjectChange) -> None:
        if change.kind is CSINode:
            if change.slot != NO_SLOT:
                self._stale.add(change.slot)
        elif change.kind is VolumeAttachment:
            if change.before is not None:
                self._attachments[change.before.node].pop(change.before.full_name, None)
                self._attached_at(change.before.node)
            if change.after is not None:
                self._attachments[change.after.node][change.after.full_name] = change.after
                self._attached_at(change.after.node)
        else:
            self._stale |= self._readers.get((change.kind, (change.before or change.after).full_name), set())

    def _attached_at(self, name: str) -> None:
        if not self._attachments[name]:
            del self._attachments[name]
        slot = self._mirror.nodes.slots.get(name)
        if slot is not None:
            self._stale.add(slot)

    def counted(self, name: str, pods: Iterable[Pod] = ()) -> NodeVolumes:
        """Return the volumes of a node. An unknown node has no pods, but may have limits and attachments."""
        csi_node = self._mirror.objects(CSINode).get(name)
        migration = Migration.of(csi_node, self._mirror.rules)
        objects = StorageObjects(self._mirror)
        in_use: DriversByVolume = {}
        error = None
        try:
            for pod in pods:
                in_use.update(attachable_volumes(objects, pod, migration))
        except ClaimError as uncountable:
            error = Status(Code.ERROR, uncountable.status.reasons)
        attached = self._attached(objects, name)
        return NodeVolumes(
            migration=migration,
            drivers=frozenset() if csi_node is None else csi_node.drivers,
            limits={} if csi_node is None else csi_node.volume_limits,
            in_use=in_use,
            attached=Counter((attached | in_use).values()),
            error=error,
            looked_up=frozenset(objects.looked_up),
        )

    def _attached(self, objects: StorageObjects, name: str) -> DriversByVolume:
        found: DriversByVolume = {}
        for attachment in self._attachments.get(name, {}).values():
            if not attachment.attacher or not attachment.volume:
                continue
            volume = objects.get(PersistentVolume, attachment.volume)
            if volume is not None and volume.source is not None and not volume.source.in_tree:
                found[f"{attachment.attacher}/{volume.source.volume}"] = attachment.attacher
        return found

    def _hold(self, slot: int, now: NodeVolumes) -> None:
        before = self._in_columns.pop(slot, _NOTHING)
        _move(self._readers, slot, before.looked_up, now.looked_up)
        _move(self.users, slot, before.in_use.keys(), now.in_use.keys())
        _move(self.having, slot, before.drivers, now.drivers)
        self._write(self.limits, slot, before.limits, now.limits, NO_LIMIT)
        self._write(self.attached, slot, before.attached, now.attached, 0)
        self.migration[slot] = now.migration
        self.limited[slot] = bool(now.limits)
        self.errors.pop(slot, None)
        if now.error is not None:
            self.errors[slot] = now.error
        if now is not _NOTHING:
            self._in_columns[slot] = now

    def _write(
        self, columns: dict[str, Int64Array], slot: int, before: Mapping[str, int], now: Mapping[str, int], absent: int
    ) -> None:
        for driver in before.keys() - now.keys():
            columns[driver][slot] = absent
        for driver, number in now.items():
            if driver not in columns:
                columns[driver] = np.full(len(self.limited), absent, np.int64)
            columns[driver][slot] = number

    def _grow(self, capacity: int) -> None:
        more = capacity - len(self.limited)
        self.migration = np.concatenate((self.migration, np.zeros(more, np.int8)))
        self.limited = np.concatenate((self.limited, np.zeros(more, np.bool_)))
        for columns, absent in ((self.limits, NO_LIMIT), (self.attached, 0)):
            for driver, column in columns.items():
                columns[driver] = np.concatenate((column, np.full(more, absent, np.int64)))


def _move(slots_of: defaultdict[Key, set[int]], slot: int, before: AbstractSet[Key], now: AbstractSet[Key]) -> None:
    """Take a slot from the keys that it no longer has, and give it to those that it has now."""
    for key in before - now:
        slots_of[key].discard(slot)
        if not slots_of[key]:
            del slots_of[key]
    for key in now - before:
        slots_of[key].add(slot)
