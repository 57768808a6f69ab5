"""The cells of one class on one node, read without evaluating a cell or changing a row.

Source: PredicateWithECache of the equivalence class design, which gives fit, reasons and invalid.
"""

import msgspec

from core.equivalence.cells import Miss
from core.equivalence.class_entry import ClassEntry
from core.equivalence.rows import NEVER, Aspect, FilterAspect, Row, ScoreAspect, counters_unchanged
from core.equivalence.validity import Validities
from core.framework.interface import NOT_SCORED, AnyFilter, AnyScore
from core.framework.status import Code, Status
from core.mirror.cluster import ClusterMirror


class PredicateCell(msgspec.Struct, frozen=True, gc=False):
    """The verdict of a predicate; where it is invalid, as in the design, neither fit nor reasons."""

    plugin: str
    fit: bool
    reasons: tuple[str, ...]
    invalid: bool
    """Whether it is evaluated before it is used again."""
    miss: str | None
    """Why it is."""


class ScoreCell(msgspec.Struct, frozen=True, gc=False):
    """The raw score of a priority."""

    plugin: str
    raw: int | None
    """None where it is invalid, or the plugin has nothing to say."""
    invalid: bool
    """Whether it is evaluated before it is used again, as scores are that are never kept (`scores_alone`)."""
    miss: str | None
    """Why it is; None for scores that are never kept."""


class CellLookup:
    """The cells of one class on one node. Valid until the next event or question."""

    def __init__(self, mirror: ClusterMirror, validities: Validities, entry: ClassEntry, node: str) -> None:
        """Take the name of a node that is known."""
        self._mirror = mirror
        self._validities = validities
        self._entry = entry
        self._batch = mirror.batch([node])
        self._slot = mirror.nodes.slots[node]

    def predicate(self, plugin: AnyFilter) -> PredicateCell:
        """Return the cell of a predicate."""
        found = self._look_up(FilterAspect(plugin), self._entry.filters.get(plugin.name))
        if isinstance(found, Miss):
            return PredicateCell(plugin.name, fit=False, reasons=(), invalid=True, miss=found.label)
        status = found if isinstance(found, Status) else self._entry.filters[plugin.name].statuses[found]
        fit = status.code in {Code.SUCCESS, Code.SKIP}
        return PredicateCell(plugin.name, fit, status.reasons, invalid=False, miss=None)

    def score(self, plugin: AnyScore) -> ScoreCell:
        """Return the cell of a priority."""
        if not plugin.scores_alone:
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=None)
        found = self._look_up(ScoreAspect(plugin), self._entry.scores.get(plugin.name))
        if isinstance(found, Miss):
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=found.label)
        raw = None if isinstance(found, Status) or found == NOT_SCORED else found
        return ScoreCell(plugin.name, raw, invalid=False, miss=None)

    def _look_up(self, aspect: Aspect, row: Row | None) -> Miss | Status | int:
        """Return the number in the cell, or the status of all nodes, or why there is neither."""
        if row is None:
            return self._entry.miss
        found = row.outcome or (row.miss if row.empty or row.cells is None else row.cells.at(self._slot))
        if isinstance(found, Miss):
            return found
        dropped = self._dropped(aspect, row)
        return found if dropped is None else dropped

    def _dropped(self, aspect: Aspect, row: Row) -> Miss | None:
        """Return why the next request drops the row. Counters tell by their versions, so PreFilter is run."""
        if row.as_of in (NEVER, self._validities.now):
            return None
        validity = self._validities.of[aspect.name]
        if validity.all_at > row.as_of:
            return Miss.CLUSTER_CHANGED
        if row.outcome is None and validity.changed_at[self._slot] > row.as_of:
            return Miss.NODE_CHANGED
        if validity.reads_counters:
            prepared = aspect.prepare(self._mirror, self._entry.representative, self._batch)
            if not counters_unchanged(row, aspect, prepared):
                return Miss.COUNTERS_CHANGED
        return None
