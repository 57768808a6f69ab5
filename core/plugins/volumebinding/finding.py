"""For one claim without a volume: the volumes that it could take, and where one could be created for it.

Source: k8s.io/component-helpers storage/volume/pv_helpers.go (FindMatchingVolume), k8s.io/kubernetes
pkg/scheduler/framework/plugins/volumebinding/binder.go (checkVolumeProvisions, hasEnoughCapacity).
"""

from collections.abc import Collection, Hashable, Mapping
from typing import Final

from core.mirror.cluster import ClusterMirror
from core.mirror.work import Work
from core.objects.volumes import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.offers import FreeVolumes, Offers
from core.plugins.volumebinding.topology import ByTopology, label_keys

BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"

UNITS: Final = 700
"""Work of a check of one volume, see core.mirror.work."""
FIELD: Final = "spec.volumes"

_NO_PROVISIONER: Final = ("", "kubernetes.io/no-provisioner")


class Wish:
    """The requirements of a claim on a volume, except for its size. Claims with equal requirements share a wish."""

    def __init__(self, free: FreeVolumes, claim: PersistentVolumeClaim, work: Work) -> None:
        self._claim = claim
        self.free = free
        # Volumes that no label excludes are checked once, not for every node.
        work.spend(UNITS * free.by_topology.loose, FIELD, free.by_topology.loose)
        self.anywhere = free.by_topology.anywhere(self.accepts)

    def accepts(self, volume: PersistentVolume) -> bool:
        """Return whether a free volume is suitable, apart from its size."""
        claim = self._claim
        return (
            _is_alike(volume, claim)
            and claim.access_modes <= volume.access_modes
            and claim.selector.matches(volume.labels)
        )


class Wishes:
    """The wishes of the claims of one pod."""

    def __init__(self, offers: Offers, work: Work) -> None:
        self._offers = offers
        self._work = work
        self._wishes: dict[Hashable, Wish] = {}

    def of(self, claim: PersistentVolumeClaim) -> Wish:
        """Return the wish of a claim."""
        modes = claim.volume_mode, claim.access_modes, claim.volume_attributes_class
        asked = claim.storage_class, modes, claim.selector
        wish = self._wishes.get(asked)
        if wish is None:
            wish = self._wishes[asked] = Wish(self._offers.free(claim.storage_class), claim, self._work)
        return wish


class MatchingVolumes:
    """The volumes that a claim could take, best first."""

    def __init__(self, offers: Offers, wish: Wish, claim: PersistentVolumeClaim) -> None:
        # Upstream takes volumes of one size in the order of a map.
        self._reserved = sorted(
            (
                each
                for each in offers.reserved(claim)
                if each.capacity >= (claim.requested or 0)
                and _is_alike(each, claim)
                and each.storage_class == claim.storage_class
            ),
            key=lambda volume: volume.name,
        )
        self._wish = wish
        self._start = wish.free.first_of(claim.requested or 0)

    @property
    def none(self) -> bool:
        """Whether the claim has no volume on any node."""
        return not self._reserved and self._start >= len(self._wish.free)

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return self._wish.free.by_topology.keys.union(*(label_keys(volume.node_affinity) for volume in self._reserved))

    def find(self, labels: Mapping[str, str], taken: Collection[str], work: Work) -> PersistentVolume | None:
        """Return the volume for a node, or None if each is taken.

        If a volume is reserved for the claim, no other volume is returned, even if the node cannot reach the reserved
        one.
        """
        for volume in self._reserved:
            if volume.name not in taken:
                reached = volume.node_affinity is None or volume.node_affinity.matches(labels)
                return volume if reached else None
        wish, looks = self._wish, 1
        try:
            for volume in wish.free.by_topology.reached(labels, start=self._start, anywhere=wish.anywhere):
                looks += 1
                if volume.name not in taken and wish.accepts(volume):
                    return volume
            return None
        finally:
            work.spend(UNITS * looks, FIELD, len(taken) + 1)


class Provisioning:
    """Where volumes of a class could be created."""

    def __init__(self, mirror: ClusterMirror, offers: Offers, storage_class: StorageClass) -> None:
        self._possible = storage_class.provisioner not in _NO_PROVISIONER
        self._topologies = storage_class.allowed_topologies
        self._room: ByTopology[CSIStorageCapacity] | None = None  # None: capacity is not limited
        driver = mirror.objects(CSIDriver).get(storage_class.provisioner)
        if driver is not None and driver.storage_capacity:
            self._room = offers.room(storage_class.name)

    @property
    def by_size(self) -> bool:
        """Whether the result depends on the size of the volume."""
        return self._room is not None

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return label_keys(self._topologies) | (set() if self._room is None else self._room.keys)

    def conflict(self, labels: Mapping[str, str], requested: int | None) -> str:
        """Return why no volume of the size (None: any) can be created for a node, or the empty text if one can."""
        if not self._possible or (self._topologies is not None and not self._topologies.matches(labels)):
            return BIND_CONFLICT
        if self._room is None or requested is None:
            return ""
        largest = self.capacity(labels)
        return NOT_ENOUGH_SPACE if largest is None or (largest.limit or 0) < requested else ""

    def capacity(self, labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        """Return the largest published capacity for a volume on a node, or None if none is published or needed.

        Upstream takes the first sufficient capacity, in the order of a map.
        """
        return None if self._room is None else next(self._room.reached(labels), None)


def _is_alike(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return volume.volume_mode == claim.volume_mode and volume.volume_attributes_class == claim.volume_attributes_class
