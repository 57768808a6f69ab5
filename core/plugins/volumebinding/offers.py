"""What there is for claims without a volume: free volumes, reserved ones and room for new ones, kept by events."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from core.mirror.changes import Change, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.objects.volumes import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim

Offer = TypeVar("Offer", PersistentVolume, CSIStorageCapacity)

AVAILABLE: Final = "Available"
"""Phase of a volume that can be bound."""

_NONE: Final[Mapping[str, PersistentVolume]] = MappingProxyType({})


class Offers:
    """Volumes and capacities by whom they are for, so that a claim looks at no others."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._free: defaultdict[str, dict[str, PersistentVolume]] = defaultdict(dict)  # class -> name -> volume
        self._reserved: defaultdict[str, dict[str, PersistentVolume]] = defaultdict(dict)  # claim -> name -> volume
        # class -> full name -> capacity
        self._capacities: defaultdict[str, dict[str, CSIStorageCapacity]] = defaultdict(dict)
        for volume in mirror.objects(PersistentVolume).values():
            self._add_volume(volume)
        for capacity in mirror.objects(CSIStorageCapacity).values():
            self._capacities[capacity.storage_class][capacity.full_name] = capacity

    def changed(self, change: Change) -> None:
        """Take note of a volume or a capacity that has changed."""
        if not isinstance(change, ObjectChange):
            return
        if change.kind is PersistentVolume:
            if change.before is not None:
                self._remove_volume(change.before)
            if change.after is not None:
                self._add_volume(change.after)
        elif change.kind is CSIStorageCapacity:
            if change.before is not None:
                _remove(self._capacities, change.before.storage_class, change.before)
            if change.after is not None:
                self._capacities[change.after.storage_class][change.after.full_name] = change.after

    def free(self, storage_class: str) -> Iterable[PersistentVolume]:
        """Return the volumes of a class that are there for any claim."""
        return self._free.get(storage_class, _NONE).values()

    def reserved(self, claim: PersistentVolumeClaim) -> Iterable[PersistentVolume]:
        """Return the volumes that are there for this claim alone.

        Source: k8s.io/component-helpers storage/volume/pv_helpers.go (IsVolumeBoundToClaim).
        """
        for volume in self._reserved.get(claim.full_name, _NONE).values():
            if volume.claim is not None and volume.claim.uid in ("", claim.uid):
                yield volume

    def capacities(self, storage_class: str) -> Iterable[CSIStorageCapacity]:
        """Return what is published of the room for new volumes of a class."""
        found = self._capacities.get(storage_class)
        return () if found is None else found.values()

    def _add_volume(self, volume: PersistentVolume) -> None:
        if volume.deleting:
            return
        if volume.claim is not None:
            self._reserved[f"{volume.claim.namespace}/{volume.claim.name}"][volume.full_name] = volume
        elif volume.phase == AVAILABLE:
            self._free[volume.storage_class][volume.full_name] = volume

    def _remove_volume(self, volume: PersistentVolume) -> None:
        if volume.claim is not None:
            _remove(self._reserved, f"{volume.claim.namespace}/{volume.claim.name}", volume)
        else:
            _remove(self._free, volume.storage_class, volume)


def _remove(offers: defaultdict[str, dict[str, Offer]], key: str, offer: Offer) -> None:
    by_name = offers[key]
    by_name.pop(offer.full_name, None)
    if not by_name:
        del offers[key]
