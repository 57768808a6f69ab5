"""Brings the ranking of a class up to date for a decision, and finds the best nodes with it.

A decision changes one node. A visit of all plugins' rows after each decision takes 0.4 ms at 5,000 nodes, mostly in
calls with no work to do. So only the plugins that an event concerns are visited, and only for the changed nodes.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import and_
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.equivalence.groups import UNFIT, Groups, Totals
from core.equivalence.ranking import LastResult, Ranking
from core.equivalence.validity import Validities, Validity
from core.framework.evaluation import Evaluation
from core.framework.interface import PASSED, SUCCESS, AnyFilter, AnyScore, Status
from core.framework.scores import MAX_NODE_SCORE
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod

Scores: TypeAlias = Sequence[tuple[AnyScore, int]]
"""Plugins with their weights."""


class RankRequest(msgspec.Struct, frozen=True, gc=False):
    """The request: the best nodes of a batch without strangers, for the representative of a class."""

    evaluation: Evaluation
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
    """Whether, of what concerns results that depend on other nodes, only pods came, went or changed."""

    @property
    def part(self) -> NodeBatch:
        """The nodes as a batch."""
        return NodeBatch.of_slots(self.request.mirror.nodes, np.array(self.on, np.intp))

    def passes(self, plugin: AnyFilter, state: Any) -> list[bool] | None:  # noqa: ANN401  # of the plugin
        """Return for each node whether a filter passes. None: it has an error, which must not be cached."""
        found = [plugin.status_on(state, slot) for slot in self.on]
        if None not in found:
            return [status is SUCCESS for status in found]
        verdicts = plugin.filter(state, self.part)
        return None if verdicts.has_error() else (verdicts.codes == 0).tolist()

    def scores(self, plugin: AnyScore, state: Any) -> list[int]:  # noqa: ANN401  # of the plugin
        """Return the normalised score of each node, by a plugin that normalises alone."""
        scores = [plugin.score_on(state, slot) for slot in self.on]
        if None not in scores:
            return scores  # type: ignore[return-value]  # likewise
        found: list[int] = plugin.normalize(plugin.score(state, self.part)).tolist()
        return found


class _Filter(NamedTuple):
    plugin: AnyFilter
    validity: Validity


class _Score(NamedTuple):
    plugin: AnyScore
    weight: int
    validity: Validity
    is_fixed: bool
    """Whether the raw score of a node depends on that node alone. Then its state is a FixedScores."""
    lasts: bool
    """Whether its state lasts until an event of one of its rules."""


class FixedScores:
    """Raw scores by position, which no pod changes: the traits of nodes for a plugin without counters."""

    def __init__(self, raw: Int64Array) -> None:
        self.raw: Final = raw

    def of_all(self, _batch: NodeBatch) -> Sequence[Int64Array]:
        """Return the scores."""
        return (self.raw,)

    def on(self, position: int, _slot: int) -> Sequence[int]:
        """Return the score at a position."""
        return (self.raw.item(position),)

    def scores(self, traits: Sequence[Int64Array], _nodes: Int64Array) -> Int64Array:
        """Return the scores of groups."""
        return traits[0]


_Scoring: TypeAlias = Sequence[tuple[_Score, Any]]
"""The other scores of which nodes differ, with their states, which may be Traits."""


class Ranker:
    """Makes rankings for the plugins of one profile, and finds the best nodes with them.

    Filters that read counters run at each decision, for the changed nodes alone where they say that no other node's
    result has changed. Scores that depend on other nodes are compared by group.
    """

    def __init__(self, filters: Sequence[AnyFilter], scores: Scores, validities: Validities) -> None:
        self._profile = (filters, scores)
        self._validities = validities
        each_filter = [_Filter(plugin, validities.of[plugin.name]) for plugin in filters]
        each_score = [_score_of(plugin, weight, validities.of[plugin.name]) for plugin, weight in scores]
        self._own_filters = [each for each in each_filter if not each.validity.reads_counters]
        self._counting_filters = [each for each in each_filter if each.validity.reads_counters]
        self._own_scores = [each for each in each_score if each.is_fixed and each.plugin.normalizes_alone]
        self._own_validities = [each.validity for each in self._own_filters]
        self._own_validities += [each.validity for each in self._own_scores]
        self._other_scores = [each for each in each_score if not (each.is_fixed and each.plugin.normalizes_alone)]
        self._counting_validities = [each.validity for each in self._counting_filters]
        self._counting_validities += [each.validity for each in self._other_scores]
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
        by_pods = validities.others_at <= as_of or all(each.others_at <= as_of for each in self._counting_validities)
        changed = Changed(request, positions, on, slots, by_pods)
        if positions:
            if not self._own_filters_again(ranking, changed):
                return None
            self._own_scores_again(ranking, changed)
        ranking.as_of = validities.now  # only now: if a plugin raises, the nodes must be evaluated again
        return changed

    def best(self, ranking: Ranking, request: RankRequest, changed: Changed | None) -> IntpArray | None:
        """Return the positions of the best nodes by an up-to-date ranking. None: see `Evaluation.best`.

        `changed` is the result of `refreshed`. None: the ranking is new.
        """
        groups, ranking.groups = ranking.groups, None  # until all is up to date
        there = changed if changed is not None and changed.by_pods and groups is not None else None
        only_there = self._filter_again(ranking, request, there)
        if only_there is None:
            return None
        if changed is None or ranking.has_too_many_groups:  # a class that is seldom requested needs no groups
            return self._best_of_all(ranking, request)
        traits_stay = self._score_again(ranking, request, there)
        states = [(each, ranking.states[each.plugin.name].result) for each in self._other_scores]
        scoring = [(each, state) for each, state in states if state is not None]
        if groups is None or there is None or not traits_stay or not _moved(ranking, groups, there, scoring):
            groups, only_there = _grouped(request.batch, scoring), False
        if groups is None:
            ranking.has_too_many_groups = True
            return None
        if not only_there:
            groups.fill(self._values(ranking))
        ranking.groups = groups
        return _best_of_groups(groups, scoring)

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
        for plugin, weight, validity, *_ in self._own_scores:
            if validity.last_at <= ranking.as_of:
                continue
            status, state = ranking.score_states.get(plugin.name) or plugin.pre_score(mirror, pod, changed.part)
            if plugin.state_lasts:
                ranking.score_states[plugin.name] = status, state
            scores = None if state is None else changed.scores(plugin, state)
            ranking.rescore(plugin.name, weight, changed.positions, scores)

    def _filter_again(self, ranking: Ranking, request: RankRequest, there: Changed | None) -> bool | None:
        """Bring the results of the other filters up to date. Return whether they have changed only `there`.

        None: one fails everywhere, or has an error, which must not be cached.
        """
        only_there = True
        for plugin, validity in self._counting_filters:
            status, state = _prepared(ranking, request, plugin)
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
                passes, passing = last.result, there.passes(plugin, state)
                if passing is None:  # `groups` are gone, so the next request judges all nodes again
                    return None
                _put(passes, there.positions, passing)
            else:
                verdicts = plugin.filter(state, request.batch)
                passes, only_there = verdicts.codes == 0, False
                if verdicts.has_error():  # likewise
                    return None
            ranking.passed[plugin.name] = LastResult(self._validities.now, versions, passes)
        return only_there

    def _score_again(self, ranking: Ranking, request: RankRequest, there: Changed | None) -> bool:
        """Bring up to date what the other scores follow from. Return whether only nodes `there` have other traits."""
        stay = there is not None
        for each in self._other_scores:
            plugin, last = each.plugin, ranking.states.get(each.plugin.name)
            if last is not None and each.lasts and last.at >= each.validity.last_at:
                continue
            epoch = plugin.epoch(request.mirror)
            if last is not None and epoch is not None and last.versions == (epoch,):
                state = last.result
            else:
                _, state = plugin.pre_score(request.mirror, request.pod, request.batch)
            if state is not None and each.is_fixed:
                raw = plugin.score(state, request.batch)
                state = None if raw.min() == raw.max() else FixedScores(raw)
            ranking.states[plugin.name] = LastResult(self._validities.now, (epoch,), state)
            earlier = None if last is None else last.result
            if there is not None and stay and not (state is None and earlier is None):
                known = state is not None and earlier is not None and plugin.by_traits
                stay = known and state.follows(earlier, there.slots)
        return stay

    def _values(self, ranking: Ranking) -> Totals:
        """Return the sums of the own scores, and UNFIT where a filter fails."""
        fits = ranking.fits
        for last in ranking.passed.values():
            fits = fits & last.result
        values = ranking.sums.astype(self._of_total)
        values[~fits] = UNFIT
        return values

    def _best_of_all(self, ranking: Ranking, request: RankRequest) -> IntpArray | None:
        """Return the best nodes by a comparison of all that fit, or None if no node fits."""
        values, batch = self._values(ranking), request.batch
        fitting = (values != UNFIT).nonzero()[0]
        if len(fitting) <= 1:  # no score is needed
            return fitting if len(fitting) else None
        part, totals = batch if len(fitting) == len(batch) else batch.part(fitting), values.take(fitting)
        for each in self._other_scores:
            raw = request.evaluation.raw_scores(each.plugin, part)
            if raw is not None:
                totals = totals + each.weight * each.plugin.normalize(raw)
        best: IntpArray = fitting.compress(totals == totals.max())
        return best


def _score_of(plugin: AnyScore, weight: int, validity: Validity) -> _Score:
    is_fixed = plugin.scores_alone and not validity.reads_counters
    return _Score(plugin, weight, validity, is_fixed, is_fixed or plugin.state_lasts)


def _prepared(ranking: Ranking, request: RankRequest, plugin: AnyFilter) -> tuple[Status, Any]:
    """Return the result of a PreFilter that reads counters: the last one, if it is still right."""
    epoch, last = plugin.epoch(request.mirror), ranking.counting_states.get(plugin.name)
    if last is not None and last[0] == epoch:
        return last[1]
    found: tuple[Status, Any] = plugin.pre_filter(request.mirror, request.pod)
    if epoch is None or epoch != plugin.epoch(request.mirror):
        return found  # nobody updates some of its counters
    if found[1] is None or plugin.is_small(found[1]):
        ranking.counting_states[plugin.name] = epoch, found
    return found


def _moved(ranking: Ranking, groups: Groups, there: Changed, scoring: _Scoring) -> bool:
    """Put the changed nodes into their groups. False: there are too many groups now."""
    for position, slot in zip(there.positions, there.on, strict=True):
        traits = tuple([trait for _, state in scoring for trait in state.on(position, slot)])
        value = ranking.sums.item(position) if ranking.fits_at(position) else UNFIT
        if not groups.move(position, value, traits):
            return False
    return True


def _grouped(batch: NodeBatch, scoring: _Scoring) -> Groups | None:
    """Group all nodes. None: a plugin does not say by what they differ, or there are too many groups."""
    traits = []
    for each, state in scoring:
        found = state.of_all(batch) if each.is_fixed or each.plugin.by_traits else None
        if found is None:
            return None
        traits.append(found)
    return Groups.of(traits, len(batch))


def _best_of_groups(groups: Groups, scoring: _Scoring) -> IntpArray | None:
    """Return the best nodes, or None if no node fits. Scores are normalised by those of the nodes that fit."""
    among = groups.nodes.nonzero()[0]
    if len(among) <= 1:
        return groups.best(among) if len(among) else None
    totals = groups.tops.take(among)
    for (each, state), traits in zip(scoring, groups.traits, strict=True):
        totals += each.weight * each.plugin.normalize(state.scores(traits, groups.nodes).take(among))
    return groups.best(among[totals == totals.item(totals.argmax())])  # a reduction takes ten times as long as argmax


def _put(array: NDArray[Any], positions: Sequence[int], values: Iterable[object]) -> None:
    """Set an array at some positions. Of few, one after the other takes less time than all at once."""
    for position, value in zip(positions, values, strict=True):
        array[position] = value
