"""The nodes of a ranking by group: nodes with the same traits have the same scores by all plugins that compare nodes.

A decision changes one node, but its pod may change the scores of a whole zone, and with their range those of all nodes.
There are far fewer groups than nodes: those of the default spread constraints are a zone and a number of pods on a
node. So only groups are scored again, and of each one the highest value of a node by itself is known.
"""

from collections import deque
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.mirror.topology import Int64Array, IntpArray

Totals: TypeAlias = NDArray[np.signedinteger[Any]]
"""Sums of weighted scores, in the narrowest of int32 and int64 that holds all sums of the profile."""
UNFIT: Final = -(2**31)
"""The total of a node that does not fit."""
MAX_GROUPS: Final = 1024
"""More groups take as long as all nodes."""
_GROUP_BYTES: Final = 300
"""Size of a group without its nodes: about three traits, its number and its highest value."""
_MOST_STORED: Final = 4
_FEW: Final = 3
"""To look for the best nodes takes 10 us among 5,000, and 3 us for each that has changed."""
_NO_VALUE: Final = UNFIT + 1
"""A value that no node has."""
_WIDEST: Final = 2**16
"""Up to this range, distinct numbers are found by counting: 10 us for 5,000 nodes. To sort them takes 200 us."""


class Groups:
    """The groups by number, with the nodes by position.

    `tops` has for each group the highest value of its nodes that fit, or UNFIT, and `nodes` has how many fit.
    """

    __slots__ = ("_at_top", "_best", "_group_of", "_ids", "_moved", "_moves", "_values", "nodes", "tops", "traits")

    def __init__(self, ids: Int64Array, traits: Sequence[Sequence[Int64Array]]) -> None:
        """`ids` has the group of each node, and `traits` have numbers by group, by plugin."""
        self._ids = ids.astype(np.intp)
        keys = zip(*[each.tolist() for of_plugin in traits for each in of_plugin], strict=True)
        self._group_of = {key: group for group, key in enumerate(keys)} or {(): 0}
        self.traits = traits

    @classmethod
    def of(cls, traits: Sequence[Sequence[Int64Array]], length: int) -> "Groups | None":
        """Group `length` nodes, at least one, by numbers by position, by plugin. None: there are too many groups."""
        ids, size = np.zeros(length, np.int64), 1
        for each in chain.from_iterable(traits):
            numbers, distinct = _numbered(each)
            ids, size = _numbered(ids * distinct + numbers)
            if size > MAX_GROUPS:
                return None
        member = np.empty(size, np.intp)
        member[ids] = np.arange(length)
        return cls(ids, [[each.take(member) for each in of_plugin] for of_plugin in traits])

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes. Half of the nodes may be the best ones."""
        of_nodes = self._ids.nbytes * (1 + _MOST_STORED // 2) + self._values.nbytes
        return of_nodes + _GROUP_BYTES * len(self._group_of)

    def fill(self, values: Totals) -> None:
        """Compare all nodes by these values, which are kept: UNFIT for a node that does not fit."""
        self._values, ids, size = values, self._ids, len(self._group_of)
        self.tops: Int64Array = np.full(size, UNFIT, np.int64)
        np.maximum.at(self.tops, ids, values.astype(np.int64))  # of other types it takes 60 times as long
        fits = values != UNFIT
        self.nodes: Int64Array = np.bincount(ids[fits], minlength=size)
        self._best: dict[tuple[bytes, bytes], tuple[int, IntpArray]] = {}
        """Groups with their highest values -> the positions, and the number of moves until then."""
        self._moves = 0
        self._moved: deque[int] = deque(maxlen=_FEW)
        self._at_top = np.bincount(ids[fits & (values == self.tops.take(ids))], minlength=size)

    def move(self, position: int, value: int, traits: tuple[int, ...]) -> bool:
        """Give a node a value and traits. False: there are too many groups now, and nothing is right any more."""
        before, group, now = self._values.item(position), self._ids.item(position), self._group_of.get(traits)
        if now is None:
            now = self._added(traits)
        if now == group and value == before:
            return True
        self._values[position] = UNFIT
        if before != UNFIT:
            self.nodes[group] -= 1
            if before == self.tops.item(group):
                self._at_top[group] -= 1
                if not self._at_top.item(group):
                    self._look_again(group)
        self._values[position], self._ids[position] = value, now
        self._moved.append(position)
        self._moves += 1
        if value != UNFIT:
            self.nodes[now] += 1
            top = self.tops.item(now)
            if value > top:
                self.tops[now] = value
            if value >= top:
                self._at_top[now] = 1 + (self._at_top.item(now) if value == top else 0)
        return len(self._group_of) <= MAX_GROUPS

    def best(self, groups: IntpArray) -> IntpArray:
        """Return the positions of the best nodes of some groups together, in order. The caller must not change them.

        Those of the last few times are kept. Mostly one node has changed since then.
        """
        tops = self.tops.take(groups)
        key = groups.tobytes(), tops.tobytes()
        at, found = self._best.pop(key, (0, None))
        if found is None or self._moves - at > len(self._moved):
            needed = np.full(len(self._group_of), _NO_VALUE, self._values.dtype)
            needed[groups] = tops
            found = (self._values == needed.take(self._ids)).nonzero()[0]
        else:
            top_of = dict(zip(groups.tolist(), tops.tolist(), strict=True))
            for position in islice(reversed(self._moved), self._moves - at):
                is_best = top_of.get(self._ids.item(position)) == self._values.item(position)
                found = _amended(found, position, is_best=is_best)
        self._best[key] = self._moves, found
        if len(self._best) > _MOST_STORED:
            del self._best[next(iter(self._best))]
        return found

    def _look_again(self, group: int) -> None:
        """Find the highest value of a group whose best nodes have become worse."""
        values = self._values[self._ids == group]
        top = self.tops[group] = int(values.max(initial=UNFIT))
        self._at_top[group] = np.count_nonzero(values == top)

    def _added(self, traits: tuple[int, ...]) -> int:
        group = self._group_of[traits] = len(self._group_of)
        more = iter(traits)
        self.traits = [[np.append(each, next(more)) for each in of_plugin] for of_plugin in self.traits]
        self.tops, self.nodes = np.append(self.tops, UNFIT), np.append(self.nodes, 0)
        self._at_top = np.append(self._at_top, 0)
        return group


def _amended(best: IntpArray, position: int, *, is_best: bool) -> IntpArray:
    """Return positions in order with one or without it. The array is a new one, because a caller may hold the other."""
    place = int(best.searchsorted(position))
    was_best = place < len(best) and best.item(place) == position
    if was_best is is_best:
        return best
    if was_best:
        return np.concatenate((best[:place], best[place + 1 :]))
    return np.concatenate((best[:place], np.array([position], np.intp), best[place:]))


def _numbered(numbers: Int64Array) -> tuple[Int64Array, int]:
    """Replace the distinct numbers by 0, 1 and so on, in their order. Return how many there are, too."""
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest >= _WIDEST:
        distinct, found = np.unique(numbers, return_inverse=True)
        return found, len(distinct)
    shifted = numbers - lowest
    present = np.bincount(shifted) > 0
    return (np.cumsum(present) - 1).take(shifted), int(np.count_nonzero(present))
