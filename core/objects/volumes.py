"""Persistent volumes, their claims, classes and the nodes' limits, as the volume plugins see them.

Source: what k8s.io/kubernetes pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,
volumerestrictions} and k8s.io/component-helpers storage/volume read.
"""

from collections.abc import Mapping

import msgspec

from core.objects.labels import EVERYTHING, NOTHING, Selector
from core.objects.node_selector import NodeSelector
from core.objects.owner import ControllerRef

FILESYSTEM = "Filesystem"
"""The volumeMode of a volume or claim that names none."""


class VolumeSource(msgspec.Struct, frozen=True, gc=False):
    """The backend of a volume, if it counts against a node's limits.

    `plugin` is a CSI driver's name, or the name of an in-tree plugin (`kubernetes.io/aws-ebs`) whose volumes a CSI
    driver has taken over. `volume` is the volumeHandle, or the in-tree plugin's key: volumeID, pdName, diskURI.
    """

    plugin: str
    volume: str
    in_tree: bool = False


class ClaimRef(msgspec.Struct, frozen=True, gc=False):
    """The claim that a volume is bound to or reserved for; without a uid any claim of the name will do."""

    namespace: str
    name: str
    uid: str = ""


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A v1.PersistentVolume.

    `storage_class` is the value of the beta annotation where there is one. `capacity` is in bytes, 0 when not given.
    `node_affinity` is None when every node can reach the volume. `source` is None for kinds that do not count.
    """

    name: str
    labels: Mapping[str, str] = {}
    source: VolumeSource | None = None
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    storage_class: str = ""
    volume_attributes_class: str = ""
    claim: ClaimRef | None = None
    node_affinity: NodeSelector | None = None
    phase: str = ""
    deleting: bool = False
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A v1.PersistentVolumeClaim.

    `volume` is the name of its volume, empty while there is none; it is *bound* only when `bind_completed`, too.
    `storage_class` is from the beta annotation if there is one, and empty when no class was requested.
    `selected_node` is the node for which it is being provisioned, None before one was selected. `requested` is in
    bytes, None when not given. `selector` restricts the volumes; when it is invalid, `selector_error` says why, and
    looking for a volume is an error. `controller` tells for which pod an ephemeral claim was made.
    """

    namespace: str
    name: str
    volume: str = ""
    bind_completed: bool = False
    storage_class: str = ""
    selected_node: str | None = None
    requested: int | None = None
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    volume_attributes_class: str = ""
    selector: Selector = EVERYTHING
    selector_error: str = ""
    phase: str = ""
    deleting: bool = False
    controller: ControllerRef | None = None
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class StorageClass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 StorageClass.

    `volume_binding_mode` is None when not set, which upstream takes for an error. `allowed_topologies` is None when
    volumes can be made for every node; a broken term in it allows none.
    """

    name: str
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: NodeSelector | None = None
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name


class CSINode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSINode; it bears the name of its node.

    `drivers` are all that the node has. `volume_limits` is, by driver, how many volumes can be attached; a driver
    without a limit is not in it. `migrated_plugins` are the in-tree plugins whose volumes the node attaches by CSI.
    """

    name: str
    volume_limits: Mapping[str, int] = {}
    migrated_plugins: frozenset[str] = frozenset()
    uid: str = ""
    resource_version: str = ""
    drivers: frozenset[str] = frozenset()

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name


class CSIDriver(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSIDriver; it bears the name that classes have as their provisioner.

    `storage_capacity` is whether it publishes CSIStorageCapacities, so that a volume without free capacity is not
    tried. `prevents_scheduling_if_missing` is whether pods are kept off nodes that do not have it.
    """

    name: str
    storage_capacity: bool = False
    prevents_scheduling_if_missing: bool = False
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name


class CSIStorageCapacity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSIStorageCapacity: how large a volume of a class can be on the nodes of a topology.

    `topology` selects the nodes by their labels; it selects none where it is absent or invalid. `limit` is the
    maximumVolumeSize, else the capacity, in bytes; None when neither is given, and then nothing fits. `capacity` is the
    capacity alone, 0 when it is not given, which scores go by.
    """

    namespace: str
    name: str
    storage_class: str = ""
    topology: Selector = NOTHING
    limit: int | None = None
    capacity: int = 0
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it, NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 VolumeAttachment: that a volume is, or shall be, attached to a node.

    `attacher` is a CSI driver's name. `volume` is the name of a PersistentVolume, empty for a volume that a pod names
    itself.
    """

    name: str
    attacher: str = ""
    node: str = ""
    volume: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def full_name(self) -> str:
        """The object as people write it; it has no namespace."""
        return self.name
