"""The resources of the fake API server, with their paths and names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Resource:
    """One row of API discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def path(self) -> str:
        """The path of the list over all namespaces."""
        return f"/apis/{self.group_version}/{self.plural}" if self.group else f"/api/{self.version}/{self.plural}"

    @property
    def group_version(self) -> str:
        """The `apiVersion` of objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PERSISTENT_VOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True)
SERVICES: Final = Resource("", "v1", "services", "Service", namespaced=True)
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_NODES: Final = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
CSI_DRIVERS: Final = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False)
CSI_STORAGE_CAPACITIES: Final = Resource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", namespaced=True
)
VOLUME_ATTACHMENTS: Final = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False)
POD_DISRUPTION_BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)
REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet", namespaced=True)
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True)
REPLICATION_CONTROLLERS: Final = Resource("", "v1", "replicationcontrollers", "ReplicationController", namespaced=True)
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True)
DEVICE_TAINT_RULES: Final = Resource("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False)
POD_GROUPS: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", namespaced=True)
SCHEDULING_GROUPS: Final = Resource("scheduling.k8s.io", "v1", "podgroups", "PodGroup", namespaced=True)
OLDER_SCHEDULING_GROUPS: Final = Resource("scheduling.k8s.io", "v1alpha3", "podgroups", "PodGroup", namespaced=True)
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)

RESOURCES: Final[Mapping[str, Resource]] = {  # list path -> resource
    resource.path: resource
    for resource in (
        NODES,
        PODS,
        NAMESPACES,
        PERSISTENT_VOLUMES,
        PERSISTENT_VOLUME_CLAIMS,
        SERVICES,
        STORAGE_CLASSES,
        CSI_NODES,
        CSI_DRIVERS,
        CSI_STORAGE_CAPACITIES,
        VOLUME_ATTACHMENTS,
        POD_DISRUPTION_BUDGETS,
        REPLICA_SETS,
        STATEFUL_SETS,
        REPLICATION_CONTROLLERS,
        DEVICE_CLASSES,
        RESOURCE_SLICES,
        RESOURCE_CLAIMS,
        DEVICE_TAINT_RULES,
        POD_GROUPS,
        SCHEDULING_GROUPS,
        OLDER_SCHEDULING_GROUPS,
        LEASES,
        EVENTS,
    )
}
