"""Brings the ranking of a class up to date for a decision, and finds the best nodes with it.

A decision changes one node. A visit of all plugins' rows after each decision takes 0.4 ms at 5,000 nodes, mostly in
calls with no work to do. So only the plugins that an event concerns are visited, and only for the changed nodes.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, repeat
from operator import and_
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.equivalence.ranking import NO_SLOTS, UNFIT, LastResult, Range, Ranking, Totals
from core.equivalence.validity import Validities, Validity
from core.framework.evaluation import Evaluation
from core.framework.interface import AnyFilter, AnyScore, Code
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod

PASSED: Final = (Code.SUCCESS, Code.SKIP)
Scores: TypeAlias = Sequence[tuple[AnyScore, int]]
"""Plugins with their weights."""


class RankRequest(msgspec.Struct, frozen=True, gc=False):
    """The request: the best nodes of a batch without strangers, for the representative of a class."""

    mirror: ClusterMirror
    pod: Pod
    batch: NodeBatch


class Changed(msgspec.Struct, frozen=True, gc=False):
    """The ranked nodes with changes since the last request, by position, and their slots."""

    request: RankRequest
    positions: Sequence[int]
    on: Sequence[int]
    slots: Collection[int]
    """The slots with changes, also of nodes that are not ranked."""
    by_pods: bool
    """Whether pods came, went or changed, and nothing else happened."""

    @property
    def part(self) -> NodeBatch:
        """The nodes as a batch."""
        return NodeBatch.of_slots(self.request.mirror.nodes, np.array(self.on, np.intp))

    def passes(self, plugin: AnyFilter, state: Any) -> list[bool] | None:  # noqa: ANN401  # of the plugin
        """Return for each node whether a filter passes. None: it has an error, which must not be cached."""
        passes = [plugin.passes_on(state, slot) for slot in self.on]
        if None not in passes:
            return passes  # type: ignore[return-value]  # a second list would take as long as a look-up
        verdicts = plugin.filter(state, self.part)
        return None if verdicts.has_error() else (verdicts.codes == 0).tolist()

    def scores(self, plugin: AnyScore, state: Any, *, normalized: bool) -> list[int]:  # noqa: ANN401  # of the plugin
        """Return the raw score of each node, or the normalised one, by a plugin that normalises alone."""
        scores = [plugin.score_on(state, slot) for slot in self.on]
        if None not in scores:
            return scores  # type: ignore[return-value]  # likewise
        raw = plugin.score(state, self.part)
        found: list[int] = (plugin.normalize(raw) if normalized else raw).tolist()
        return found


class _Filter(NamedTuple):
    plugin: AnyFilter
    validity: Validity


class _Score(NamedTuple):
    plugin: AnyScore
    weight: int
    validity: Validity

    @property
    def is_own(self) -> bool:
        """Whether the normalised score of a node depends on that node alone."""
        return self.plugin.scores_alone and self.plugin.normalizes_alone and not self.validity.reads_counters


class Ranker:
    """Makes rankings for the plugins of one profile, and finds the best nodes with them.

    Plugins that read counters run at each decision, for the changed nodes alone where they say that no other node's
    result has changed. Plugins whose score of a node depends on other nodes run for all nodes.
    """

    def __init__(self, filters: Sequence[AnyFilter], scores: Scores, validities: Validities) -> None:
        self._profile = (filters, scores)
        self._validities = validities
        each_filter = [_Filter(plugin, validities.of[plugin.name]) for plugin in filters]
        each_score = [_Score(plugin, weight, validities.of[plugin.name]) for plugin, weight in scores]
        self._own_filters = [each for each in each_filter if not each.validity.reads_counters]
        self._counting_filters = [each for each in each_filter if each.validity.reads_counters]
        self._own_scores = [each for each in each_score if each.is_own]
        self._own_validities = [each.validity for each in self._own_filters]
        self._own_validities += [each.validity for each in self._own_scores]
        self._other_scores = [each for each in each_score if not each.is_own]
        self._alone = [each for each in self._other_scores if each.plugin.scores_alone]
        self._together = [each for each in self._other_scores if not each.plugin.scores_alone]
        highest = MAX_NODE_SCORE * sum(weight for _, weight in scores)  # kube-scheduler takes any int32 as a weight
        self._of_total: type[np.signedinteger[Any]] = np.int32 if highest < -UNFIT else np.int64
        self.own_plugins: Final = len(self._own_validities)
        """How many filters and scores have their results in a ranking."""

    def ranks(self, filters: Sequence[AnyFilter], scores: Scores) -> bool:
        """Return whether this ranker is for these plugins."""
        return self._profile[0] is filters and self._profile[1] is scores

    def made(self, evaluation: Evaluation, batch: NodeBatch) -> Ranking | None:
        """Return the ranking of a class from its evaluation, or None if it has an error, which must not be cached."""
        now = self._validities.now
        ranking = Ranking(batch.slots)
        for plugin in self._own_filters:
            verdicts = evaluation.verdicts(plugin.plugin, batch)
            if verdicts is None:
                continue
            if verdicts.has_error():
                return None
            ranking.fits &= verdicts.codes == 0
        for scored in self._own_scores:
            raw = evaluation.raw_scores(scored.plugin, batch)
            if raw is not None:
                scores = scored.plugin.normalize(raw)
                ranking.own[scored.plugin.name] = scores.astype(np.uint8)
                ranking.sums += scored.weight * scores
        ranking.as_of = now
        return ranking

    def refreshed(self, ranking: Ranking, request: RankRequest) -> Changed | None:
        """Update the own results of a ranking, and return which nodes were evaluated again.

        Returns None if the ranking must be rebuilt: for other nodes, or if too many or all nodes have changed.
        """
        as_of, validities = ranking.as_of, self._validities
        if ranking.slots is not request.batch.slots:
            return None
        slots = validities.slots_since(as_of)
        if slots is None or (validities.all_at > as_of and any(each.all_at > as_of for each in self._own_validities)):
            return None
        positions = request.batch.positions_of(slots)
        on = [*map(ranking.slots.item, positions)]
        changed = Changed(request, positions, on, slots, validities.others_at <= as_of)
        if positions:
            if not self._own_filters_again(ranking, changed):
                return None
            self._own_scores_again(ranking, changed)
        ranking.as_of = validities.now  # only now: if a plugin raises, the nodes must be evaluated again
        return changed

    def best(self, ranking: Ranking, request: RankRequest, changed: Changed | None) -> IntpArray | None:
        """Return the positions of the best nodes by an up-to-date ranking, or None if no node fits.

        `changed` is the result of `refreshed`. None: the ranking is new.
        """
        totals, ranking.totals = ranking.totals, None  # until all is up to date
        there = changed if changed is not None and changed.by_pods and totals is not None else None
        before = {} if there is None or ranking.ranges is None else ranking.raw_at(there.positions)
        only_there = self._filter_again(ranking, request, there)
        if only_there is None:
            return None
        for each in self._alone:
            last = ranking.raw.get(each.plugin.name)
            if last is not None and last.at < each.validity.last_at:
                last = None
            if last is None or each.validity.reads_counters:
                only_there = self._score_again(each, last, ranking, request, there) and only_there
        if there is None or totals is None or not only_there:
            totals = self._added_up(ranking, with_ranges=False)
        elif self._amended(ranking, totals, there.positions, before):
            ranking.totals = totals
            best = ranking.best_but(there.positions) if len(ranking.skipping) == len(self._together) else None
            if best is not None:
                return best
        else:
            totals = self._added_up(ranking, with_ranges=True)
        totals = self._with_the_rest(ranking, request, totals)
        highest = ranking.highest = int(np.maximum.reduce(totals))  # 0.7 us less than `max`
        ranking.best = NO_SLOTS if highest == UNFIT else (totals == highest).nonzero()[0]
        return ranking.best if len(ranking.best) else None

    def _own_filters_again(self, ranking: Ranking, changed: Changed) -> bool:
        """Run own filters again that may have changed on these nodes. False: see `refreshed`."""
        as_of, positions, request = ranking.as_of, changed.positions, changed.request
        filters = [each.plugin for each in self._own_filters if each.validity.last_at > as_of]
        if filters and not all(map(ranking.fits.item, positions)):  # the ranking does not record which filter failed
            filters = [each.plugin for each in self._own_filters]
        fits = [True] * len(positions)
        for plugin in filters:
            status, state = ranking.filter_states.get(plugin.name) or plugin.pre_filter(request.mirror, request.pod)
            if state is None:
                if status.code not in PASSED:
                    return False
                continue
            if plugin.state_lasts:
                ranking.filter_states[plugin.name] = status, state
            passes = changed.passes(plugin, state)
            if passes is None:
                return False
            fits = [*map(and_, fits, passes)]
        if filters:
            _put(ranking.fits, positions, fits)
        return True

    def _own_scores_again(self, ranking: Ranking, changed: Changed) -> None:
        """Run own scores again that may have changed on these nodes."""
        mirror, pod = changed.request.mirror, changed.request.pod
        for plugin, weight, validity in self._own_scores:
            if validity.last_at <= ranking.as_of:
                continue
            status, state = ranking.score_states.get(plugin.name) or plugin.pre_score(mirror, pod, changed.part)
            if plugin.state_lasts:
                ranking.score_states[plugin.name] = status, state
            scores = None if state is None else changed.scores(plugin, state, normalized=True)
            ranking.rescore(plugin.name, weight, changed.positions, scores)

    def _filter_again(self, ranking: Ranking, request: RankRequest, there: Changed | None) -> bool | None:
        """Bring the results of the other filters up to date. Return whether they have changed only `there`.

        None: one fails everywhere, or has an error, which must not be cached.
        """
        only_there = True
        for plugin, validity in self._counting_filters:
            status, state = plugin.pre_filter(request.mirror, request.pod)
            last = ranking.passed.get(plugin.name)
            if state is None:
                if status.code not in PASSED:
                    return None
                if last is not None:
                    del ranking.passed[plugin.name]
                    only_there = False
                continue
            versions = plugin.filter_versions(state)
            if last is not None and last.at < validity.last_at:
                last = None
            if last is not None and last.versions == versions:
                continue
            if there is not None and last is not None and plugin.passes_alike(state, last.versions, there.slots):
                passes, passing = last.by_position, there.passes(plugin, state)
                if passing is None:  # `totals` are gone, so the next request judges all nodes again
                    return None
                _put(passes, there.positions, passing)
            else:
                verdicts = plugin.filter(state, request.batch)
                passes, only_there = verdicts.codes == 0, False
                if verdicts.has_error():  # likewise
                    return None
            ranking.passed[plugin.name] = LastResult(self._validities.now, versions, passes)
        return only_there

    def _score_again(
        self,
        score: _Score,
        last: LastResult[Int64Array | None] | None,
        ranking: Ranking,
        request: RankRequest,
        there: Changed | None,
    ) -> bool:
        """Bring the raw scores of a plugin up to date. Return whether they have changed only `there`.

        `last` are the last ones, but for those that counters have changed. None: there are none.
        """
        plugin, validity = score.plugin, score.validity
        _, state = plugin.pre_score(request.mirror, request.pod, request.batch)
        versions = () if state is None else plugin.score_versions(state)
        if last is not None and last.versions == versions:
            return True
        raw, moved = None, None
        if last is not None and there is not None and state is not None and last.state is not None:
            raw = last.by_position
            moved = None if raw is None else plugin.rescore(state, last.state, raw, there.slots, request.batch)
        if moved is None or raw is None or there is None:
            raw = None if state is None else plugin.score(state, request.batch)
            if raw is not None and not validity.reads_counters and raw.min() == raw.max():
                raw = None
        else:
            _put(raw, there.positions, there.scores(plugin, state, normalized=False))
        ranking.raw[plugin.name] = LastResult(self._validities.now, versions, raw, state)
        return moved is False

    def _amended(
        self, ranking: Ranking, totals: Totals, positions: Sequence[int], before: Mapping[str, Sequence[int]]
    ) -> bool:
        """Add up the totals at some positions again. False: a range has changed, so all others may differ, too.

        `before` has the raw scores there that are in `ranges`. A normalised score follows from the raw score and the
        range of all.
        """
        ranges = ranking.ranges
        if ranges is None:
            return False
        raw = ranking.raw_at(positions)
        if ranges.keys() != raw.keys():
            return False
        did_fit = [totals.item(position) != UNFIT for position in positions]
        fits = [*map(ranking.fits_at, positions)]
        fitting = [*compress(positions, fits)]
        sums = [*map(ranking.sums.item, fitting)]
        for plugin, weight, _ in self._other_scores:
            if plugin.name not in raw:
                continue
            among, now = ranges[plugin.name], [*compress(raw[plugin.name], fits)]  # others may be beyond the range
            if not among.stays(compress(before[plugin.name], did_fit), now):
                return False
            scores = plugin.normalize(np.array((among.lowest, among.highest, *now))).tolist()[2:]
            sums = [total + weight * score for total, score in zip(sums, scores, strict=True)]
        _put(totals, positions, repeat(UNFIT, len(positions)))
        _put(totals, fitting, sums)
        return True

    def _added_up(self, ranking: Ranking, *, with_ranges: bool) -> Totals:
        """Return the totals of all nodes but for the scores of `_with_the_rest`, and keep them."""
        fits = ranking.fits
        for last in ranking.passed.values():
            fits = fits & last.by_position
        fitting = None if fits.all() else fits.nonzero()[0]
        totals = np.full(len(fits), UNFIT, self._of_total)
        if fitting is not None and len(fitting) <= 1:  # no score is needed
            totals[fitting] = 0
            return totals
        sums = ranking.sums if fitting is None else ranking.sums.take(fitting)
        ranges: dict[str, Range] = {}
        for plugin, weight, _ in self._alone:
            raw = ranking.raw[plugin.name].by_position
            if raw is not None:
                raw = raw if fitting is None else raw.take(fitting)
                if with_ranges:
                    ranges[plugin.name] = Range(raw)
                sums = sums + weight * plugin.normalize(raw)
        totals[slice(None) if fitting is None else fitting] = sums
        ranking.ranges = ranges if with_ranges else None
        ranking.totals = totals
        return totals

    def _with_the_rest(self, ranking: Ranking, request: RankRequest, totals: Totals) -> Totals:
        """Return totals with the scores of plugins that compare all nodes that fit. One pod may change all of these."""
        comparing = [each for each in self._together if each.plugin.name not in ranking.skipping]
        fits = totals != UNFIT if comparing else NO_SLOTS
        number = int(np.count_nonzero(fits))
        if number <= 1:
            return totals
        fitting = fits.nonzero()[0] if number < len(totals) else None
        part, sums = (request.batch, totals) if fitting is None else (request.batch.part(fitting), totals.take(fitting))
        for plugin, weight, validity in comparing:
            last = ranking.together.get(plugin.name) if fitting is None else None
            if last is None or last.at < validity.last_at:
                _, state = plugin.pre_score(request.mirror, request.pod, part)
                if state is None:
                    ranking.skipping.add(plugin.name)
                    continue
                last = LastResult(self._validities.now, (), None, state)
                if fitting is None and plugin.state_lasts:
                    ranking.together[plugin.name] = last
            raw = plugin.score(last.state, request.batch)
            sums = sums + weight * plugin.normalize(raw if fitting is None else raw.take(fitting))
        if fitting is None:
            return sums
        found = totals.astype(np.int64)
        found[fitting] = sums
        return found


def _put(array: NDArray[Any], positions: Sequence[int], values: Iterable[object]) -> None:
    """Set an array at some positions. Of few, one after the other takes less time than all at once."""
    for position, value in zip(positions, values, strict=True):
        array[position] = value
