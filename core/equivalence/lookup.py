"""The cells of one class on one node, read without evaluating a cell or changing a row.

Source: PredicateWithECache of the equivalence class design, which returns fit, reasons and invalid.
"""

import msgspec

from core.equivalence.ranking import NEVER
from core.equivalence.rows import ClassEntry, Miss, PluginRow, counters_unchanged
from core.equivalence.validity import Validities
from core.framework.interface import NOT_SCORED, AnyFilter, AnyScore, Code, Status
from core.mirror.cluster import ClusterMirror


class PredicateCell(msgspec.Struct, frozen=True, gc=False):
    """The verdict of a predicate. An invalid one has neither fit nor reasons, as in the design."""

    plugin: str
    fit: bool
    reasons: tuple[str, ...]
    invalid: bool
    """Whether the next request evaluates the cell again."""
    miss: str | None
    """Why the cell is invalid."""


class ScoreCell(msgspec.Struct, frozen=True, gc=False):
    """The raw score of a priority."""

    plugin: str
    raw: int | None
    """None if the cell is invalid, or if the plugin skips the pod."""
    invalid: bool
    """Whether the next request evaluates the cell again. Always true without `scores_alone`: nothing is cached."""
    miss: str | None
    """Why the cell is invalid. None for scores that are not cached."""


class CellLookup:
    """The cells of one class on one node. Valid until the next event or request."""

    def __init__(self, mirror: ClusterMirror, validities: Validities, entry: ClassEntry, node: str) -> None:
        """`node` must be the name of a known node."""
        self._mirror = mirror
        self._validities = validities
        self._entry = entry
        self._batch = mirror.batch([node])
        self._slot = mirror.nodes.slots[node]

    def predicate(self, plugin: AnyFilter) -> PredicateCell:
        """Return the cell of a predicate."""
        found = self._look_up(self._entry.filters.get(plugin.name))
        if isinstance(found, Miss):
            return PredicateCell(plugin.name, fit=False, reasons=(), invalid=True, miss=found.label)
        status = found if isinstance(found, Status) else self._entry.filters[plugin.name].statuses[found]
        fit = status.code in {Code.SUCCESS, Code.SKIP}
        return PredicateCell(plugin.name, fit, status.reasons, invalid=False, miss=None)

    def score(self, plugin: AnyScore) -> ScoreCell:
        """Return the cell of a priority."""
        if not plugin.scores_alone:
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=None)
        found = self._look_up(self._entry.scores.get(plugin.name))
        if isinstance(found, Miss):
            return ScoreCell(plugin.name, raw=None, invalid=True, miss=found.label)
        raw = None if isinstance(found, Status) or found == NOT_SCORED else found
        return ScoreCell(plugin.name, raw, invalid=False, miss=None)

    def _look_up(self, row: PluginRow | None) -> Miss | Status | int:
        """Return the number in the cell, the status for all nodes, or the reason for a miss."""
        if row is None:
            return self._entry.miss
        found = row.outcome or (row.miss if row.empty or row.cells is None else row.cells.at(self._slot))
        if isinstance(found, Miss):
            return found
        dropped = self._dropped(row)
        return found if dropped is None else dropped

    def _dropped(self, row: PluginRow) -> Miss | None:
        """Return why the next request drops the row, or None.

        Runs PreFilter or PreScore to read the counters' versions.
        """
        if row.as_of in (NEVER, self._validities.now):
            return None
        validity = self._validities.of[row.plugin.name]
        if validity.all_at > row.as_of:
            return Miss.CLUSTER_CHANGED
        if row.outcome is None and validity.changed_at[self._slot] > row.as_of:
            return Miss.NODE_CHANGED
        if validity.reads_counters:
            prepared = row.prepare(self._mirror, self._entry.representative, self._batch)
            if not counters_unchanged(row, prepared):
                return Miss.COUNTERS_CHANGED
        return None
