"""The volumes of a pod that a CSI driver attaches to its node, and that count against the driver's limit there.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (filterAttachableVolumes) and utils.go
(isCSIMigrationOn).
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from core.events import Kind
from core.framework.claims import not_found_text, ownership_error
from core.framework.interface import Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.object_stores import HeldObject
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
from core.objects.pod import InlineDisk, Pod, PodClaim
from core.objects.volumes import CSIDriver, CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from core.releases import MissingDriver, Rules

ObjectKey: TypeAlias = tuple[Kind, str]
"""An object by kind and full name. It need not exist."""
DriversByVolume: TypeAlias = dict[str, str]
"""Unique name of a volume -> name of the driver that attaches the volume."""

# Prefix of the name of a claim without a volume. No handle begins with it (upstream takes 32 random characters).
_UNBOUND = "\0"


class UncountableError(Exception):
    """The volumes of a pod cannot be counted. The status says why."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.status = Status(code, (reason,))


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
    """Claims, volumes and classes by full name. `asked` has the objects that were looked up, found or not."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self.asked: set[ObjectKey] = set()
        self._mirror = mirror

    def get(self, kind: type[HeldObject], full_name: str) -> HeldObject | None:
        """Look up an object. Returns None if it does not exist."""
        self.asked.add((kind, full_name))  # type: ignore[arg-type]  # HeldObject's bound is wider than Kind
        return self._mirror.objects(kind).get(full_name)


def required_drivers(mirror: ClusterMirror) -> Callable[[str], bool]:
    """Return a check whether a node must have a given driver of a pod's volumes (checkCSIDriverOnNode)."""
    rule, drivers = mirror.rules.missing_driver, mirror.objects(CSIDriver)
    if rule is MissingDriver.ALLOWED:
        return lambda _: False
    if rule is MissingDriver.REFUSED:
        return drivers.__contains__
    return lambda name: (driver := drivers.get(name)) is not None and driver.prevents_scheduling_if_missing


def is_counted(pod: Pod) -> bool:
    """Return whether a pod has volumes of the kinds that can count."""
    return any(
        isinstance(volume, PodClaim) or (isinstance(volume, InlineDisk) and is_migratable(volume.source))
        for volume in pod.volumes
    )


def attachable_volumes(
    objects: StorageObjects, pod: Pod, migration: Migration, *, is_new: bool = False
) -> DriversByVolume:
    """Return the volumes of a pod that a CSI driver attaches. Raises UncountableError for the first faulty one.

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
        raise UncountableError(Code.ERROR, f"converting volume({disk.name}) from inline to csi: {error}") from None


def _of_claim(
    objects: StorageObjects, pod: Pod, volume: PodClaim, migration: Migration, *, is_new: bool
) -> CSIVolume | None:
    if not volume.name:
        raise UncountableError(Code.ERROR, "PersistentVolumeClaim had no name")
    full_name = f"{pod.namespace}/{volume.name}"
    claim = objects.get(PersistentVolumeClaim, full_name)
    if claim is None:
        if is_new:
            problem = f"looking up PVC {full_name}: {not_found_text(PersistentVolumeClaim, volume.name)}"
            raise UncountableError(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, problem)
        return None
    if error := ownership_error(pod, volume, claim):
        raise UncountableError(Code.ERROR, error)
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
