"""The check in service that cached and fresh results are equal: a share of the results is computed again."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.framework.evaluation import Evaluation, best_nodes
from core.framework.interface import SUCCESS, AnyFilter, AnyScore, Status, Verdicts
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.mirror.work import Work

Result: TypeAlias = Status | int | None

CHAIN: Final = "first failing filter"
"""The name, beside the plugins' names, of the verdicts of all filters together."""
BEST: Final = "best nodes"
"""The name of a choice among the fitting nodes: 1 for a node that may be chosen, else 0."""


class Difference(msgspec.Struct, frozen=True, gc=False):
    """A cell that differs from a fresh evaluation: a status, or a raw score (None: no score)."""

    plugin: str
    node: str
    cached: Result
    fresh: Result


class ShadowedEvaluation:
    """Compares each cached result with a fresh one, and returns the fresh one."""

    def __init__(
        self,
        cached: Evaluation,
        fresh: Evaluation,
        on_checked: Callable[[int, Sequence[Difference]], None],
        work: Work,
    ) -> None:
        """Call `on_checked` with the number of compared cells and those that differ. Charge `work` once."""
        self.mirror: Final = fresh.mirror
        self.pod: Final = fresh.pod
        self._cached = cached
        self._fresh = fresh
        self._on_checked = on_checked
        self._work = work

    @property
    def source(self) -> str:
        """The source of the cached results, although each result was computed again."""
        return self._cached.source

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Return the fresh verdicts."""
        cached = self._cached.verdicts(plugin, batch)
        with self._work.uncharged():
            fresh = self._fresh.verdicts(plugin, batch)
        if cached is not None or fresh is not None:
            self._compare(plugin.name, batch, _statuses(cached, batch), _statuses(fresh, batch))
        return fresh

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Return the fresh verdicts."""
        cached = self._cached.filtered(filters, batch)
        with self._work.uncharged():
            fresh = self._fresh.filtered(filters, batch)
        self._compare(CHAIN, batch, _statuses(cached, batch), _statuses(fresh, batch))
        return fresh

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Return the fresh scores."""
        cached = self._cached.raw_scores(plugin, batch)
        with self._work.uncharged():
            fresh = self._fresh.raw_scores(plugin, batch)
        if cached is not None or fresh is not None:
            self._compare(plugin.name, batch, _numbers(cached, batch), _numbers(fresh, batch))
        return fresh

    def best(
        self, filters: Sequence[AnyFilter], scores: Sequence[tuple[AnyScore, int]], batch: NodeBatch
    ) -> IntpArray | None:
        """Return the best nodes by a fresh evaluation, or None if the cache has no result."""
        cached = self._cached.best(filters, scores, batch)
        if cached is None:
            return None
        with self._work.uncharged():
            fitting = (self._fresh.filtered(filters, batch).codes == 0).nonzero()[0]
            fresh = best_nodes(scores, self._fresh, batch, fitting)
        self._compare(BEST, batch, _among(cached, batch), _among(fresh, batch))
        return fresh

    def _compare(self, name: str, batch: NodeBatch, cached: Sequence[Result], fresh: Sequence[Result]) -> None:
        known = [position for position in range(len(batch)) if position not in batch.unmirrored]
        self._on_checked(
            len(known),
            [
                Difference(name, batch.names[position], cached[position], fresh[position])
                for position in known
                if cached[position] != fresh[position]
            ],
        )


def _statuses(verdicts: Verdicts | None, batch: NodeBatch) -> Sequence[Result]:
    if verdicts is None:
        return [SUCCESS] * len(batch)
    return [verdicts.statuses[code] for code in verdicts.codes.tolist()]


def _among(best: IntpArray, batch: NodeBatch) -> Sequence[Result]:
    among = np.zeros(len(batch), np.int64)
    among[best] = 1
    return _numbers(among, batch)


def _numbers(scores: Int64Array | None, batch: NodeBatch) -> Sequence[Result]:
    numbers: Sequence[Result] = [None] * len(batch) if scores is None else scores.tolist()
    return numbers
