"""Topology domains: the values of node labels over node slots, and numbers of pods per value."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from core.mirror.node_info import NodeTable

Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
IntpArray: TypeAlias = NDArray[np.intp]
Float64Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

Value = TypeVar("Value", bound=Hashable)

ABSENT: Final = -1
"""Value id of a node that does not have the label key or other value."""
UNSEEN: Final = -2
"""Value id of a label value that no node of the mirror has: a domain without pods."""
_SENTINELS: Final = 2

MIN_SLOTS: Final = 16
"""Every column has this many slots from the start, so that a look-up never reads an empty array."""

MAX_UNUSED_COLUMNS: Final = 64
"""How many columns are kept without a user. One costs 20 KB at 5,000 nodes."""

_DENSE_FROM: Final = 256
"""Up to this number of domains with pods, the counts are a dict.

At 256 domains a dict takes 9 KB, and 16 us to add up. An array over 5,000 domains takes 20 KB and 5 us. At 50 domains a
dict takes 2 KB and 7 us.
"""


class DistinctValues(Generic[Value]):
    """Node slot -> id of its value. ABSENT for a slot without a value, including free slots.

    An id is in use while some slot has the value. Later another value may get it.
    """

    __slots__ = ("_free", "_slots", "ids", "of_slot", "values")

    def __init__(self, capacity: int) -> None:
        self.of_slot: Int32Array = _all_absent(capacity)  # until a slot has a value
        self.ids: dict[Value, int] = {}
        self.values: list[Value] = []  # id -> value, stale where the id is free
        self._slots: list[int] = []  # id -> number of slots that have the value
        self._free: list[int] = []

    def assign(self, slot: int, value: Value | None) -> None:
        """Set the value of a slot (None: absent)."""
        before = int(self.of_slot[slot])
        if before == ABSENT and value is None:
            return
        if not self.of_slot.flags.writeable:
            self.of_slot = self.of_slot.copy()
        if before != ABSENT:
            self._slots[before] -= 1
            if not self._slots[before]:
                del self.ids[self.values[before]]
                self._free.append(before)
        self.of_slot[slot] = ABSENT if value is None else self._acquire(value)

    def grow(self, capacity: int) -> None:
        """Extend to `capacity` slots."""
        if capacity > len(self.of_slot):
            self.of_slot = grown(self.of_slot, capacity, ABSENT) if self._slots else _all_absent(capacity)

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

    Reuse of ids is safe for counts. A pod is counted only while its node has the value, so all counts of an id are 0
    before the id is freed. So no pod of a slot may be counted while the slot's value is assigned.
    """

    __slots__ = ("key", "users")

    def __init__(self, key: str, capacity: int) -> None:
        super().__init__(capacity)
        self.key = key
        self.users = 0  # live counters that read this column

    def shares(self, slot: int) -> bool:
        """Return whether the node of a slot has other nodes in its domain."""
        value_id = self.of_slot.item(slot)
        return value_id != ABSENT and self._slots[value_id] > 1

    @property
    def any_shared(self) -> bool:
        """Whether any domain has several nodes."""
        return len(self.ids) < int(np.count_nonzero(self.of_slot != ABSENT))

    def sums(self) -> Int64Array:
        """Return zeros to add counts into: one per value id, then one each for UNSEEN (-2) and ABSENT (-1)."""
        return np.zeros(len(self.values) + _SENTINELS, np.int64)

    def id_of(self, labels: Mapping[str, str]) -> int:
        """Return the value id of a node with these labels: an id, UNSEEN or ABSENT."""
        value = labels.get(self.key)
        return ABSENT if value is None else self.ids.get(value, UNSEEN)


class TopologyCounts:
    """Number of pods per value id of one column: first a dict, and from `_DENSE_FROM` domains on an int32 array."""

    __slots__ = ("_dense", "_sparse", "nonzero")

    def __init__(self) -> None:
        self.nonzero = 0  # domains that have pods
        self._sparse: dict[int, int] = {}
        self._dense: Int32Array | None = None

    @classmethod
    def of(cls, value_ids: Int32Array) -> "TopologyCounts":
        """Count the given value ids, one for each pod. ABSENT is ignored."""
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
        """Add `delta` pods to a domain."""
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
            self._dense = np.zeros(max(self._sparse) + 1, np.int32)
            self._dense[[*self._sparse]] = [*self._sparse.values()]
            self._sparse = {}

    def add_into(self, sums: Int64Array, weight: int = 1) -> None:
        """Add `weight` times the counts to `sums`, an array from `TopologyColumn.sums`."""
        if self._dense is not None:
            length = min(len(self._dense), len(sums) - _SENTINELS)
            sums[:length] += self._dense[:length] * np.int64(weight)
        elif self._sparse:
            ids = np.fromiter(self._sparse.keys(), np.intp, len(self._sparse))
            sums[ids] += np.fromiter(self._sparse.values(), np.int64, len(self._sparse)) * weight

    def get(self, value_id: int) -> int:
        """Return the number of pods of a domain, or 0 for UNSEEN and ABSENT."""
        if self._dense is None:
            return self._sparse.get(value_id, 0)
        return int(self._dense[value_id]) if 0 <= value_id < len(self._dense) else 0

    def arrays(self) -> tuple[IntpArray, Int64Array]:
        """Return the domains with pods, and their numbers of pods."""
        if self._dense is not None:
            ids = np.flatnonzero(self._dense)
            return ids, self._dense[ids].astype(np.int64)
        count = len(self._sparse)
        return (
            np.fromiter(self._sparse.keys(), np.intp, count),
            np.fromiter(self._sparse.values(), np.int64, count),
        )

    def _add_dense(self, dense: Int32Array, value_id: int, delta: int) -> None:
        if value_id >= len(dense):
            dense = self._dense = grown(dense, value_id + 1, 0)
        before = int(dense[value_id])
        dense[value_id] = before + delta
        self.nonzero += (before + delta != 0) - (before != 0)


_OF_ONE: Final = 32  # bits
_births = count(step=1 << _OF_ONE)
"""First versions of counters, so far apart that no two counters ever have the same version."""


def of_the_same_counters(before: Sequence[int], now: Sequence[int]) -> bool:
    """Return whether versions are of the same counters."""
    return [version >> _OF_ONE for version in before] == [version >> _OF_ONE for version in now]


class DomainCounts:
    """Numbers of pods per domain of one topology key. Every change gives `version` a value that no counter had."""

    __slots__ = ("column", "counts", "presence", "version")

    def __init__(self, column: TopologyColumn, counts: TopologyCounts) -> None:
        self.column = column
        self.counts = counts
        self.version = next(_births)
        self.presence = self.version
        """The version since which the same domains have pods."""

    def add(self, slot: int, delta: int) -> bool:
        """Add `delta` for the node of a slot. A node without the key is in no domain.

        Return whether this was the first pod, or the last one, in any domain.
        """
        value_id = self.column.of_slot.item(slot)
        if value_id < 0:
            return False
        counts = self.counts
        before = counts.nonzero
        counts.add(value_id, delta)
        self.version += 1
        if counts.nonzero == before:
            return False
        self.presence = self.version
        return not (before and counts.nonzero)

    def recount(self, counts: TopologyCounts) -> None:
        """Replace all numbers."""
        self.counts = counts
        self.version += 1
        self.presence = self.version


class TopologyColumns:
    """The columns of the label keys in use: key -> column. They follow the nodes.

    A key that no node has costs no pass over the nodes, and no array: a pod may name thousands of such keys. A key that
    nodes have costs 1.2 ms at 5,000 nodes, so its column is kept for some time without users.
    """

    def __init__(self) -> None:
        self._columns: dict[str, TopologyColumn] = {}
        self._unused: OrderedDict[str, None] = OrderedDict()  # keys of columns without users, oldest first
        self._capacity = MIN_SLOTS

    def acquire(self, key: str, nodes: "NodeTable") -> TopologyColumn:
        """Return the column of a key for one more user. A new column is filled from the nodes."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = TopologyColumn(key, self._capacity)
            if key in nodes.label_keys:
                for slot, node in nodes:
                    column.assign(slot, node.labels.get(key))
        elif not column.users:
            del self._unused[key]
        column.users += 1
        return column

    def release(self, column: TopologyColumn) -> None:
        """Release a column for one user."""
        column.users -= 1
        if column.users:
            return
        if not column.ids:
            del self._columns[column.key]
            return
        self._unused[column.key] = None
        if len(self._unused) > MAX_UNUSED_COLUMNS:
            oldest, _ = self._unused.popitem(last=False)
            del self._columns[oldest]

    def changed_by(self, slot: int, before: Mapping[str, str], after: Mapping[str, str]) -> list[TopologyColumn]:
        """List the columns in which a slot gets another value when its labels change from `before` to `after`.

        Loops over the labels, not over the columns, because pods decide how many columns exist.
        """
        columns = (self._columns.get(key) for key in {**before, **after} if before.get(key) != after.get(key))
        return [column for column in columns if column is not None and column.id_of(after) != column.of_slot[slot]]

    def grow(self, capacity: int) -> None:
        """Extend every present and later column to `capacity` slots."""
        if capacity == self._capacity:
            return
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)


@lru_cache(maxsize=4)
def _all_absent(capacity: int) -> Int32Array:
    """Return a read-only column without values. Columns share it until they have a value."""
    column = np.full(capacity, ABSENT, np.int32)
    column.setflags(write=False)
    return column


def grown(array: Int32Array, needed: int, fill: int) -> Int32Array:
    """Return the array with at least `needed` elements, and a quarter more than before. New elements are `fill`."""
    bigger = np.full(max(needed, len(array) * 5 // 4), fill, np.int32)
    bigger[: len(array)] = array
    return bigger
