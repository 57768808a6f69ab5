"""The answers of plugins for one pod from the rows of its class, of which only what is invalid is evaluated again."""

from typing import Any, Protocol, TypeAlias

import numpy as np

from core.equivalence.cells import Cells, Integers, Miss
from core.equivalence.class_entry import ClassEntry
from core.equivalence.rows import NEVER, Aspect, FilterAspect, Row, ScoreAspect, counters_unchanged
from core.equivalence.validity import Validities, Validity
from core.framework.evaluation import FreshEvaluation, everywhere
from core.framework.interface import AnyFilter, AnyScore, Verdicts
from core.framework.status import Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array

_Prepared: TypeAlias = tuple[Status, Any]


class Keeper(Protocol):
    """Who counts cells, and makes room for more of them."""

    def hit(self, cells: int) -> None:
        """Take note of cells that were there."""

    def miss(self, reason: Miss, cells: int) -> None:
        """Take note of cells that were not there."""

    def weigh(self, entry: ClassEntry) -> None:
        """Take note that a class may have grown."""


class CachedEvaluation:
    """The answers of plugins for one pod. Valid until the next event."""

    def __init__(self, mirror: ClusterMirror, entry: ClassEntry, validities: Validities, keeper: Keeper) -> None:
        self._mirror = mirror
        self._entry = entry
        self._validities = validities
        self._keeper = keeper
        self._pod = entry.representative
        self._hits = 0
        self._misses = 0

    @property
    def source(self) -> str:
        """Whether the cells so far were there: all (hit), some (partial) or none (miss), and of which class."""
        result = "partial" if self._hits and self._misses else "miss" if self._misses else "hit"
        return f"{result} {self._entry.hash:016x}"

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Return the verdicts of the class's row; what is missing there is evaluated and kept."""
        row = self._entry.filter_row(plugin.name)
        found = self._look_up(FilterAspect(plugin), row, batch)
        if isinstance(found, Status):
            return everywhere(found, batch)
        return Verdicts(found, tuple(row.statuses))

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Return the raw scores of the class's row; what is missing there is evaluated and kept."""
        if not plugin.scores_alone:
            return FreshEvaluation(self._mirror, self._pod).raw_scores(plugin, batch)
        found = self._look_up(ScoreAspect(plugin), self._entry.score_row(plugin.name), batch)
        return None if isinstance(found, Status) else found.astype(np.int64, copy=False)

    def _look_up(self, aspect: Aspect, row: Row, batch: NodeBatch) -> Status | Integers:
        prepared = self._bring_up_to_date(aspect, row, batch)
        if row.outcome is not None:
            self._hit(len(batch))
            return row.outcome
        if row.cells is None and prepared is None:
            prepared = aspect.prepare(self._mirror, self._pod, batch)
        if prepared is not None and prepared[1] is None:
            self._miss(row.miss, len(batch))
            return self._settle(row, prepared[0])
        if row.cells is None:
            row.cells = Cells(self._validities.capacity, row.miss)
            self._keeper.weigh(self._entry)
        return self._from_cells(aspect, row, row.cells, batch, prepared)

    def _bring_up_to_date(self, aspect: Aspect, row: Row, batch: NodeBatch) -> _Prepared | None:
        """Drop what events have made invalid; returns what PreFilter or PreScore said if it had to be asked."""
        validity = self._validities.of[aspect.name]  # fails at once for a plugin that no event would invalidate
        as_of, now = row.as_of, self._validities.now
        prepared = None if as_of in (NEVER, now) else self._drop_invalid(aspect, row, batch, validity)
        row.as_of = now  # only now: a plugin that raises leaves the row to be looked at again
        return prepared

    def _drop_invalid(self, aspect: Aspect, row: Row, batch: NodeBatch, validity: Validity) -> _Prepared | None:
        if row.grow(self._validities.capacity):
            self._keeper.weigh(self._entry)
        if validity.all_at > row.as_of:
            row.drop(Miss.CLUSTER_CHANGED)
        elif validity.last_at > row.as_of:
            row.drop_some(validity.changed_at > row.as_of, Miss.NODE_CHANGED)
        if not validity.reads_counters:
            return None
        prepared = aspect.prepare(self._mirror, self._pod, batch)
        if not counters_unchanged(row, aspect, prepared):
            row.drop(Miss.COUNTERS_CHANGED)
        return prepared

    def _from_cells(
        self, aspect: Aspect, row: Row, cells: Cells, batch: NodeBatch, prepared: _Prepared | None
    ) -> Status | Integers:
        found = cells.get(batch.slots)
        if not batch.strangers and cells.complete(found):
            self._hit(len(batch))
            return found
        missing = cells.missing(found)
        if batch.strangers:
            missing[list(batch.strangers)] = False
            self._count_misses(cells, found[missing])
            missing[list(batch.strangers)] = True
        else:
            self._count_misses(cells, found[missing])
        positions = np.flatnonzero(missing)
        self._hit(len(batch) - len(positions))
        if not len(positions):
            return found
        part = batch if len(positions) == len(batch) else batch.part(positions)
        status, state = prepared or aspect.prepare(self._mirror, self._pod, part)
        if state is None:
            return self._settle(row, status)
        numbers = self._results(aspect, row, cells, state, part)
        if part is batch:
            return numbers
        whole = found.astype(np.int64)
        whole[positions] = numbers
        return whole

    def _results(self, aspect: Aspect, row: Row, cells: Cells, state: object, part: NodeBatch) -> Int64Array:
        numbers, kept = aspect.results(row, state, part)
        row.versions = aspect.versions(state)
        if part.strangers:
            known: BoolArray = part.slots != NO_SLOT
            kept = known if kept is None else known & kept
        if kept is None:
            cells.put(part.slots, numbers)
        else:
            cells.put(part.slots[kept], numbers[kept])
        self._keeper.weigh(self._entry)
        return numbers

    def _settle(self, row: Row, status: Status) -> Status:
        if status.code is not Code.ERROR:  # which may be gone by the next question
            row.settle(status)
        self._keeper.weigh(self._entry)
        return status

    def _count_misses(self, cells: Cells, found: Integers) -> None:
        if len(found):
            for reason, number in zip(Miss, cells.reasons(found).tolist(), strict=True):
                if number:
                    self._miss(reason, number)

    def _hit(self, cells: int) -> None:
        self._hits += cells
        self._entry.hits += cells
        self._keeper.hit(cells)

    def _miss(self, reason: Miss, cells: int) -> None:
        self._misses += cells
        self._entry.misses += cells
        self._keeper.miss(reason, cells)
