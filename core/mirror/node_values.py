"""A value of every node, stored by distinct value, so that plugins judge each value once for all its nodes."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from core.mirror.changes import NodeChange, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import LabelColumns
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import ABSENT, BoolArray, DistinctValues, Float64Array, Int64Array, IntpArray
from core.objects.node import Node, NodeMetrics, Usage

Value = TypeVar("Value", bound=Hashable)

MAX_BYTES: Final = 8 * 2**20
"""Size of the projections that are kept between requests. One costs 20 KB at 5,000 nodes, plus its distinct values."""

_VALUE_BYTES: Final = 200
_KEY_BYTES: Final = 8

LabelValues = tuple[str | None, ...]


class NodeValues(Generic[Value]):
    """Node slot -> the result of `read` for its node. None means no value."""

    hears: Final = (NodeChange,)

    def __init__(self, mirror: ClusterMirror, read: Callable[[Node], Value | None]) -> None:
        """Read all nodes. From then on `changed` must receive their changes."""
        self._read = read
        self._column: DistinctValues[Value] = DistinctValues(mirror.nodes.capacity)
        for slot, node in mirror.nodes:
            self._column.assign(slot, read(node))

    @property
    def distinct(self) -> int:
        """Number of values, including a few that no node has any more."""
        return len(self._column.values)

    def changed(self, change: NodeChange) -> None:
        """Read a changed node again."""
        if change.slot >= len(self._column.of_slot):
            self._column.grow(change.slot + 1)
        self._column.assign(change.slot, None if change.after is None else self._read(change.after))

    def judged(self, batch: NodeBatch, judge: Callable[[Value | None], int]) -> Int64Array:
        """Return `judge` of each node's value, or 0 for an unknown node. `judge` is called once per distinct value."""
        results = self._results(batch, judge)
        for position, node in batch.unmirrored.items():
            results[position] = 0 if node is None else judge(self._read(node))
        return results

    def places(self, batch: NodeBatch) -> tuple[list[Value | None], Int64Array]:
        """Return values, and for each node the index of its value: 0 for no value or an unknown node."""
        values: list[Value | None] = [None, *self._column.values]
        places = self._column.of_slot[batch.slots].astype(np.int64) + 1  # ABSENT gives 0; NO_SLOT is corrected below
        ids = self._column.ids
        for position, node in batch.unmirrored.items():
            value = None if node is None else self._read(node)
            place = 0 if value is None else ids.get(value, ABSENT) + 1
            if value is not None and not place:
                place = len(values)
                values.append(value)
            places[position] = place
        return values, places

    def _results(self, batch: NodeBatch, judge: Callable[[Value | None], int]) -> Int64Array:
        ids = self._column.of_slot[batch.slots]  # NO_SLOT reads the last slot, which the caller corrects
        values = self._column.values
        # The last element is for ABSENT. Values with a free id are judged needlessly, which is rare and harmless.
        if len(values) < len(ids):
            return np.array([*map(judge, values), judge(None)], np.int64)[ids]
        distinct, positions = np.unique(ids, return_inverse=True)
        verdicts = [judge(values[each] if each >= 0 else None) for each in distinct.tolist()]
        return np.array(verdicts, np.int64)[positions]


class LabelProjections:
    """Label keys -> the combined values of these labels on every node, for the most recently requested keys.

    For results that depend on several labels together. If each label is judged by itself, LabelColumns costs less.
    """

    hears: Final = (NodeChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._by_keys: OrderedDict[tuple[str, ...], NodeValues[LabelValues]] = OrderedDict()

    def of(self, keys: tuple[str, ...]) -> NodeValues[LabelValues]:
        """Return the values of these labels, in the order of the keys. None stands for a missing label."""
        found = self._by_keys.get(keys)
        if found is not None:
            self._by_keys.move_to_end(keys)
            return found

        def read(node: Node) -> LabelValues:
            return tuple(map(node.labels.get, keys))

        found = self._by_keys[keys] = NodeValues(self._mirror, read)
        self._make_room()
        return found

    def changed(self, change: NodeChange) -> None:
        """Read a node again if its labels have changed."""
        if _labels(change.before) != _labels(change.after):
            for values in self._by_keys.values():
                values.changed(change)

    def _make_room(self) -> None:
        sizes = [self._size(keys, values) for keys, values in self._by_keys.items()]
        total = sum(sizes)
        for size in sizes[:-1]:  # the most recently requested one stays, whatever its size
            if total <= MAX_BYTES:
                break
            self._by_keys.popitem(last=False)
            total -= size

    def _size(self, keys: tuple[str, ...], values: NodeValues[LabelValues]) -> int:
        return 4 * self._mirror.nodes.capacity + values.distinct * (_VALUE_BYTES + _KEY_BYTES * len(keys))


def labels_of(keys: tuple[str, ...], values: LabelValues | None) -> dict[str, str]:
    """Return the labels for a projection's value."""
    return {key: value for key, value in zip(keys, values or (), strict=False) if value is not None}


def _labels(node: Node | None) -> Mapping[str, Any] | None:
    return None if node is None else node.labels


NO_DOMAIN: Final = -1


class NodeGroup(NamedTuple):
    """The known nodes of the partition by domain (upstream MakeBasicNodeGroup).

    The nodes with the same value of the topology key are a domain. A node without the label is a domain of its own,
    because no other node is known to be near it. The group is stale when a node is added, removed or changes its
    labels. Changes of pods do not matter.
    """

    nodes: NodeBatch
    domain_of: IntpArray
    """Position in `nodes` -> domain, 0..`domains` - 1."""
    domains: int

    def sums(self, by_node: Int64Array | Float64Array) -> Float64Array:
        """Return the sum of an amount by domain."""
        return np.bincount(self.domain_of, by_node, self.domains).astype(np.float64)

    def by_slot(self, capacity: int) -> IntpArray:
        """Return slot -> domain for all slots of a NodeTable; NO_DOMAIN where the node is not in the group."""
        found = np.full(capacity, NO_DOMAIN, np.intp)
        found[self.nodes.slots] = self.domain_of
        return found

    def within(self, domains: Collection[int]) -> NodeBatch:
        """Return the nodes of some domains."""
        return self.nodes.part(np.flatnonzero(np.isin(self.domain_of, [*domains])))

    def has_any(self, slots: IntpArray) -> BoolArray:
        """Return for each domain whether one of its nodes has one of these slots."""
        present: BoolArray = np.zeros(self.domains, np.bool_)
        present[self.domain_of[np.isin(self.nodes.slots, slots)]] = True
        return present


def make_node_group(mirror: ClusterMirror, topology_key: str = "") -> NodeGroup:
    """Return the nodes by domain of a topology key. Without a key, each node is a domain."""
    batch = mirror.all_nodes()
    outside = batch.out_of_partition
    if outside is not None:
        batch = batch.part(np.flatnonzero(~outside))
    column = mirror.derived(LabelColumns).of([topology_key]).get(topology_key) if topology_key else None
    ids = np.full(len(batch), ABSENT, np.intp) if column is None else batch.value_ids(column)
    alone: BoolArray = ids == ABSENT
    domain_of = np.empty(len(batch), np.intp)
    values, domain_of[~alone] = np.unique(ids[~alone], return_inverse=True)
    domains = len(values) + int(np.count_nonzero(alone))
    domain_of[alone] = np.arange(len(values), domains)
    return NodeGroup(batch, domain_of, domains)


# The measured usage of nodes: columns by node slot, and the age of measurements.
#
# The mirror has no clock, so a measurement does not expire by itself. A caller with a clock marks it as too old. The
# mark is a change of the object like any other, with its generation and its invalidations.

RESOURCES: Final = ("cpu", "memory")
"""The resources with measured usage, in the order of the columns."""

MAX_AMOUNT: Final = 2**53
"""Upper limit of any amount, so that sums of amounts fit into an int64."""

_UNKNOWN: Final = -1
_AMOUNTS: Final = 4  # average, deviation, capacity, allocatable
_Columns: TypeAlias = NDArray[np.int64]


class ResourceUsage(NamedTuple):
    """One resource on the nodes of a batch: cpu in millicores, memory in bytes.

    Without a usable measurement, `measured` is false, and `average` and `deviation` are 0. If a node does not report
    its capacity, `capacity` is the allocatable amount.
    """

    measured: BoolArray
    average: Int64Array
    deviation: Int64Array
    capacity: Int64Array
    allocatable: Int64Array


class NodeUsage:
    """The measured usage of every known node, with its capacity and allocatable amounts. A derived state.

    A stranger has no measurement, because measurements are stored by slot.
    """

    hears: Final = (NodeChange, ObjectChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        """Read the measurements and the nodes. From then on `changed` must receive every change."""
        self._measurements: Mapping[str, NodeMetrics] = mirror.objects(NodeMetrics)
        self._columns: _Columns = np.zeros((len(RESOURCES), _AMOUNTS, mirror.nodes.capacity), np.int64)
        self.too_old: BoolArray = np.zeros(mirror.nodes.capacity, np.bool_)
        """Slot -> whether the last measurement of the node is too old. Stale if the slot is free."""
        for slot, node in mirror.nodes:
            self._measure(slot, self._measurements.get(node.name))
            self._describe(slot, node)

    def changed(self, change: NodeChange | ObjectChange) -> None:
        """Update the columns from measurements, and from the amounts that nodes report."""
        if isinstance(change, NodeChange):
            if change.after is None:
                return
            if change.before is None:
                self._grow(change.slot)
                self._measure(change.slot, self._measurements.get(change.after.name))
            self._describe(change.slot, change.after)
        elif change.kind is NodeMetrics and change.slot != NO_SLOT:
            self._measure(change.slot, change.after)

    def of(self, resource: int, batch: NodeBatch) -> ResourceUsage:
        """Return a resource, by its index in RESOURCES, on the nodes of a batch."""
        average, deviation, capacity, allocatable = self._columns[resource].take(batch.slots, axis=1)
        measured: BoolArray = average != _UNKNOWN
        if batch.unmirrored:
            measured[list(batch.unmirrored)] = False
            allocatable[list(batch.unmirrored)] = capacity[list(batch.unmirrored)] = 0
        return ResourceUsage(measured, np.where(measured, average, 0), deviation, capacity, allocatable)

    def outdated(self, batch: NodeBatch) -> BoolArray:
        """Return for each node of a batch whether its measurement is too old, and therefore missing in `of`."""
        found: BoolArray = self.too_old.take(batch.slots)
        if batch.unmirrored:
            found[list(batch.unmirrored)] = False
        return found

    def _measure(self, slot: int, metrics: NodeMetrics | None) -> None:
        usable = metrics is not None and not metrics.too_old
        for column, name in zip(self._columns, RESOURCES, strict=True):
            found: Usage | None = getattr(metrics, name) if usable else None
            column[0, slot] = _UNKNOWN if found is None else min(found.average, MAX_AMOUNT)
            column[1, slot] = 0 if found is None else min(found.deviation or 0, MAX_AMOUNT)
        self.too_old[slot] = metrics is not None and metrics.too_old

    def _describe(self, slot: int, node: Node) -> None:
        for column, name in zip(self._columns, RESOURCES, strict=True):
            allocatable = node.allocatable.get(name, 0)
            column[3, slot] = min(allocatable, MAX_AMOUNT)
            column[2, slot] = min(node.capacity.get(name, allocatable), MAX_AMOUNT)

    def _grow(self, slot: int) -> None:
        missing = slot + 1 - len(self.too_old)
        if missing > 0:
            more = max(missing, len(self.too_old))
            self._columns = np.pad(self._columns, ((0, 0), (0, 0), (0, more)))
            self.too_old = np.pad(self.too_old, (0, more))


def judged(metrics: NodeMetrics, now: float, max_age: float) -> NodeMetrics:
    """Return a measurement with `too_old` set for the present time. Times are in seconds, `now` since 1970."""
    too_old = now - metrics.measured_at > max_age
    return metrics if metrics.too_old == too_old else replace(metrics, too_old=too_old)


def outdated(mirror: ClusterMirror, now: float, max_age: float) -> Iterator[NodeMetrics]:
    """Yield the measurements that have become too old, marked as such. The caller must update the mirror."""
    for stored in [*mirror.objects(NodeMetrics).values()]:
        if not stored.too_old and (marked := judged(stored, now, max_age)).too_old:
            yield marked
