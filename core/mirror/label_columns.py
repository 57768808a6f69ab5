"""The values of node labels by node slot and label key, and for the nodes of a request.

With these columns, a requirement on a label is array arithmetic over value ids. A key that no node has needs no column:
it costs one dict look-up.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final
from weakref import WeakValueDictionary

import numpy as np

from core.mirror.changes import NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, UNSEEN, BoolArray, Int64Array, IntpArray, TopologyColumn
from core.objects.affinity import label_number
from core.objects.node import Node

MAX_BYTES: Final = 8 * 2**20
"""Size of the columns that are kept between requests. One request may use more, and so may the states of classes.

The hostnames of 5,000 nodes take about 0.7 MB, a label with few values 20 KB.
"""

_VALUE_BYTES: Final = 150
"""Approximate size of a value with its id and its number of slots. The node owns the text."""
_FEW_KEYS: Final = 8
"""Up to this number of missing keys, a look-up of each key on every node costs less than a set intersection."""


class LabelColumn(TopologyColumn):
    """The value of one label key on every node, and the integer that each value stands for."""

    __slots__ = ("__weakref__", "_numbers")

    def __init__(self, key: str, capacity: int) -> None:
        super().__init__(key, capacity)
        self._numbers: tuple[Int64Array, BoolArray] | None = None

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return self.of_slot.nbytes + _VALUE_BYTES * len(self.values)

    def assign(self, slot: int, value: str | None) -> None:
        """Set the value of a slot. None means that the label is absent."""
        super().assign(slot, value)
        self._numbers = None

    def numbers(self) -> tuple[Int64Array, BoolArray]:
        """Return by value id the int64 of each value, and whether it has one. Parsed once until a label changes."""
        if self._numbers is None:
            self._numbers = numbers_of(self.values)
        return self._numbers


class LabelColumns:
    """Label key -> its column, for the most recently requested keys that nodes have. A derived state."""

    hears: Final = (NodeChange,)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._nodes = mirror.nodes
        self._columns: OrderedDict[str, LabelColumn] = OrderedDict()
        self._in_use: WeakValueDictionary[str, LabelColumn] = WeakValueDictionary()
        """These, and those that classes still use: each would have its own column of 65,000 hostnames, of 12 MB."""

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return sum(column.nbytes for column in self._columns.values())

    def of(self, keys: Iterable[str]) -> Mapping[str, LabelColumn]:
        """Return the columns of the given keys that any known node has. Stale after the next event.

        One pass over the nodes makes all missing columns. No returned column is dropped before the call returns.
        """
        columns, known = self._columns, self._nodes.label_keys
        found: dict[str, LabelColumn] = {}
        more: dict[str, LabelColumn] = {}
        missing: set[str] = set()
        for key in keys:
            column = columns.get(key)
            if column is not None:
                found[key] = column
                columns.move_to_end(key)
            elif key in known and (column := self._in_use.get(key)) is not None:
                more[key] = column
            elif key in known:
                missing.add(key)
        if missing:
            more.update(self._made(missing))
        if more:
            found.update(more)
            columns.update(more)
            self._in_use.update(more)
            self._make_room()
        return found

    def changed(self, change: NodeChange) -> None:
        """Update the columns from the labels of a changed node."""
        before, after = _labels(change.before), _labels(change.after)
        for column in self._in_use.values():
            column.grow(self._nodes.capacity)
        if before == after:
            return
        for key in before.keys() | after.keys():
            known = self._in_use.get(key)
            if known is not None and before.get(key) != after.get(key):
                known.assign(change.slot, after.get(key))

    def _made(self, keys: AbstractSet[str]) -> dict[str, LabelColumn]:
        made = {key: LabelColumn(key, self._nodes.capacity) for key in keys}
        few = len(keys) <= _FEW_KEYS
        for slot, node in self._nodes:
            labels = node.labels
            for key in keys if few else labels.keys() & keys:
                value = labels.get(key)
                if value is not None:
                    made[key].assign(slot, value)
        return made

    def _make_room(self) -> None:
        size = self.nbytes
        while size > MAX_BYTES and len(self._columns) > 1:
            _, column = self._columns.popitem(last=False)
            size -= column.nbytes


class BatchColumn:
    """The value ids of one label key on the nodes of a batch.

    A value that only strangers have gets an id from `len(column.values)` on.
    """

    __slots__ = ("_numbers", "_others", "column", "ids")

    def __init__(self, column: LabelColumn, ids: IntpArray, others: Mapping[str, int]) -> None:
        self.ids = ids
        self.column = column
        self._others = others
        self._numbers: tuple[Int64Array, BoolArray] | None = None

    def id_of(self, value: str) -> int | None:
        """Return the id of a value, or None if no node has it."""
        return self.column.ids.get(value, self._others.get(value))

    def present(self) -> BoolArray:
        """Return which nodes have the label."""
        return self.ids >= 0

    def among(self, values: Iterable[str]) -> BoolArray | None:
        """Return which nodes have one of the values, or None if no node has. Costs one look-up per value."""
        known, others = self.column.ids, self._others
        ids = [known[value] for value in values if value in known]
        if others:
            ids += [others[value] for value in values if value in others]
        if not ids:
            return None
        if len(ids) == 1:
            one: BoolArray = self.ids == ids[0]
            return one
        chosen: BoolArray = np.zeros(len(self.column.values) + len(self._others) + 1, np.bool_)
        chosen[ids] = True
        chosen[ABSENT] = False
        return chosen.take(self.ids)

    def numbers(self) -> tuple[Int64Array, BoolArray]:
        """Return for each node the int64 of its value, and whether it has one."""
        if self._numbers is None:
            numbers, valid = self.column.numbers()
            if self._others:
                more, more_valid = numbers_of(self._others)
                numbers, valid = np.concatenate((numbers, more)), np.concatenate((valid, more_valid))
            # ABSENT indexes the last element.
            numbers, valid = np.append(numbers, np.int64(0)), np.append(valid, np.False_)
            self._numbers = numbers.take(self.ids), valid.take(self.ids)
        return self._numbers

    def topology_ids(self) -> IntpArray:
        """Return the value ids for users of a TopologyColumn: UNSEEN for a value that only strangers have."""
        if not self._others:
            return self.ids
        return np.where(self.ids < len(self.column.values), self.ids, UNSEEN)


class BatchLabels:
    """The labels of the nodes of a batch, for some keys. Stale after the next event."""

    __slots__ = ("_batch", "_capacity", "_columns", "_last", "_of_unmirrored_nodes")

    def __init__(self, mirror: ClusterMirror, batch: NodeBatch, keys: Iterable[str]) -> None:
        """`keys` are all keys that `of` will be called with: their columns are made together."""
        required = keys if isinstance(keys, AbstractSet) else frozenset(keys)
        self._batch = batch
        self._capacity = mirror.nodes.capacity
        self._columns = mirror.derived(LabelColumns).of(required)
        self._of_unmirrored_nodes = _of_unmirrored_nodes(batch, required) if batch.unmirrored else {}
        self._last: tuple[str, BatchColumn | None] | None = None

    def of(self, key: str) -> BatchColumn | None:
        """Return the values of a label on the nodes of the batch, or None if no node of it can have the label."""
        if self._last is None or self._last[0] != key:
            self._last = key, self._made(key)
        return self._last[1]

    def _made(self, key: str) -> BatchColumn | None:
        of_unmirrored = self._of_unmirrored_nodes.get(key, ())
        column = self._columns.get(key)
        if column is None:
            if not of_unmirrored:
                return None
            column = LabelColumn(key, self._capacity)
        ids = self._batch.value_ids(column)
        others: dict[str, int] = {}
        for position, value in of_unmirrored:
            known = column.ids.get(value)
            ids[position] = others.setdefault(value, len(column.values) + len(others)) if known is None else known
        return BatchColumn(column, ids, others)


def numbers_of(values: Iterable[str]) -> tuple[Int64Array, BoolArray]:
    """Return the int64 of each value, or 0, and whether it has one."""
    parsed = [label_number(value) for value in values]
    numbers = np.array([0 if number is None else number for number in parsed], np.int64)
    return numbers, np.array([number is not None for number in parsed], np.bool_)


def _of_unmirrored_nodes(batch: NodeBatch, keys: AbstractSet[str]) -> dict[str, list[tuple[int, str]]]:
    """Return by key the strangers with the label, and its value. The cost depends on their labels, not on the keys."""
    found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for position, node in batch.unmirrored.items():
        if node is not None:
            for key in node.labels.keys() & keys:
                found[key].append((position, node.labels[key]))
    return found


def _labels(node: Node | None) -> Mapping[str, str]:
    return {} if node is None else node.labels
