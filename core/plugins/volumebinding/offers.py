"""Offers for claims without a volume: free and reserved volumes, and capacity for new ones, updated by events."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.objects.volumes import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from core.plugins.volumebinding.topology import ByTopology, selected_nodes

Offer = TypeVar("Offer", PersistentVolume, CSIStorageCapacity)

AVAILABLE: Final = "Available"
"""Phase of a volume that can be bound."""

_NONE: Final[Mapping[str, PersistentVolume]] = MappingProxyType({})


class FreeVolumes:
    """The free volumes of a class, smallest first, then by name. Upstream has equal sizes in the order of a map."""

    def __init__(self, volumes: Iterable[PersistentVolume]) -> None:
        ordered = sorted(volumes, key=lambda volume: (volume.capacity, volume.name))
        self.by_topology = ByTopology((volume, volume.node_affinity) for volume in ordered)
        self._capacities = [volume.capacity for volume in ordered]

    def __len__(self) -> int:
        return len(self._capacities)

    def first_of(self, capacity: int) -> int:
        """Return the index of the first volume that is at least this large."""
        return bisect_left(self._capacities, capacity)


class Offers:
    """Volumes and capacities by class or claim, so that a claim visits no others."""

    hears: Final = (ObjectChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._free: defaultdict[str, dict[str, PersistentVolume]] = defaultdict(dict)  # class -> name -> volume
        self._reserved: defaultdict[str, dict[str, PersistentVolume]] = defaultdict(dict)  # claim -> name -> volume
        # class -> full name -> capacity
        self._capacities: defaultdict[str, dict[str, CSIStorageCapacity]] = defaultdict(dict)
        # By class. Made at the first call, and dropped with the next change.
        self._free_volumes: dict[str, FreeVolumes] = {}
        self._rooms: dict[str, ByTopology[CSIStorageCapacity]] = {}
        for volume in mirror.objects(PersistentVolume).values():
            self._add_volume(volume)
        for capacity in mirror.objects(CSIStorageCapacity).values():
            self._capacities[capacity.storage_class][capacity.full_name] = capacity

    def changed(self, change: Change) -> None:
        """Handle a change of a volume or a capacity."""
        if not isinstance(change, ObjectChange):
            return
        if change.kind is PersistentVolume:
            if change.before is not None:
                self._remove_volume(change.before)
            if change.after is not None:
                self._add_volume(change.after)
        elif change.kind is CSIStorageCapacity:
            for capacity in (change.before, change.after):
                if capacity is not None:
                    self._rooms.pop(capacity.storage_class, None)
            if change.before is not None:
                _remove(self._capacities, change.before.storage_class, change.before)
            if change.after is not None:
                self._capacities[change.after.storage_class][change.after.full_name] = change.after

    def free(self, storage_class: str) -> FreeVolumes:
        """Return the volumes of a class that any claim may take."""
        found = self._free_volumes.get(storage_class)
        if found is None:
            found = FreeVolumes(self._free.get(storage_class, _NONE).values())
            if len(found):
                self._free_volumes[storage_class] = found
        return found

    def reserved(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Return the volumes that only this claim may take.

        Source: k8s.io/component-helpers storage/volume/pv_helpers.go (IsVolumeBoundToClaim).
        """
        for volume in self._reserved.get(claim.full_name, _NONE).values():
            if volume.claim is not None and volume.claim.uid in ("", claim.uid):
                yield volume

    def room(self, storage_class: str) -> ByTopology[CSIStorageCapacity]:
        """Return the published capacity for new volumes of a class, largest first."""
        found = self._rooms.get(storage_class)
        if found is None:
            published = [each for each in self._capacities.get(storage_class, {}).values() if each.limit is not None]
            published.sort(key=lambda each: (-(each.limit or 0), each.full_name))
            found = ByTopology((each, selected_nodes(each.topology)) for each in published)
            if published:
                self._rooms[storage_class] = found
        return found

    def _add_volume(self, volume: PersistentVolume) -> None:
        if volume.deleting:
            return
        if volume.claim is not None:
            self._reserved[f"{volume.claim.namespace}/{volume.claim.name}"][volume.full_name] = volume
        elif volume.phase == AVAILABLE:
            self._free_volumes.pop(volume.storage_class, None)
            self._free[volume.storage_class][volume.full_name] = volume

    def _remove_volume(self, volume: PersistentVolume) -> None:
        if volume.claim is not None:
            _remove(self._reserved, f"{volume.claim.namespace}/{volume.claim.name}", volume)
        else:
            self._free_volumes.pop(volume.storage_class, None)
            _remove(self._free, volume.storage_class, volume)


def _remove(offers: defaultdict[str, dict[str, Offer]], key: str, offer: Offer) -> None:
    by_name = offers[key]
    by_name.pop(offer.full_name, None)
    if not by_name:
        del offers[key]
