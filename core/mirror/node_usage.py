"""The measured usage of nodes: columns by node slot, and the age of measurements.

The mirror has no clock, so a measurement does not expire by itself. A caller with a clock marks it as too old. The mark
is a change of the object like any other, with its generation and its invalidations.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from core.mirror.changes import Change, NodeChange, ObjectChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array
from core.objects.node import Node, NodeMetrics, Usage

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

    def changed(self, change: Change) -> None:
        """Update the columns from measurements, and from the amounts that nodes report."""
        if isinstance(change, NodeChange):
            if change.after is None:
                return
            if change.before is None:
                self._grow(change.slot)
                self._measure(change.slot, self._measurements.get(change.after.name))
            self._describe(change.slot, change.after)
        elif isinstance(change, ObjectChange) and change.kind is NodeMetrics and change.slot != NO_SLOT:
            self._measure(change.slot, change.after)

    def of(self, resource: int, batch: NodeBatch) -> ResourceUsage:
        """Return a resource, by its index in RESOURCES, on the nodes of a batch."""
        average, deviation, capacity, allocatable = self._columns[resource].take(batch.slots, axis=1)
        measured: BoolArray = average != _UNKNOWN
        if batch.strangers:
            measured[list(batch.strangers)] = False
            allocatable[list(batch.strangers)] = capacity[list(batch.strangers)] = 0
        return ResourceUsage(measured, np.where(measured, average, 0), deviation, capacity, allocatable)

    def outdated(self, batch: NodeBatch) -> BoolArray:
        """Return for each node of a batch whether its measurement is too old, and therefore missing in `of`."""
        found: BoolArray = self.too_old.take(batch.slots)
        if batch.strangers:
            found[list(batch.strangers)] = False
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
    for held in [*mirror.objects(NodeMetrics).values()]:
        if not held.too_old and (marked := judged(held, now, max_age)).too_old:
            yield marked
