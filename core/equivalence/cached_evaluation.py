"""The results of plugins for one pod, from the rows of its class. Only invalid cells are evaluated again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from core.equivalence.classes import ClassEntry
from core.equivalence.ranker import Ranker, RankRequest
from core.equivalence.rows import Cells, Integers, Miss, PluginRow, Prepared, Row, cacheable_codes, counters_unchanged
from core.equivalence.unfit import NOT_STORED, Judge, Unfit
from core.equivalence.validity import NEVER, Validities, Validity
from core.framework.evaluation import everywhere, first_failures, run_filter, run_score
from core.framework.interface import AnyFilter, AnyScore, Code, Status, Verdicts, Versions
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.mirror.work import WorkLimitError
from core.objects.pod import Pod

if TYPE_CHECKING:
    from core.equivalence.cache import EquivalenceCache

_NAMES: Final = tuple(reason.name for reason in Miss)  # a member's `name` is a Python function

_FEW: Final = 32
"""Up to this many changed nodes, the filters of a chain run for these nodes without a look at the plugins' rows."""


class CachedEvaluation:
    """The results of plugins for one pod. Valid until the next event."""

    def __init__(
        self, mirror: ClusterMirror, pod: Pod, entry: ClassEntry, validities: Validities, cache: "EquivalenceCache"
    ) -> None:
        """Evaluate a pod of the class of `entry`. Plugins get the class's representative instead of the pod."""
        self.mirror: Final = mirror
        self.pod: Final = pod
        self._entry = entry
        self._validities = validities
        self._cache = cache
        self._representative = entry.representative
        self._prepared: dict[Row, Prepared] = {}  # results of plugins that ran before the look-up in their rows
        self._prepared_at = NEVER
        self._hits = 0
        self._misses = 0
        mirror.work.spent = 0

    @property
    def source(self) -> str:
        """Whether all cells so far were cached (hit), some (partial) or none (miss), with the class."""
        result = "partial" if self._hits and self._misses else "miss" if self._misses else "hit"
        return f"{result} {self._entry.hash_text}"

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Return the verdicts of the class's row. Missing verdicts are evaluated and stored."""
        row = self._entry.filter_row(plugin)
        found = self._look_up(row, batch)
        if isinstance(found, Status):
            return everywhere(found, batch)
        return Verdicts(found, row.statuses)

    def filtered(self, filters: Sequence[AnyFilter], batch: NodeBatch) -> Verdicts:
        """Return the verdicts of the class's chain. Missing verdicts are combined from the plugins' rows.

        Until the next event, verdicts without a node that fits are the same object.
        """
        if len(filters) == 1:
            return self.verdicts(filters[0], batch) or first_failures((), batch, self.verdicts)
        entry, unfit, work = self._entry, self._entry.unfit, self.mirror.work
        if unfit is not None and unfit.slots is batch.slots:
            spent, before = work.spent, unfit.verdicts
            again = unfit.cells_again(self.mirror, self._representative, batch, self._validities)
            if again is not None:
                if again:
                    self._miss(Miss.NODE_CHANGED, again)
                self._hit(len(unfit.slots) * len(filters) - again)
                if unfit.verdicts is not before:
                    self._cache.update_size(entry)
                return unfit.verdicts
            work.spent = spent  # all is evaluated again, and charged then
        entry.unfit = None
        chain = entry.chain_row()
        cells = self._chain_cells(chain, filters, batch)
        if cells is None:
            verdicts = first_failures(filters, batch, self.verdicts)
            is_complete = not batch.unmirrored and not verdicts.has_error()
        else:
            found = cells.get(batch.slots)
            is_complete = not batch.unmirrored and cells.complete(found)
            if is_complete:
                self._hit(len(batch) * len(filters))
            else:
                found, is_complete = self._complete(chain, cells, filters, batch, found)
            verdicts = Verdicts(found, chain.statuses)
        if len(batch) and verdicts.codes.all():
            # A class that is refused again may be so for long.
            entry.unfit = Unfit(self._validities.now, batch.slots, verdicts) if is_complete else NOT_STORED
            if is_complete and unfit is not None:
                with work.uncharged():
                    self._note_first_failing(entry.unfit, filters, batch)
            self._cache.update_size(entry)
        return verdicts

    def _note_first_failing(self, unfit: Unfit, filters: Sequence[AnyFilter], batch: NodeBatch) -> None:
        """Note which filter is the first that fails, by node, unless it is a PreFilter."""
        first = np.full(len(batch), -1, np.int8)
        for place, plugin in enumerate(filters):
            verdicts = self.verdicts(plugin, batch)
            if verdicts is not None and verdicts.of_pre_filter:
                return
            if verdicts is not None:
                first[(verdicts.codes > 0) & (first < 0)] = place
        last, of = int(first.max()), self._validities.of
        rows = [self._entry.filter_row(each) for each in filters[: last + 1]]
        unfit.first = first
        unfit.judging = [
            Judge(place, row.plugin, of[row.plugin.name], row.versions if row.outcome is None else None)
            for place, row in enumerate(rows)
        ]
        # Where each node fails before, only a PreFilter matters, because it rejects all.
        later = [each for each in filters[last + 1 :] if each.pre_filter_rejects]
        unfit.rejecting = [each for each in later if of[each.name].reads_counters]

    def _complete(
        self, chain: Row, cells: Cells, filters: Sequence[AnyFilter], batch: NodeBatch, found: Integers
    ) -> tuple[Integers, bool]:
        """Evaluate the missing cells of the chain. Return the codes of all nodes, and whether all are stored now."""
        size, missing = chain.nbytes, cells.missing(found)
        missing[list(batch.unmirrored)] = True
        positions = np.flatnonzero(missing)
        self._hit((len(batch) - len(positions)) * len(filters))
        part = batch if len(positions) == len(batch) else batch.part(positions)
        verdicts_of = self._verdicts_again if len(part) <= _FEW and part is not batch else self.verdicts
        numbers, cacheable = cacheable_codes(chain, first_failures(filters, part, verdicts_of))
        cells.store(part, numbers, cacheable)
        if chain.nbytes != size:
            self._cache.update_size(self._entry)
        if cacheable is None and not batch.unmirrored:
            return cells.get(batch.slots), True
        found = found.astype(np.int64)
        found[positions] = numbers
        return found, False

    def _verdicts_again(self, plugin: AnyFilter, part: NodeBatch) -> Verdicts | None:
        """Return a plugin's verdicts on a few nodes that have changed, and leave its row as it is.

        The plugin runs if an event concerns it. For one node, to bring the rows of 15 plugins up to date takes twice
        the time of all their filters.
        """
        validity, row = self._validities.of[plugin.name], self._entry.filter_row(plugin)
        if validity.reads_counters:
            return self.verdicts(plugin, part)
        known = self._cached(row, part) if validity.last_at <= row.as_of else None
        if known is None:
            self._miss(Miss.NODE_CHANGED, len(part))
            return run_filter(plugin, self.mirror, self._representative, part)
        return everywhere(known, part) if isinstance(known, Status) else Verdicts(known, row.statuses)

    def _chain_cells(self, chain: Row, filters: Sequence[AnyFilter], batch: NodeBatch) -> Cells | None:
        """Remove the cells of the chain that events invalidated for any of its plugins. Return None if no cell is left.

        The caller then does not build the chain in the same request. If a placement changes the counters after each
        request, a new chain would cost 0.1 ms every time without any benefit.
        """
        as_of, now, size = chain.as_of, self._validities.now, chain.nbytes
        keeps = as_of == now
        if not keeps:
            changed = self._chain_changes(filters, batch, as_of)
            drops = self._drops(filters)
            chain.as_of = now  # only now: if a plugin raises, the chain must be checked again
            chain.grow(self._validities.capacity)
            keeps = drops == chain.versions
            if changed is None or not keeps:
                keeps = False
                chain.drop(Miss.COUNTERS_CHANGED)
                chain.versions = drops
            else:
                chain.drop_some(changed, Miss.NODE_CHANGED)
        if keeps and chain.cells is None:
            chain.cells = Cells(self._validities.capacity, chain.miss)
        if chain.nbytes != size:
            self._cache.update_size(self._entry)
        return chain.cells if keeps else None

    def _chain_changes(self, filters: Sequence[AnyFilter], batch: NodeBatch, as_of: int) -> IntpArray | None:
        """Return which slots events have changed for any of the plugins, or None for all slots."""
        validities = [self._validities.of[plugin.name] for plugin in filters]
        for plugin, validity in zip(filters, validities, strict=True):
            if validity.reads_counters:
                self._bring_up_to_date(self._entry.filter_row(plugin), batch)
            if validity.all_at > as_of:
                return None
        slots = self._validities.slots_since(as_of)
        if slots is not None:
            return np.fromiter(slots, np.intp, len(slots))
        changed: BoolArray = np.zeros(self._validities.capacity, np.bool_)
        for validity in validities:
            if validity.last_at > as_of:
                changed |= validity.changed_at > as_of
        return np.flatnonzero(changed)

    def _drops(self, filters: Sequence[AnyFilter]) -> Versions:
        """Return how often the rows of plugins that read counters were dropped. A chain depends on these rows."""
        of = self._validities.of
        return tuple(self._entry.filter_row(each).drops for each in filters if of[each.name].reads_counters)

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Return the raw scores of the class's row. Missing scores are evaluated and stored."""
        if not plugin.scores_alone:
            return run_score(plugin, self.mirror, self._representative, batch)
        found = self._look_up(self._entry.score_row(plugin), batch)
        return None if isinstance(found, Status) else found.astype(np.int64, copy=False)

    def best(
        self, filters: Sequence[AnyFilter], scores: Sequence[tuple[AnyScore, int]], batch: NodeBatch
    ) -> IntpArray | None:
        """Return the best nodes by the class's ranking, which is made at the second request with the same nodes.

        None for a class that fitted nowhere last, because the chain has the reasons, too.
        """
        entry = self._entry
        if entry.unfit is not None:
            return None
        if entry.last_slots is not batch.slots or batch.unmirrored or not len(batch):
            entry.last_slots = batch.slots
            return None
        spent = self.mirror.work.spent
        try:
            best = self._ranked(self._cache.ranker(filters, scores), batch)
        except WorkLimitError:  # of scores, which are not needed if only one node fits
            best = None
        if best is None:
            self.mirror.work.spent = spent  # the caller evaluates all nodes, and is charged for that
        return best

    def _ranked(self, ranker: Ranker, batch: NodeBatch) -> IntpArray | None:
        entry, ranking = self._entry, self._entry.ranking
        request = RankRequest(self, self.mirror, self._representative, batch)
        changed = None if ranking is None else ranker.refreshed(ranking, request)
        if changed is not None:
            again = len(changed.positions)
            self._hit((len(batch.slots) - again) * ranker.own_plugins)
            self._miss(Miss.NODE_CHANGED, again * ranker.own_plugins)
        else:
            ranking = entry.ranking = ranker.made(self, batch)
        if ranking is None:
            return None
        best = ranker.best(ranking, request, changed)
        size = ranking.nbytes
        if size != ranking.counted_bytes:
            ranking.counted_bytes = size
            self._cache.update_size(entry)
        return best

    def _look_up(self, row: PluginRow, batch: NodeBatch) -> Status | Integers:
        if row.as_of == self._validities.now:  # no event since: no cell can be invalid, and no table larger
            cacheable = self._cached(row, batch)
            if cacheable is not None:
                return cacheable
        size = 0 if row.as_of == NEVER else row.nbytes
        found = self._found(row, batch)
        if row.nbytes != size:
            self._cache.update_size(self._entry)
        return found

    def _cached(self, row: Row, batch: NodeBatch) -> Status | Integers | None:
        """Return an up-to-date row's results for all nodes of the batch, or None if some are missing."""
        if row.outcome is not None:
            self._hit(len(batch))
            return row.outcome
        if row.cells is None or row.empty or batch.unmirrored:
            return None
        found = row.cells.get(batch.slots)
        if not row.cells.complete(found):
            return None
        self._hit(len(batch))
        return found

    def _found(self, row: PluginRow, batch: NodeBatch) -> Status | Integers:
        prepared = self._bring_up_to_date(row, batch)
        if row.outcome is not None:
            self._hit(len(batch))
            return row.outcome
        if row.cells is None and prepared is None:
            prepared = row.prepare(self.mirror, self._representative, batch)
        if prepared is not None and prepared[1] is None:
            self._miss(row.miss, len(batch))
            return self._settle(row, prepared[0])
        if row.cells is None:
            row.cells = Cells(self._validities.capacity, row.miss)
        return self._from_cells(row, row.cells, batch, prepared)

    def _bring_up_to_date(self, row: PluginRow, batch: NodeBatch) -> Prepared | None:
        """Drop the cells that events invalidated. Return the result of PreFilter or PreScore if it had to run."""
        validity = self._validities.of[row.plugin.name]  # raises at once for a plugin without invalidation rules
        as_of, now = row.as_of, self._validities.now
        if self._prepared_at != now:  # a state from before an event must not be used after it
            self._prepared.clear()
            self._prepared_at = now
        if as_of == now:
            return self._prepared.get(row)
        prepared = None if as_of == NEVER else self._drop_invalid(row, batch, validity)
        row.as_of = now  # only now: if a plugin raises, the row must be checked again
        if prepared is not None:
            self._prepared[row] = prepared
        return prepared

    def _drop_invalid(self, row: PluginRow, batch: NodeBatch, validity: Validity) -> Prepared | None:
        row.grow(self._validities.capacity)
        if validity.all_at > row.as_of:
            row.drop(Miss.CLUSTER_CHANGED)
        elif validity.last_at > row.as_of:
            row.drop_some((validity.changed_at > row.as_of).nonzero()[0], Miss.NODE_CHANGED)
        if not validity.reads_counters:
            return None
        prepared = row.prepare(self.mirror, self._representative, batch)
        if not counters_unchanged(row, prepared):
            row.drop(Miss.COUNTERS_CHANGED)
        return prepared

    def _from_cells(
        self, row: PluginRow, cells: Cells, batch: NodeBatch, prepared: Prepared | None
    ) -> Status | Integers:
        if row.empty:  # no cell needs a look-up: this saves 40 us
            self._miss(row.miss, len(batch) - len(batch.unmirrored))
            status, state = prepared or row.prepare(self.mirror, self._representative, batch)
            return self._settle(row, status) if state is None else self._results(row, cells, state, batch)
        found = cells.get(batch.slots)
        if not batch.unmirrored and cells.complete(found):
            self._hit(len(batch))
            return found
        missing = cells.missing(found)
        if batch.unmirrored:
            missing[list(batch.unmirrored)] = False
            self._count_misses(cells, found[missing])
            missing[list(batch.unmirrored)] = True
        else:
            self._count_misses(cells, found[missing])
        positions = np.flatnonzero(missing)
        self._hit(len(batch) - len(positions))
        part = batch.part(positions)
        status, state = prepared or row.prepare(self.mirror, self._representative, part)
        if state is None:
            return self._settle(row, status)
        numbers = self._results(row, cells, state, part)
        whole = found.astype(np.int64)
        whole[positions] = numbers
        return whole

    def _results(self, row: PluginRow, cells: Cells, state: object, part: NodeBatch) -> Int64Array:
        numbers, cacheable = row.results(state, part)
        row.versions = row.versions_of(state)
        row.empty = row.empty and not len(part)
        cells.store(part, numbers, cacheable)
        return numbers

    def _settle(self, row: Row, status: Status) -> Status:
        if status.code is not Code.ERROR:  # an error may not occur again at the next request
            row.settle(status)
        return status

    def _count_misses(self, cells: Cells, found: Integers) -> None:
        if len(found):
            for reason, number in zip(Miss, cells.reasons(found).tolist(), strict=True):
                if number:
                    self._miss(reason, number)

    def _hit(self, cells: int) -> None:
        self._hits += cells
        self._entry.hits += cells
        self._cache.statistics.hits += cells

    def _miss(self, reason: Miss, cells: int) -> None:
        self._misses += cells
        self._entry.misses += cells
        self._cache.statistics.misses[_NAMES[reason]] += cells
