"""What is kept of a class from one decision to the next.

The best nodes follow from cached arrays: which nodes fit, and the sums of their scores.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from core.equivalence.validity import NEVER
from core.framework.interface import Status, Versions
from core.mirror.topology import BoolArray, Int64Array, IntpArray

if TYPE_CHECKING:
    from core.equivalence.groups import Groups

Scores8: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""Normalised scores, 0 to 100."""

_Result = TypeVar("_Result")
NO_SLOTS: Final[IntpArray] = np.empty(0, np.intp)
"""The slots of a class without a decision."""


class LastResult(NamedTuple, Generic[_Result]):
    """The results of a plugin at a time of the cache, with the versions of its counters."""

    at: int
    versions: Versions
    result: _Result


class Ranking:
    """The cached ranking of one class for one order of nodes, by position.

    A result is a node's *own* if it does not depend on counters or on other nodes. `fits` is true where all filters
    with own verdicts pass. `own` has the normalised own scores, 0 to 100, by plugin, without plugins that score no
    node. `sums` is their weighted sum. All of these were valid at the time `as_of` of the cache.

    `passed` has the last results of each other filter, and `states` what each other score follows from. None: all nodes
    have the same score, which does not change the order.

    `groups` were valid at the time `as_of`. None: they must be made. `has_too_many_groups`: they never are.
    """

    __slots__ = (
        "as_of",
        "counted_bytes",
        "counting_states",
        "filter_states",
        "fits",
        "groups",
        "has_too_many_groups",
        "own",
        "passed",
        "score_states",
        "slots",
        "states",
        "sums",
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
        self.states: dict[str, LastResult[Any]] = {}
        self.filter_states: dict[str, tuple[Status, Any]] = {}  # of plugins whose `state_lasts`
        self.score_states: dict[str, tuple[Status, Any]] = {}
        self.counting_states: dict[str, tuple[int, tuple[Status, Any]]] = {}  # of other filters, with their epochs
        self.groups: Groups | None = None
        self.has_too_many_groups = False

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes, without the slots, which belong to the mirror."""
        of_8_bytes = 1  # `sums`
        for last in self.states.values():
            of_8_bytes += last.result is not None  # it may have the labels or the scores of all nodes
        of_a_byte = 1 + len(self.own) + len(self.passed)  # `fits` is the first
        return len(self.slots) * (8 * of_8_bytes + of_a_byte) + (0 if self.groups is None else self.groups.nbytes)

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

    def fits_at(self, position: int) -> bool:
        """Return whether all filters pass at a position, by their last results."""
        fits = self.fits.item(position)
        for last in self.passed.values():
            fits = fits and last.result.item(position)
        return fits
