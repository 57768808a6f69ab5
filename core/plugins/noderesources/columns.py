"""Allocatable resources of nodes and requests of their pods, in columns by node slot, updated by every event.

Source: k8s.io/kubernetes pkg/scheduler/framework/types.go (NodeInfo.update, Resource). A pod counts from the time it is
on its node. Every sum is an int64, which overflows as Go's does.
"""

from array import array
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from core.framework.invalidation import differs
from core.mirror.changes import NodeChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch, NodeTable
from core.mirror.node_values import NodeValues
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.kinds import IMPLICIT_PREFIX, DeviceClass
from core.objects.pod import Pod
from core.objects.quantity import shortened, wrapped
from core.plugins.in_tree import EVERY_SCHEDULER, DeviceSchedulers
from core.releases.release import DeviceClassResources

PODS: Final = "pods"
COMPUTE: Final = ("cpu", "memory")
NATIVE: Final = (*COMPUTE, "ephemeral-storage")
"""Resources with a field of their own upstream, in the order of the checks. All others are scalars."""

Offered: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""Resource -> (position in a batch, amount) of the strangers that offer it."""

_NO_OFFERS: Final[Offered] = {}
LARGEST_AMOUNT: Final = 2**53
"""Up to here 100 times an amount is within int64, and an amount is exact as a float64."""

_DENSE_FROM: Final = 64
"""Up to this many slots with an amount, a column is a dict.

An array takes 40 KB at 5,000 nodes, too much if each pod requests a resource of its own.
"""


class AmountColumn:
    """The amount of one resource by slot: a dict while few slots have any, and from then on an int64 array."""

    __slots__ = ("dense", "nonzero", "sparse")

    def __init__(self, parts: Sequence[tuple[IntpArray, int]] = (), capacity: int = 0) -> None:
        """Sum the amounts by slot. `parts` are slots, each of which may occur several times, and the amount of each."""
        self.nonzero = 0  # slots whose amount is not 0
        self.sparse: dict[int, int] = {}
        self.dense: Int64Array | None = None
        if not parts:
            return
        dense = np.zeros(capacity, np.int64)
        amounts = np.array([amount for _, amount in parts], np.int64)
        slots = [slots for slots, _ in parts]
        np.add.at(dense, np.concatenate(slots), amounts.repeat([*map(len, slots)]))
        filled = np.flatnonzero(dense)
        self.nonzero = len(filled)
        if self.nonzero <= _DENSE_FROM:
            self.sparse = dict(zip(filled.tolist(), dense[filled].tolist(), strict=True))
        else:
            self.dense = dense

    @property
    def lowest(self) -> int:
        """The lowest amount of any slot, or 0 if that is lower. Negative only if a sum has overflowed."""
        if self.dense is not None:
            return int(self.dense.min(initial=0))
        return min(0, *self.sparse.values())

    def add(self, slot: int, amount: int, capacity: int) -> None:
        """Add to the amount of a slot. All slots are below `capacity`."""
        dense = self.dense
        if dense is None:
            self._add_sparse(slot, amount, capacity)
            return
        if slot >= len(dense):
            dense = self._roomy(dense, capacity)
        before = dense.item(slot)
        after = before + amount
        if not 0 <= after <= LARGEST_AMOUNT:
            after = wrapped(after)
        dense[slot] = after
        if not before or not after:
            self.nonzero += (after != 0) - (before != 0)

    def by_slot(self, capacity: int) -> Int64Array:
        """Return the amounts of at least `capacity` slots. The caller must not write to the array."""
        return self._scattered(capacity) if self.dense is None else self._roomy(self.dense, capacity)

    def _add_sparse(self, slot: int, amount: int, capacity: int) -> None:
        total = wrapped(self.sparse.get(slot, 0) + amount)
        if total:
            self.sparse[slot] = total
        else:
            self.sparse.pop(slot, None)
        self.nonzero = len(self.sparse)
        if self.nonzero > _DENSE_FROM:
            self.dense, self.sparse = self._scattered(capacity), {}

    def _roomy(self, dense: Int64Array, capacity: int) -> Int64Array:
        if capacity > len(dense):
            dense = self.dense = np.concatenate((dense, np.zeros(capacity - len(dense), np.int64)))
        return dense

    def _scattered(self, capacity: int) -> Int64Array:
        amounts = np.zeros(capacity, np.int64)
        for slot, amount in self.sparse.items():
            amounts[slot] = amount
        return amounts


class AmountColumns:
    """Resource -> its column. A column exists while the amount on any slot is not 0."""

    def __init__(self, nodes: NodeTable, amounts_in_use: "Iterable[tuple[Mapping[str, int], array[int]]]") -> None:
        """`amounts_in_use`: amounts, and the slots that have them, each as often as it has them."""
        self._nodes = nodes
        gathered: dict[str, list[tuple[IntpArray, int]]] = defaultdict(list)
        for amounts, slots in amounts_in_use:
            for resource, amount in amounts.items():
                gathered[resource].append((np.frombuffer(slots, np.intp), amount))
        made = {resource: AmountColumn(parts, nodes.capacity) for resource, parts in gathered.items()}
        self.of = {resource: column for resource, column in made.items() if column.nonzero}

    def add(self, slot: int, amounts: Mapping[str, int], sign: int) -> None:
        """Add amounts to a slot (sign 1), or subtract them (sign -1)."""
        capacity = self._nodes.capacity
        for resource, amount in amounts.items():
            column = self.of.get(resource)
            if column is None:
                column = self.of[resource] = AmountColumn()
            column.add(slot, sign * amount, capacity)
            if not column.nonzero:
                del self.of[resource]

    def on(self, resource: str, slot: int) -> int:
        """Return the amount of one node: a tenth of the time that `at` takes."""
        column = self.of.get(resource)
        if column is None:
            return 0
        dense = column.dense
        if dense is None:
            return column.sparse.get(slot, 0)
        return dense.item(slot) if slot < len(dense) else 0

    def at(self, resource: str, batch: NodeBatch) -> Int64Array:
        """Return the amounts of the batch's nodes, 0 for strangers, in an array of its own."""
        column = self.of.get(resource)
        if column is None:
            return np.zeros(len(batch), np.int64)
        amounts = column.by_slot(self._nodes.capacity).take(batch.slots)  # NO_SLOT takes the last one
        if batch.unmirrored:
            amounts[list(batch.unmirrored)] = 0
        return amounts


class ResourceColumns:
    """Allocatable resources of every known node, and requests of its pods, by resource and slot. A derived state.

    Every pod requests 1 of `pods`. Strangers have their own allocatable resources, and no pods.
    """

    hears: Final = (NodeChange, PodChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        """Sum all amounts. From then on `changed` must receive every change."""
        nodes = mirror.nodes
        sharing: dict[Hashable, tuple[Pod, array[int]]] = {}  # amounts -> a pod with them, slots
        known: dict[tuple[int, int], array[int]] = {}  # the same slots: pods of a controller have the same objects
        for slot, pod in mirror.pods.placed_alike():
            key = id(pod.requests), id(pod.demand.non_zero_requests)
            slots = known.get(key)
            if slots is None:
                amounts = frozenset(pod.requests.items()), pod.demand.non_zero_requests
                slots = known[key] = sharing.setdefault(amounts, (pod, array("q")))[1]
            slots.append(slot)
        placed = sharing.values()
        offered: dict[int, tuple[Mapping[str, int], array[int]]] = {}  # nodes of one type share theirs
        for slot, node in nodes:
            offered.setdefault(id(node.allocatable), (node.allocatable, array("q")))[1].append(slot)
        self.allocatable = AmountColumns(nodes, offered.values())
        self.requested = AmountColumns(nodes, ((_requested_by(pod), slots) for pod, slots in placed))
        self.non_zero_requested = AmountColumns(
            nodes, ((cpu_and_memory(pod.demand.non_zero_requests), slots) for pod, slots in placed)
        )

    def changed(self, change: NodeChange | PodChange) -> None:
        """Follow a change of a node's allocatable amounts, or of a pod's requests."""
        if isinstance(change, NodeChange):
            before = {} if change.before is None else change.before.allocatable
            after = {} if change.after is None else change.after.allocatable
            if before != after:
                self.allocatable.add(change.slot, before, -1)
                self.allocatable.add(change.slot, after, 1)
        elif requests_changed(change.before, change.after):
            if change.before is not None:
                self._count(change.slot, change.before, -1)
            if change.after is not None:
                self._count(change.slot, change.after, 1)

    def allocatable_of(self, resource: str, batch: NodeBatch, unmirrored: Offered | None = None) -> Int64Array:
        """Return how much of a resource each node of the batch offers. `unmirrored`: see `offered_by_unmirrored`."""
        amounts = self.allocatable.at(resource, batch)
        if batch.unmirrored:
            offered = offered_by_unmirrored(batch) if unmirrored is None else unmirrored
            for position, amount in offered.get(resource, ()):
                amounts[position] = amount
        return amounts

    def no_node_offers(self, resource: str, amount: int, unmirrored: Offered) -> bool:
        """Return whether the amount fits no node because no node has any of the resource. Visits no node.

        Sums of requests may have overflowed to negative, which leaves a free amount.
        """
        if resource in self.allocatable.of or resource in unmirrored:
            return False
        requested = self.requested.of.get(resource)
        return amount > (0 if requested is None else -requested.lowest)

    def _count(self, slot: int, pod: Pod, sign: int) -> None:
        self.requested.add(slot, _requested_by(pod), sign)
        self.non_zero_requested.add(slot, cpu_and_memory(pod.demand.non_zero_requests), sign)


def offered_by_unmirrored(batch: NodeBatch) -> Offered:
    """Return the allocatable resources of a batch's strangers."""
    if not batch.unmirrored:
        return _NO_OFFERS
    offered: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for position, node in batch.unmirrored.items():
        for resource, amount in ({} if node is None else node.allocatable).items():
            offered[resource].append((position, amount))
    return offered


def requests_changed(before: Pod | None, after: Pod | None) -> bool:
    """Return whether the amounts that a pod takes of its node changed. True for a new or deleted pod."""
    if before is None or after is None:
        return True
    return before.requests != after.requests or before.demand.non_zero_requests != after.demand.non_zero_requests


asks_otherwise: Final = differs(lambda pod: pod.requests, {})
"""Whether the requests of a pod changed. A new or deleted pod without requests changes nothing."""


def cpu_and_memory(amounts: tuple[int, int]) -> dict[str, int]:
    """Return a pod's amounts for scoring, by resource."""
    cpu, memory = amounts
    return {"cpu": cpu, "memory": memory}


def _requested_by(pod: Pod) -> dict[str, int]:
    return {**pod.requests, PODS: 1}


# Extended resources that a DeviceClass provides, and that are left to kube-scheduler's DynamicResources plugin
# (noderesources/fit.go: shouldDelegateResourceToDRA; in v1.34 withDeviceClass and fitsRequest).

_NATIVE_DOMAIN: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


class LeftToDevices:
    """The resources of one pod that are left to devices, and on which nodes. Stale after the next event."""

    __slots__ = ("_listed", "_resources")

    def __init__(self, resources: Iterable[str] = (), listed: NodeValues[frozenset[str]] | None = None) -> None:
        """Resources in `listed` are checked nevertheless: each node lists them with 0."""
        self._resources = frozenset(resources)
        self._listed = listed

    def anywhere(self, columns: ResourceColumns, offered: Offered, batch: NodeBatch) -> list[str]:
        """Return the resources that DynamicResources handles on a node of the batch, sorted."""
        found = ((resource, self.on(resource, columns, offered, batch)) for resource in sorted(self._resources))
        return [resource for resource, left in found if left is not None and left.any()]

    def on(self, resource: str, columns: ResourceColumns, offered: Offered, batch: NodeBatch) -> BoolArray | None:
        """Return for each node whether DynamicResources handles the resource there, or None if on no node."""
        if resource not in self._resources:
            return None
        left: BoolArray = columns.allocatable_of(resource, batch, offered) <= 0
        if self._listed is not None:
            left &= self._listed.judged(batch, lambda names: int(names is not None and resource in names)) == 0
        return left


NOTHING_LEFT: Final = LeftToDevices()


def left_to_devices(mirror: ClusterMirror, pod: Pod, schedulers: DeviceSchedulers = EVERY_SCHEDULER) -> LeftToDevices:
    """Return the requests of a pod that are left to devices. `schedulers` have a plugin that allocates them."""
    rule = mirror.rules.device_class_resources
    if rule is DeviceClassResources.CHECKED or not schedulers.have(pod.scheduler_name):
        return NOTHING_LEFT
    requested = [resource for resource, amount in pod.requests.items() if amount and resource not in NATIVE]
    if not requested:
        return NOTHING_LEFT
    named = frozenset[str]().union(*map(stands_for, mirror.objects(DeviceClass).values())).intersection(requested)
    if rule is DeviceClassResources.LEFT_UNLESS_ALLOCATABLE:
        return LeftToDevices(named)
    # v1.34 reads classes only if the pod requests an extended resource. Else it leaves every unlisted resource.
    return LeftToDevices(named if any(map(is_extended, requested)) else requested, mirror.derived(_listed_as_none))


def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended one (v1helper.IsExtendedResourceName), if Kindred accounts for it."""
    return "/" in resource and _NATIVE_DOMAIN not in resource and not resource.startswith(_QUOTA_PREFIX)


def stands_for(device_class: DeviceClass | None) -> frozenset[str]:
    """Return the resources that a class provides: the one that it names, and the implicit one of every class."""
    if device_class is None:
        return frozenset()
    return frozenset({device_class.extended_resource, IMPLICIT_PREFIX + device_class.name} - {""})


def classes_of(mirror: ClusterMirror, pod: Pod) -> Mapping[str, str]:
    """Return the requests of a pod that a DeviceClass provides: resource -> that class, the first one by name."""
    if mirror.rules.device_class_resources is DeviceClassResources.CHECKED:
        return {}
    requested = {resource for resource, amount in pod.requests.items() if amount and resource not in NATIVE}
    if not requested:
        return {}
    found: dict[str, str] = {}
    for each in sorted(mirror.objects(DeviceClass).values(), key=lambda each: each.name, reverse=True):
        found.update(dict.fromkeys(stands_for(each) & requested, each.name))
    return found


def insufficient(resource: str) -> str:
    """Return the reason of a node that has too little of a resource."""
    return f"Insufficient {shortened(resource)}"


def _listed_as_none(mirror: ClusterMirror) -> NodeValues[frozenset[str]]:
    return NodeValues(
        mirror, lambda node: frozenset(name for name, amount in node.allocatable.items() if not amount) or None
    )
