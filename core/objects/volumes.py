"""Persistent volumes, claims, classes and the nodes' limits, reduced to the fields that the volume plugins read.

Source: the fields that k8s.io/kubernetes pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,
volumerestrictions} and k8s.io/component-helpers storage/volume read.
"""

from collections.abc import Mapping

import msgspec

from core.objects.affinity import NodeSelector
from core.objects.kinds import ClusterWide, ControllerRef, Namespaced
from core.objects.labels import EVERYTHING, NOTHING, Selector

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
"""The volumeBindingMode of a class whose volumes are bound, or made, once a pod needs them."""
NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
"""The provisioners of classes for which no volume is made."""
AVAILABLE = "Available"
"""The phase of a volume that can be bound."""
FILESYSTEM = "Filesystem"
"""The volumeMode of a volume or claim that does not set one."""


class VolumeSource(msgspec.Struct, frozen=True, gc=False):
    """The backend of a volume, if the volume counts against a node's limits.

    `plugin` is a CSI driver's name, or the name of an in-tree plugin (`kubernetes.io/aws-ebs`) whose volumes a CSI
    driver has taken over. `volume` is the volumeHandle, or the in-tree plugin's key: volumeID, pdName, diskURI. `kind`
    is for an Azure disk. None means Managed.
    """

    plugin: str
    volume: str
    in_tree: bool = False
    kind: str | None = None


class ClaimRef(msgspec.Struct, frozen=True, gc=False):
    """The claim that a volume is bound to or reserved for. Without a UID, any claim with the name matches."""

    namespace: str
    name: str
    uid: str = ""


class PersistentVolume(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A v1.PersistentVolume.

    `storage_class` is the value of the beta annotation if set. `capacity` is in bytes, 0 if not set. `node_affinity` is
    None if every node can reach the volume. `source` is None for kinds that do not count.
    """

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

    def is_alike(self, claim: "PersistentVolumeClaim") -> bool:
        """Return whether the volume has the mode and the VolumeAttributesClass that a claim asks for."""
        return (self.volume_mode, self.volume_attributes_class) == (claim.volume_mode, claim.volume_attributes_class)

    def is_reserved_for(self, claim: "PersistentVolumeClaim") -> bool:
        """Return whether only this claim may take the volume (pv_helpers.go, IsVolumeBoundToClaim)."""
        of = self.claim
        return of is not None and (of.namespace, of.name) == (claim.namespace, claim.name) and of.uid in ("", claim.uid)


class PersistentVolumeClaim(Namespaced, frozen=True, kw_only=True, gc=False):
    """A v1.PersistentVolumeClaim.

    `volume` is the name of its volume, empty if it has none. The claim is *bound* only if `bind_completed` is also
    true. `storage_class` is from the beta annotation if set, and empty if no class was requested. `selected_node` is
    the node for which the claim is being provisioned, None before one is selected. `requested` is in bytes, None if not
    set.

    `selector` restricts the volumes. If it is invalid, `selector_error` has the reason, and any search for a volume
    fails. `controller` identifies the pod for which an ephemeral claim was created.
    """

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


class StorageClass(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 StorageClass.

    `volume_binding_mode` is None if not set, which upstream treats as an error. `allowed_topologies` is None if volumes
    can be created for every node. An invalid term in it allows no node. `default_since` is the time of creation of a
    class that claims without a class get, and None for any other one.
    """

    provisioner: str = ""
    volume_binding_mode: str | None = None
    default_since: str | None = None
    allowed_topologies: NodeSelector | None = None


class CSINode(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSINode. It has the name of its node.

    `drivers` are all drivers of the node. `volume_limits` is driver -> how many volumes can be attached. Drivers
    without a limit are missing. `migrated_plugins` are the in-tree plugins whose volumes the node attaches by CSI.
    """

    volume_limits: Mapping[str, int] = {}
    migrated_plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()


class CSIDriver(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSIDriver. Classes have its name as their provisioner.

    `storage_capacity` means that the driver publishes CSIStorageCapacities, so a node without enough capacity is not
    tried. `prevents_scheduling_if_missing` means that pods are kept off nodes without the driver.
    """

    storage_capacity: bool = False
    prevents_scheduling_if_missing: bool = False


class CSIStorageCapacity(Namespaced, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 CSIStorageCapacity: how large a volume of a class can be on the nodes of a topology.

    `topology` selects the nodes by their labels. A missing or invalid one selects none. `limit` is the
    maximumVolumeSize, else the capacity, in bytes. If it is None, no volume fits. `capacity` is the capacity alone, 0
    if not set. Scores use it.
    """

    storage_class: str = ""
    topology: Selector = NOTHING
    limit: int | None = None
    capacity: int = 0


class VolumeAttachment(ClusterWide, frozen=True, kw_only=True, gc=False):
    """A storage.k8s.io/v1 VolumeAttachment: a volume is attached to a node, or will be.

    `attacher` is a CSI driver's name. `volume` is the name of a PersistentVolume, empty for an inline volume of a pod.
    """

    attacher: str = ""
    node: str = ""
    volume: str = ""
