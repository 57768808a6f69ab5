"""A value of every node, stored by distinct value, so that plugins judge each value once for all its nodes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, TypeVar

import numpy as np

from core.mirror.changes import Change, NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, DistinctValues, Int64Array
from core.objects.node import Node

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

    def changed(self, change: Change) -> None:
        """Read a changed node again."""
        if isinstance(change, NodeChange):
            if change.slot >= len(self._column.of_slot):
                self._column.grow(change.slot + 1)
            self._column.assign(change.slot, None if change.after is None else self._read(change.after))

    def judged(self, batch: NodeBatch, judge: Callable[[Value | None], int]) -> Int64Array:
        """Return `judge` of each node's value, or 0 for an unknown node. `judge` is called once per distinct value."""
        results = self._results(batch, judge)
        for position, node in batch.strangers.items():
            results[position] = 0 if node is None else judge(self._read(node))
        return results

    def places(self, batch: NodeBatch) -> tuple[list[Value | None], Int64Array]:
        """Return values, and for each node the index of its value: 0 for no value or an unknown node."""
        values: list[Value | None] = [None, *self._column.values]
        places = self._column.of_slot[batch.slots].astype(np.int64) + 1  # ABSENT gives 0; NO_SLOT is corrected below
        ids = self._column.ids
        for position, node in batch.strangers.items():
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

    def changed(self, change: Change) -> None:
        """Read a node again if its labels have changed."""
        if isinstance(change, NodeChange) and _labels(change.before) != _labels(change.after):
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
