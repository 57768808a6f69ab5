"""The best nodes for a class, kept from one decision to the next.

They follow from cached arrays: which nodes fit, and the sums of their scores.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.equivalence.validity import NEVER
from core.framework.interface import Status, Versions
from core.mirror.topology import BoolArray, Int64Array, IntpArray

Scores8: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""Normalised scores, 0 to 100."""
Totals: TypeAlias = NDArray[np.signedinteger[Any]]
"""Sums of weighted scores, in the narrowest of int32 and int64 that holds all sums of the profile."""

UNFIT: Final = -(2**31)
"""The total of a node that does not fit."""
_Result = TypeVar("_Result")
NO_SLOTS: Final[IntpArray] = np.empty(0, np.intp)
"""The slots of a class without a decision."""


class LastResult(NamedTuple, Generic[_Result]):
    """The results of a plugin at a time of the cache, with the versions of its counters."""

    at: int
    versions: Versions
    by_position: _Result
    state: Any = None
    """The state that gave raw scores."""


class Range:
    """The lowest and the highest raw score of the nodes that fit, and how many nodes have them."""

    __slots__ = ("at_highest", "at_lowest", "highest", "lowest")

    def __init__(self, raw: Int64Array) -> None:
        self.lowest, self.highest = int(raw.min()), int(raw.max())
        self.at_lowest = int(np.count_nonzero(raw == self.lowest))
        self.at_highest = int(np.count_nonzero(raw == self.highest))

    def stays(self, gone: Iterable[int], come: Iterable[int]) -> bool:
        """Take scores away, and add others. Return whether the range is still the same."""
        for score in gone:
            self.at_lowest -= score == self.lowest
            self.at_highest -= score == self.highest
        for score in come:
            if not self.lowest <= score <= self.highest:
                return False
            self.at_lowest += score == self.lowest
            self.at_highest += score == self.highest
        return self.at_lowest > 0 and self.at_highest > 0


class Ranking:
    """The cached ranking of one class for one order of nodes, by position.

    A result is a node's *own* if it does not depend on counters or on other nodes. `fits` is true where all filters
    with own verdicts pass. `own` has the normalised own scores, 0 to 100, by plugin, without plugins that score no
    node. `sums` is their weighted sum. All of these were valid at the time `as_of` of the cache.

    `passed` and `raw` have the last results of each other plugin. Raw scores of None mean that all nodes have the same
    score, which does not change the order.

    `totals` are the sums with the scores of `raw`, and UNFIT where the pod does not fit, valid at the time `as_of`.
    None: they must be added up. `ranges` are of the raw scores in them, by plugin. None: nobody has needed them.
    """

    __slots__ = (
        "as_of",
        "best",
        "counted_bytes",
        "filter_states",
        "fits",
        "highest",
        "own",
        "passed",
        "ranges",
        "raw",
        "score_states",
        "skipping",
        "slots",
        "sums",
        "together",
        "totals",
    )

    def __init__(self, slots: IntpArray) -> None:
        """Begin for nodes with these slots. At first every node fits and none has a score."""
        self.as_of = NEVER
        self.counted_bytes = 0
        """`nbytes` when the size of the class was last counted."""
        self.slots = slots
        self.fits: BoolArray = np.ones(len(slots), np.bool_)
        self.own: dict[str, Scores8] = {}
        self.sums: Int64Array = np.zeros(len(slots), np.int64)
        self.passed: dict[str, LastResult[BoolArray]] = {}
        self.raw: dict[str, LastResult[Int64Array | None]] = {}
        self.filter_states: dict[str, tuple[Status, Any]] = {}  # of plugins whose `state_lasts`
        self.score_states: dict[str, tuple[Status, Any]] = {}
        self.together: dict[str, LastResult[None]] = {}  # states for all nodes, of plugins without `scores_alone`
        self.totals: Totals | None = None
        self.ranges: dict[str, Range] | None = None
        self.skipping: set[str] = set()  # plugins without `scores_alone` that skip the class
        self.highest = 0
        """The highest of the totals, with the scores of all plugins."""
        self.best: IntpArray = NO_SLOTS
        """The positions that have it."""

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes, without the slots, which belong to the mirror."""
        of_8_bytes = 2 + len(self.together)  # `sums`, and `best` at most; a state may have the labels of all nodes
        for last in self.raw.values():
            of_8_bytes += last.by_position is not None
        of_a_byte = 1 + len(self.own) + len(self.passed)  # `fits` is the first
        return len(self.slots) * (8 * of_8_bytes + of_a_byte + (0 if self.totals is None else self.totals.itemsize))

    def rescore(self, plugin: str, weight: int, positions: Sequence[int], scores: Sequence[int] | None) -> None:
        """Update a plugin's normalised scores at some positions. None means that it scores no node there."""
        own = self.own.get(plugin)
        if own is None:
            if scores is None:
                return
            own = self.own[plugin] = np.zeros(len(self.slots), np.uint8)
        sums = self.sums
        now = repeat(0, len(positions)) if scores is None else scores
        for position, score in zip(positions, now, strict=True):  # few: arrays of one number take longer
            change = score - own.item(position)
            if change:
                sums[position] = sums.item(position) + weight * change
                own[position] = score

    def best_but(self, positions: Sequence[int]) -> IntpArray | None:
        """Return the best positions after the totals of some have changed. None: all must be compared.

        A decision lowers the total of its node, or leaves it. Mostly others are as good: 1 us, not 9 at 5,000 nodes.
        """
        totals, best = self.totals, self.best
        if totals is None or not len(best):
            return None
        for position in positions:
            total = totals.item(position)
            if total > self.highest:
                return None
            place = int(best.searchsorted(position))
            is_best = place < len(best) and best.item(place) == position
            if is_best is not (total == self.highest):  # a new array, because the caller may hold this one
                come: Sequence[int] = () if is_best else (position,)
                best = np.concatenate((best[:place], np.array(come, np.intp), best[place + is_best :]))
        self.best = best
        return best if len(best) else None

    def fits_at(self, position: int) -> bool:
        """Return whether all filters pass at a position, by their last results."""
        fits = self.fits.item(position)
        for last in self.passed.values():
            fits = fits and last.by_position.item(position)
        return fits

    def raw_at(self, positions: Sequence[int]) -> dict[str, list[int]]:
        """Return the raw scores at some positions, by plugin, without plugins that give all nodes the same."""
        known = self.raw.items()
        return {name: [*map(raw.item, positions)] for name, last in known if (raw := last.by_position) is not None}
