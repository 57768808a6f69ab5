"""Topology domains: the values of node labels over node slots, and numbers of pods per value.

Only the label keys that some live counter uses have a column; a column goes when its last counter goes.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.objects.node import Node

Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
IntpArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]

Value = TypeVar("Value", bound=Hashable)

ABSENT: Final = -1
"""Value id of a node that lacks the label key, or whatever else is looked at."""
UNSEEN: Final = -2
"""Value id of a label value that no node of the mirror has: a domain without pods."""
_SENTINELS: Final = 2

FEWEST_SLOTS: Final = 16
"""Slots that every column has from the start, so that looking up a slot never meets an empty array."""

_DENSE_FROM: Final = 256
"""Domains with pods up to which they are a dict: 9 KB and 16 us to add up at 256, where an array over 5,000 domains
takes 20 KB and 5 us; with 50 domains 2 KB and 7 us."""


class DistinctValues(Generic[Value]):
    """Node slot -> id of its value; ABSENT for a slot without one, free slots among them.

    An id lives as long as some slot has the value, and is given to another value later.
    """

    __slots__ = ("_free", "_slots", "ids", "of_slot", "values")

    def __init__(self, capacity: int) -> None:
        self.of_slot: Int32Array = np.full(capacity, ABSENT, np.int32)
        self.ids: dict[Value, int] = {}
        self.values: list[Value] = []  # id -> value, stale where the id is free
        self._slots: list[int] = []  # id -> number of slots that have the value
        self._free: list[int] = []

    def assign(self, slot: int, value: Value | None) -> None:
        """Set the value of a slot (None: absent)."""
        before = int(self.of_slot[slot])
        if before != ABSENT:
            self._slots[before] -= 1
            if not self._slots[before]:
                del self.ids[self.values[before]]
                self._free.append(before)
        self.of_slot[slot] = ABSENT if value is None else self._acquire(value)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` slots."""
        if capacity > len(self.of_slot):
            self.of_slot = grown(self.of_slot, capacity, ABSENT)

    def _acquire(self, value: Value) -> int:
        value_id = self.ids.get(value)
        if value_id is None:
            if self._free:
                value_id = self._free.pop()
                self.values[value_id] = value
            else:
                value_id = len(self.values)
                self.values.append(value)
                self._slots.append(0)
            self.ids[value] = value_id
        self._slots[value_id] += 1
        return value_id


class TopologyColumn(DistinctValues[str]):
    """The value of one label key on every node.

    That ids are given to other values is safe for counts, as a pod is counted only while its node has the value: all
    counts of an id are back at 0 before it is freed. So no pod of a slot may be counted while its value is assigned.
    """

    __slots__ = ("key", "users")

    def __init__(self, key: str, capacity: int) -> None:
        super().__init__(capacity)
        self.key = key
        self.users = 0  # live counters that read this column

    def sums(self) -> Int64Array:
        """Give zeros to add counts into: one per value id, and one each for UNSEEN and ABSENT, indexed from the end."""
        return np.zeros(len(self.values) + _SENTINELS, np.int64)

    def id_of(self, labels: Mapping[str, str]) -> int:
        """Return the value id of a node with these labels: an id, UNSEEN or ABSENT."""
        value = labels.get(self.key)
        return ABSENT if value is None else self.ids.get(value, UNSEEN)


class TopologyCounts:
    """Number of pods per value id of one column: a dict while few domains have any, then an int32 array for good."""

    __slots__ = ("_dense", "_sparse", "nonzero")

    def __init__(self) -> None:
        self.nonzero = 0  # domains that have pods
        self._sparse: dict[int, int] = {}
        self._dense: Int32Array | None = None

    @classmethod
    def of(cls, value_ids: Int32Array) -> "TopologyCounts":
        """Count the given value ids, one for each pod; ABSENT ones are passed over."""
        counts = cls()
        numbers = np.bincount(value_ids[value_ids >= 0])
        ids = numbers.nonzero()[0]
        counts.nonzero = len(ids)
        if counts.nonzero > _DENSE_FROM:
            counts._dense = numbers.astype(np.int32)
        else:
            counts._sparse = dict(zip(ids.tolist(), numbers.take(ids).tolist(), strict=True))
        return counts

    def add(self, value_id: int, delta: int) -> None:
        """Count `delta` pods more (or fewer) for a domain."""
        if self._dense is not None:
            self._add_dense(self._dense, value_id, delta)
            return
        number = self._sparse.get(value_id, 0) + delta
        if number:
            self._sparse[value_id] = number
        else:
            del self._sparse[value_id]
        self.nonzero = len(self._sparse)
        if self.nonzero > _DENSE_FROM:
            self._densify()

    def add_into(self, sums: Int64Array, weight: int = 1) -> None:
        """Add `weight` times the counts to `sums`, which `TopologyColumn.sums` gave."""
        if self._dense is not None:
            length = min(len(self._dense), len(sums) - _SENTINELS)
            sums[:length] += self._dense[:length] * np.int64(weight)
        elif self._sparse:
            ids = np.fromiter(self._sparse.keys(), np.intp, len(self._sparse))
            sums[ids] += np.fromiter(self._sparse.values(), np.int64, len(self._sparse)) * weight

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield (value id, number of pods) of each domain that has pods."""
        if self._dense is None:
            yield from self._sparse.items()
            return
        ids = np.flatnonzero(self._dense)
        yield from zip(ids.tolist(), self._dense[ids].tolist(), strict=True)

    def _add_dense(self, dense: Int32Array, value_id: int, delta: int) -> None:
        if value_id >= len(dense):
            dense = self._dense = grown(dense, value_id + 1, 0)
        before = int(dense[value_id])
        dense[value_id] = before + delta
        self.nonzero += (before + delta != 0) - (before != 0)

    def _densify(self) -> None:
        dense = np.zeros(max(self._sparse) + 1, np.int32)
        for value_id, number in self._sparse.items():
            dense[value_id] = number
        self._dense, self._sparse = dense, {}


class TopologyColumns:
    """The columns of the label keys in use, kept with the nodes: key -> column."""

    def __init__(self) -> None:
        self._columns: dict[str, TopologyColumn] = {}
        self._capacity = FEWEST_SLOTS

    def acquire(self, key: str, nodes: Iterable[tuple[int, Node]]) -> TopologyColumn:
        """Return the column of a key for one more user, filled from (slot, node) pairs when it is new."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = TopologyColumn(key, self._capacity)
            for slot, node in nodes:
                column.assign(slot, node.labels.get(key))
        column.users += 1
        return column

    def release(self, column: TopologyColumn) -> None:
        """Drop one user of a column."""
        column.users -= 1
        if not column.users:
            del self._columns[column.key]

    def changed_by(self, slot: int, labels: Mapping[str, str]) -> list[TopologyColumn]:
        """List the columns in which a slot with these labels has another value than now."""
        return [
            column
            for column in self._columns.values()
            if column.id_of(labels) != column.of_slot[slot]  # UNSEEN differs from every id of a slot
        ]

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` slots in every column, and in those to come."""
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)


def grown(array: Int32Array, needed: int, fill: int) -> Int32Array:
    """Return the array with room for `needed` elements, at least doubled, the new ones set to `fill`."""
    bigger = np.full(max(needed, 2 * len(array)), fill, np.int32)
    bigger[: len(array)] = array
    return bigger
