"""The claims of a pod, grouped by the necessary step, with the volumes that they may take.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (podHasPVCs) and binder.go
(GetPodVolumeClaims).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Generic, TypeAlias, TypeVar

from core.framework.claims import ClaimError, not_found_text, ownership_error
from core.framework.interface import Code, Status
from core.framework.node_matcher import keys_of_terms
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.changes import NodeChange, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import DistinctValues, Int32Array
from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.labels import Operator, Requirement, Selector
from core.objects.pod import Pod, PodClaim
from core.objects.quantity import quoted, wrapped
from core.objects.volumes import (
    AVAILABLE,
    WAIT_FOR_FIRST_CONSUMER,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

LOST: Final = "Lost"
"""Phase of a claim whose volume was deleted."""

UNBOUND_IMMEDIATE: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",)
)


Claims: TypeAlias = list[PersistentVolumeClaim]


def claims_of(mirror: ClusterMirror, pod: Pod) -> tuple[Claims, Claims]:
    """Return the bound claims of a pod, and those whose volumes wait for it, in the order of its volumes.

    Raises ClaimError for claims for which a pod fails on all nodes.
    """
    bound: Claims = []
    unbound: Claims = []
    immediate = False
    for claim in tuple(_usable(mirror, pod)):  # check all claims before any further step
        if claim.volume and claim.bind_completed:
            bound.append(claim)
        elif _waits(mirror, claim) and not claim.volume:
            unbound.append(claim)
        else:
            immediate = True
    if immediate:
        raise ClaimError(UNBOUND_IMMEDIATE.reasons[0], UNBOUND_IMMEDIATE.code)
    return bound, unbound


def _usable(mirror: ClusterMirror, pod: Pod) -> Iterator[PersistentVolumeClaim]:
    claims = mirror.objects(PersistentVolumeClaim)
    for volume in pod.volumes:
        if isinstance(volume, PodClaim):
            claim = claims.get(f"{pod.namespace}/{volume.name}")
            problem = _missing(volume) if claim is None else _fault(pod, volume, claim)
            if claim is None or problem:
                raise ClaimError(problem)
            yield claim


def _missing(volume: PodClaim) -> str:
    if volume.ephemeral:
        return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quoted(volume.name)}"
    return not_found_text(PersistentVolumeClaim, volume.name)


def _fault(pod: Pod, volume: PodClaim, claim: PersistentVolumeClaim) -> str:
    if claim.phase == LOST:
        return (
            f"persistentvolumeclaim {quoted(claim.name)} bound to non-existent persistentvolume {quoted(claim.volume)}"
        )
    if claim.deleting:
        return f"persistentvolumeclaim {quoted(claim.name)} is being deleted"
    return ownership_error(pod, volume, claim)


def _waits(mirror: ClusterMirror, claim: PersistentVolumeClaim) -> bool:
    """Upstream IsDelayBindingMode: a claim whose class is missing does not wait. Raises ClaimError."""
    storage_class = mirror.objects(StorageClass).get(claim.storage_class) if claim.storage_class else None
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise ClaimError(f"VolumeBindingMode not set for StorageClass {quoted(claim.storage_class)}", Code.ERROR)
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


Thing = TypeVar("Thing")


class ByTopology(Generic[Thing]):
    """Things in an order, each with a selector of the nodes that can reach it (None: all nodes).

    A local volume has a term with one host name, so a node is compared with only a few of 5,000 volumes.
    """

    def __init__(self, things: Iterable[tuple[Thing, NodeSelector | None]]) -> None:
        self.keys: set[str] = set()
        """The node labels, by key, that decide."""
        self._things: list[tuple[Thing, NodeSelector | None]] = []  # each with the remaining requirements on labels
        self._anywhere: list[int] = []  # indices of things that no single label excludes
        # label key -> value -> indices of things that require it
        self._anchored: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, (thing, selector) in enumerate(things):
            anchors = _anchors(selector)
            for key, value in {(anchor.key, value) for anchor in anchors or () for value in anchor.values}:
                self._anchored[key][value].append(place)
            if anchors is None:
                self._anywhere.append(place)
            self.keys |= label_keys(selector)
            self._things.append((thing, None if _is_one_requirement(selector) and anchors else selector))

    def __iter__(self) -> Iterator[Thing]:
        """Yield all things, in their order."""
        return (thing for thing, _ in self._things)

    @property
    def loose(self) -> int:
        """How many things no single label excludes."""
        return len(self._anywhere)

    def anywhere(self, meets: Callable[[Thing], bool]) -> list[int]:
        """Return the indices of the wanted things that no single label excludes, for `reached`."""
        return [place for place in self._anywhere if meets(self._things[place][0])]

    def reached(
        self, labels: Mapping[str, str], *, start: int = 0, anywhere: Sequence[int] | None = None
    ) -> Iterator[Thing]:
        """Yield the things that a node with these labels can reach, in their order, from index `start` on.

        Of the things that no single label excludes, only those in `anywhere` are checked.
        """
        anywhere = self._anywhere if anywhere is None else anywhere
        found = [anywhere] if anywhere else []
        for key, by_value in self._anchored.items():
            value = labels.get(key)
            if value is not None and value in by_value:
                found.append(by_value[value])
        places = found[0] if len(found) == 1 else sorted(set[int]().union(*found))
        for place in islice(places, bisect_left(places, start) if start else 0, None):
            thing, selector = self._things[place]
            if selector is None or selector.matches(labels):
                yield thing


def label_keys(selector: NodeSelector | None) -> set[str]:
    """Return the label keys that a selector reads."""
    return set() if selector is None else keys_of_terms(selector.terms)


def selected_nodes(selector: Selector) -> NodeSelector | None:
    """Return a label selector as the node selector for the same nodes, or None for all nodes."""
    if selector.everything:
        return None
    return NodeSelector(() if selector.nothing else (NodeSelectorTerm(selector.requirements),))


def _anchors(selector: NodeSelector | None) -> list[Requirement] | None:
    """Return for each term a requirement that lists values, or None if a term has none."""
    if selector is None:
        return None
    anchors = [_anchor(term) for term in selector.terms]
    found = [anchor for anchor in anchors if anchor is not None]
    return found if len(found) == len(anchors) else None


def _anchor(term: NodeSelectorTerm) -> Requirement | None:
    return next((each for each in term.requirements if each.operator is Operator.IN), None)


def _is_one_requirement(selector: NodeSelector | None) -> bool:
    if selector is None or len(selector.terms) != 1:
        return False
    (term,) = selector.terms
    return len(term.requirements) == 1 and not term.comparisons


Offer = TypeVar("Offer", PersistentVolume, CSIStorageCapacity)

_NONE: Final[Mapping[str, PersistentVolume]] = {}


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


class Room:
    """The published capacity for new volumes of a class.

    A capacity that becomes smaller is noted: drivers publish it after each new volume, and simulations suppose it.
    """

    def __init__(self, published: Iterable[CSIStorageCapacity]) -> None:
        ordered = sorted(published, key=_largest_first)
        self._by_topology = ByTopology((each, selected_nodes(each.topology)) for each in ordered)
        self._published = {each.full_name: each for each in ordered}
        self._smaller: dict[str, CSIStorageCapacity] = {}

    def __iter__(self) -> Iterator[CSIStorageCapacity]:
        """Yield all capacities, largest first."""
        return iter(sorted({**self._published, **self._smaller}.values(), key=_largest_first))

    @property
    def keys(self) -> set[str]:
        """The node labels, by key, that decide."""
        return self._by_topology.keys

    def takes(self, change: ObjectChange) -> bool:
        """Note a changed capacity of the class. Return False if this has to be made anew for it."""
        after = change.after
        if not isinstance(after, CSIStorageCapacity) or after.limit is None:
            return False
        built = self._published.get(after.full_name)
        if built is None or built.topology != after.topology or built.storage_class != after.storage_class:
            return False
        if after.limit > (built.limit or 0):
            return False
        self._smaller[after.full_name] = after
        return True

    def largest(self, labels: Mapping[str, str]) -> CSIStorageCapacity | None:
        """Return the largest capacity that a node with these labels can reach, the first by name of several."""
        reached = self._by_topology.reached(labels)
        if not self._smaller:
            return next(reached, None)
        best: CSIStorageCapacity | None = None
        for each in reached:
            if best is not None and (each.limit or 0) < (best.limit or 0):
                break
            now = self._smaller.get(each.full_name, each)
            best = now if best is None else min(now, best, key=_largest_first)
        return best


def _largest_first(capacity: CSIStorageCapacity) -> tuple[int, str]:
    return -(capacity.limit or 0), capacity.full_name


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
        self._rooms: dict[str, Room] = {}
        for volume in mirror.objects(PersistentVolume).values():
            self._add_volume(volume)
        for capacity in mirror.objects(CSIStorageCapacity).values():
            self._capacities[capacity.storage_class][capacity.full_name] = capacity

    def changed(self, change: ObjectChange) -> None:
        """Handle a change of a volume or a capacity."""
        if change.kind is PersistentVolume:
            if change.before is not None:
                self._remove_volume(change.before)
            if change.after is not None:
                self._add_volume(change.after)
        elif change.kind is CSIStorageCapacity:
            for capacity in (change.before, change.after):
                room = None if capacity is None else self._rooms.get(capacity.storage_class)
                if capacity is not None and room is not None and not room.takes(change):
                    del self._rooms[capacity.storage_class]
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
        """Return the volumes that only this claim may take."""
        return (each for each in self._reserved.get(claim.full_name, _NONE).values() if each.is_reserved_for(claim))

    def room(self, storage_class: str) -> Room:
        """Return the published capacity for new volumes of a class."""
        found = self._rooms.get(storage_class)
        if found is None:
            published = [each for each in self._capacities.get(storage_class, {}).values() if each.limit is not None]
            found = Room(published)
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


Plugins: TypeAlias = frozenset[str]

_NO_PLUGINS: Plugins = frozenset()


class MigratedPlugins:
    """Node slot -> the plugins. A node without any has no value."""

    hears: Final = (NodeChange, ObjectChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._column: DistinctValues[Plugins] = DistinctValues(mirror.nodes.capacity)
        for slot, node in mirror.nodes:
            self._column.assign(slot, self._of(node.name) or None)

    def changed(self, change: NodeChange | ObjectChange) -> None:
        """Handle a node or CSINode that is added, removed or changed."""
        if isinstance(change, NodeChange):
            self._column.grow(change.slot + 1)
            self._column.assign(change.slot, None if change.after is None else self._of(change.after.name) or None)
        elif change.kind is CSINode and change.slot != NO_SLOT:
            self._column.assign(change.slot, None if change.after is None else change.after.migrated_plugins or None)

    def of(self, batch: NodeBatch) -> tuple[Int32Array, list[Plugins]]:
        """Return for each node the index of its plugins in the returned list."""
        places: Int32Array = self._column.of_slot[batch.slots] + 1  # ABSENT gives 0; NO_SLOT is corrected below
        plugins = [_NO_PLUGINS, *self._column.values]
        for position, node in batch.unmirrored.items():
            places[position] = len(plugins)
            plugins.append(_NO_PLUGINS if node is None else self._of(node.name))
        return places, plugins

    def _of(self, name: str) -> Plugins:
        csi_node = self._mirror.objects(CSINode).get(name)
        return _NO_PLUGINS if csi_node is None else csi_node.migrated_plugins


# How much of its storage a node would give to the claims of a pod (volume_binding.go: Score, and scorer.go, with the
# default shape of VolumeBindingArgs: 100 if no storage is used, 0 if all is).


class Storage:
    """The requests of one class's claims, and the capacity for them, in bytes."""

    __slots__ = ("_capacity", "_requested")

    def __init__(self) -> None:
        self._requested = 0
        self._capacity = 0

    def add(self, requested: int, capacity: int) -> None:
        """Add a claim with a volume of its own."""
        self._requested = wrapped(self._requested + requested)
        self._capacity = wrapped(self._capacity + capacity)

    def take_from(self, requested: int, capacity: int) -> None:
        """Add a claim with a new volume. All such claims of a class take from the same capacity."""
        self._requested = wrapped(self._requested + requested)
        self._capacity = capacity

    @property
    def score(self) -> int:
        """100 less the requested share, in percent, rounded down. 0 if the capacity is 0 or too small."""
        if not self._capacity or self._requested > self._capacity:
            return 0
        used = wrapped(self._requested * MAX_NODE_SCORE) // self._capacity
        return MAX_NODE_SCORE - min(max(used, 0), MAX_NODE_SCORE)


def score_of(by_class: Mapping[str, Storage]) -> int:
    """Return the mean of the scores of the classes, rounded to the nearest integer, or 0 without classes."""
    if not by_class:
        return 0
    total, number = sum(storage.score for storage in by_class.values()), len(by_class)
    return (2 * total + number) // (2 * number)
