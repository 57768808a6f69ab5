"""For one claim without a volume: the volumes that it could take, and where one could be made for it.

Source: k8s.io/component-helpers storage/volume/pv_helpers.go (FindMatchingVolume), k8s.io/kubernetes
pkg/scheduler/framework/plugins/volumebinding/binder.go (checkVolumeProvisions, hasEnoughCapacity).
"""

from collections.abc import Collection, Mapping
from typing import Final

from core.mirror.cluster import ClusterMirror
from core.objects.volumes import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.offers import Offers
from core.plugins.volumebinding.topology import ByTopology, label_keys, selected_nodes

BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"

_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")


class MatchingVolumes:
    """The volumes that a claim could take, the best one first."""

    def __init__(self, offers: Offers, claim: PersistentVolumeClaim) -> None:
        # Upstream takes volumes of one size in the order of a map.
        reserved = sorted(
            (each for each in offers.reserved(claim) if _fits(each, claim)), key=lambda volume: volume.name
        )
        self._reserved = [each for each in reserved if each.storage_class == claim.storage_class]
        free = (each for each in offers.free(claim.storage_class) if _fits(each, claim) and _is_wanted(each, claim))
        self._free = ByTopology(
            (volume, volume.node_affinity) for volume in sorted(free, key=lambda volume: (volume.capacity, volume.name))
        )

    @property
    def keys(self) -> set[str]:
        """The label keys of nodes that decide."""
        return self._free.keys.union(*(label_keys(volume.node_affinity) for volume in self._reserved))

    def find(self, labels: Mapping[str, str], taken: Collection[str]) -> str | None:
        """Return the name of the volume for a node; None: none that is not taken.

        A volume that is reserved for the claim decides, even if the node cannot reach it.
        """
        for volume in self._reserved:
            if volume.name not in taken:
                reached = volume.node_affinity is None or volume.node_affinity.matches(labels)
                return volume.name if reached else None
        return next((volume.name for volume in self._free.reached(labels) if volume.name not in taken), None)


class Provisioning:
    """Where a volume could be made for a claim."""

    def __init__(self, mirror: ClusterMirror, offers: Offers, claim: PersistentVolumeClaim) -> None:
        storage_class = mirror.objects(StorageClass)[claim.storage_class]  # or it would not wait for a consumer
        self._possible = storage_class.provisioner not in _NO_PROVISIONER
        self._topologies = storage_class.allowed_topologies
        self._capacities: ByTopology[CSIStorageCapacity] | None = None  # None: there is room everywhere
        driver = mirror.objects(CSIDriver).get(storage_class.provisioner)
        if claim.requested is not None and driver is not None and driver.storage_capacity:
            self._capacities = ByTopology(
                (capacity, selected_nodes(capacity.topology))
                for capacity in offers.capacities(storage_class.name)
                if capacity.limit is not None and capacity.limit >= claim.requested
            )

    @property
    def keys(self) -> set[str]:
        """The label keys of nodes that decide."""
        return label_keys(self._topologies) | (set() if self._capacities is None else self._capacities.keys)

    def conflict(self, labels: Mapping[str, str]) -> str:
        """Return why no volume can be made for a node, empty if one can."""
        if not self._possible or (self._topologies is not None and not self._topologies.matches(labels)):
            return BIND_CONFLICT
        if self._capacities is not None and next(self._capacities.reached(labels), None) is None:
            return NOT_ENOUGH_SPACE
        return ""


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.capacity >= (claim.requested or 0)
        and volume.volume_mode == claim.volume_mode
        and volume.volume_attributes_class == claim.volume_attributes_class
    )


def _is_wanted(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return claim.selector.matches(volume.labels) and claim.access_modes <= volume.access_modes
