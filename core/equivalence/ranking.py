"""When results of plugins become invalid: one store per event, one comparison per request. The best nodes for a class.

The best nodes follow from two cached arrays: which nodes fit, and the sum of their own scores. A decision changes one
node. A visit of all plugins' rows after each decision takes 0.4 ms at 5,000 nodes, mostly in calls with no work to do.
A ranking visits only the plugins that the event concerns, and only the changed nodes.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from core.events import Kind
from core.framework.evaluation import Evaluation
from core.framework.interface import AnyFilter, AnyScore, Code, Plugin, Verdicts, Versions
from core.framework.invalidation import NODE_LIFE, InvalidationRule, Operation, Scope
from core.mirror.changes import NamespaceChange, NodeChange, ObjectChange, PodChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod

ClusterChange: TypeAlias = NodeChange | PodChange | NamespaceChange | ObjectChange

_NEVER: Final = 0
_REMEMBERED_CHANGES: Final = 256
"""After more changes than this, a comparison of all nodes costs no more."""


class Validity:
    """Times at which the results of one plugin became invalid, by slot and for all nodes."""

    __slots__ = ("all_at", "changed_at", "counts", "last_at", "reads_counters")

    def __init__(self, capacity: int) -> None:
        self.changed_at = _times(capacity)
        self.all_at = _NEVER
        self.last_at = _NEVER  # the latest time of any slot or of all
        self.reads_counters = False  # whether the plugin also reads counters, which have versions
        self.counts: Counter[tuple[str, str]] = Counter()  # (kind, operation) -> invalidations

    def grow(self, capacity: int) -> None:
        """Extend to `capacity` slots."""
        if capacity > len(self.changed_at):
            self.changed_at = np.concatenate((self.changed_at, _times(capacity - len(self.changed_at))))


class Validities:
    """The validity of every plugin. Changes advance it by the rules that the plugins declare."""

    def __init__(self, plugins: Iterable[Plugin], capacity: int) -> None:
        self.now = 1
        """Number of the last change. A result computed now is valid until the next change."""
        self.all_at = _NEVER
        """The latest time at which all results of any plugin became invalid."""
        self.capacity = capacity
        """Number of slots of every validity."""
        self._slots: deque[int] = deque(maxlen=_REMEMBERED_CHANGES)  # NO_SLOT: the change made nothing invalid
        self.of: dict[str, Validity] = {}
        self._rules: dict[tuple[Kind, Operation], list[tuple[Validity, InvalidationRule]]] = defaultdict(list)
        for plugin in plugins:
            validity = self.of.setdefault(plugin.name, Validity(capacity))
            for rule in (*NODE_LIFE, *plugin.invalidated_by):
                if rule.scope is Scope.COUNTERS:
                    validity.reads_counters = True
                else:
                    for operation in rule.operations:
                        self._rules[rule.kind, operation].append((validity, rule))

    def changed(self, change: ClusterChange, capacity: int) -> None:
        """Apply a change of a mirror with `capacity` slots."""
        self.now += 1
        if capacity > self.capacity:
            self.capacity = capacity
            for validity in self.of.values():
                validity.grow(capacity)
        kind, slot = _subject(change)
        operation = operation_of(change.before, change.after)
        touched = NO_SLOT
        for validity, rule in self._rules.get((kind, operation), ()):
            if rule.touches(change.before, change.after):
                self._invalidate(validity, rule.scope, slot)
                validity.counts[kind.__name__, operation.value] += 1
                touched = slot
        self._slots.append(touched)

    def slots_since(self, as_of: int) -> Collection[int] | None:
        """Return the slots with a cell invalidated after a time, or None if the time is too long ago."""
        changes = self.now - as_of
        if changes > len(self._slots):
            return None
        return {slot for slot in islice(reversed(self._slots), changes) if slot != NO_SLOT}

    def _invalidate(self, validity: Validity, scope: Scope, slot: int) -> None:
        validity.last_at = self.now
        if scope is Scope.ALL:
            validity.all_at = self.all_at = self.now
        elif slot != NO_SLOT:
            validity.changed_at[slot] = self.now


def operation_of(before: object | None, after: object | None) -> Operation:
    """Return the operation for the states of an object before and after."""
    if before is None:
        return Operation.ADD
    return Operation.DELETE if after is None else Operation.UPDATE


def _times(length: int) -> Int64Array:
    return np.full(length, _NEVER, np.int64)


def _subject(change: ClusterChange) -> tuple[Kind, int]:
    if isinstance(change, PodChange):
        return Pod, change.slot
    if isinstance(change, NodeChange):
        return Node, change.slot
    if isinstance(change, NamespaceChange):
        return Namespace, NO_SLOT
    return change.kind, change.slot


Scores: TypeAlias = Sequence[tuple[AnyScore, int]]
"""Plugins with their weights."""

Scores8: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
"""Normalised scores, 0 to 100."""

_ABSENT: Final = -1
_Result = TypeVar("_Result")


class RankRequest(NamedTuple):
    """The request: the best nodes of a batch without strangers, for the representative of a class."""

    mirror: ClusterMirror
    pod: Pod
    batch: NodeBatch


class _LastResult(NamedTuple, Generic[_Result]):
    """The results of a plugin at a time of the cache, with the versions of its counters."""

    at: int
    versions: Versions
    by_position: _Result


class Ranking:
    """The cached ranking of one class for one order of nodes, by position.

    A result is a node's *own* if it does not depend on counters or on other nodes. `fits` is true where all filters
    with own verdicts pass. `own` has the normalised own scores, 0 to 100, by plugin, without plugins that score no
    node. `sums` is their weighted sum. All of these were valid at the time `as_of` of the cache.

    `passed` and `raw` have the last results of each other plugin. Raw scores of None mean that all nodes have the same
    score, which does not change the order.
    """

    __slots__ = ("as_of", "fits", "own", "passed", "places", "raw", "slots", "sums")

    def __init__(self, slots: IntpArray, capacity: int) -> None:
        """Begin for nodes with these slots, all below `capacity`. At first every node fits and none has a score."""
        self.as_of = NEVER
        self.slots = slots
        self.places = np.full(capacity, _ABSENT, np.int32)  # slot -> position
        self.places[slots] = np.arange(len(slots), dtype=np.int32)
        self.fits: BoolArray = np.ones(len(slots), np.bool_)
        self.own: dict[str, Scores8] = {}
        self.sums: Int64Array = np.zeros(len(slots), np.int64)
        self.passed: dict[str, _LastResult[BoolArray]] = {}
        self.raw: dict[str, _LastResult[Int64Array | None]] = {}

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes, without the slots, which belong to the mirror."""
        raw = sum(last.by_position.nbytes for last in self.raw.values() if last.by_position is not None)
        of_a_byte = 1 + len(self.own) + len(self.passed)  # arrays with a byte a node; `fits` is the first
        return self.places.nbytes + self.sums.nbytes + of_a_byte * len(self.slots) + raw

    def positions_of(self, slots: Collection[int]) -> IntpArray:
        """Return the positions of the ranked ones among these slots."""
        found = {int(self.places[slot]) for slot in slots if slot < len(self.places)}
        return np.array(sorted(found - {_ABSENT}), np.intp)

    def rescore(self, plugin: str, weight: int, positions: IntpArray, scores: Int64Array | None) -> None:
        """Update a plugin's normalised scores at some positions. None means that it scores no node there."""
        own = self.own.get(plugin)
        if own is None:
            if scores is None:
                return
            own = self.own[plugin] = np.zeros(len(self.slots), np.uint8)
        now = np.zeros(len(positions), np.int64) if scores is None else scores
        self.sums[positions] += weight * (now - own[positions])
        own[positions] = now


NO_SLOTS: Final[IntpArray] = np.empty(0, np.intp)
"""The slots of a class without a decision."""
NEVER: Final = -1
"""Time of a row or of a ranking without results."""
NO_RANKING: Final[Ranking | None] = None
"""The ranking of a class that was never decided for twice with the same nodes in the same order."""


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

    Plugins that read counters run at each decision. So do plugins whose score of a node depends on other nodes.
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

    def ranks(self, filters: Sequence[AnyFilter], scores: Scores) -> bool:
        """Return whether this ranker is for these plugins."""
        return self._profile[0] is filters and self._profile[1] is scores

    @property
    def own_plugins(self) -> int:
        """How many filters and scores have their results in a ranking."""
        return len(self._own_filters) + len(self._own_scores)

    def made(self, evaluation: Evaluation, batch: NodeBatch) -> Ranking | None:
        """Return the ranking of a class from its evaluation, or None if it has an error, which must not be cached."""
        now = self._validities.now
        ranking = Ranking(batch.slots, self._validities.capacity)
        for plugin in self._own_filters:
            verdicts = evaluation.verdicts(plugin.plugin, batch)
            if verdicts is None:
                continue
            if _has_error(verdicts):
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

    def refreshed(self, ranking: Ranking, request: RankRequest) -> int | None:
        """Update a ranking, and return how many nodes were evaluated again.

        Returns None if the ranking must be rebuilt: for other nodes, or if too many or all nodes have changed.
        """
        as_of, now = ranking.as_of, self._validities.now
        if ranking.slots is not request.batch.slots:
            return None
        if as_of == now:
            return 0
        slots = self._validities.slots_since(as_of)
        if slots is None:
            return None
        if self._validities.all_at > as_of and any(each.all_at > as_of for each in self._own_validities):
            return None
        filters = [each.plugin for each in self._own_filters if each.validity.last_at > as_of]
        scores = [each for each in self._own_scores if each.validity.last_at > as_of]
        positions = ranking.positions_of(slots)
        if len(positions) and (filters or scores):
            part = request._replace(batch=request.batch.part(positions))
            if filters and not self._judge_again(ranking, filters, part, positions):
                return None
            for each in scores:
                ranking.rescore(each.plugin.name, each.weight, positions, _normalised(each.plugin, part))
        ranking.as_of = now  # only now: if a plugin raises, the nodes must be evaluated again
        return len(positions)

    def best(self, ranking: Ranking, request: RankRequest) -> IntpArray | None:
        """Return the positions of the best nodes by an up-to-date ranking, or None if no node fits."""
        fits = self._fitting(ranking, request)
        if fits is None:
            return None
        fitting = None if fits.all() else fits.nonzero()[0]
        if fitting is not None and len(fitting) <= 1:
            return fitting if len(fitting) else None
        totals = ranking.sums if fitting is None else ranking.sums.take(fitting)
        for each in self._other_scores:
            raw = self._raw_scores(each, ranking, request, fitting)
            if raw is not None:
                totals = totals + each.weight * each.plugin.normalize(raw)
        best: IntpArray = (totals == totals.max()).nonzero()[0]
        return best if fitting is None else fitting.take(best)

    def _judge_again(
        self, ranking: Ranking, filters: Sequence[AnyFilter], part: RankRequest, positions: IntpArray
    ) -> bool:
        """Run filters again whose verdicts on these nodes may have changed. False: see `refreshed`."""
        if not ranking.fits[positions].all():  # the ranking does not record which filter failed
            filters = [each.plugin for each in self._own_filters]
        fits: BoolArray = np.ones(len(positions), np.bool_)
        for plugin in filters:
            status, state = plugin.pre_filter(part.mirror, part.pod)
            if state is None:
                if status.code not in {Code.SUCCESS, Code.SKIP}:
                    return False
                continue
            verdicts = plugin.filter(state, part.batch)
            if _has_error(verdicts):
                return False
            fits &= verdicts.codes == 0
        ranking.fits[positions] = fits
        return True

    def _fitting(self, ranking: Ranking, request: RankRequest) -> BoolArray | None:
        """Return where all filters pass, or None if one fails everywhere or has an error, which must not be cached."""
        fits = ranking.fits
        for plugin, validity in self._counting_filters:
            status, state = plugin.pre_filter(request.mirror, request.pod)
            if state is None:
                if status.code not in {Code.SUCCESS, Code.SKIP}:
                    return None
                continue
            versions, last = plugin.filter_versions(state), ranking.passed.get(plugin.name)
            if last is None or last.versions != versions or last.at < validity.last_at:
                verdicts = plugin.filter(state, request.batch)
                if _has_error(verdicts):
                    return None
                last = _LastResult(self._validities.now, versions, verdicts.codes == 0)
                ranking.passed[plugin.name] = last
            fits = fits & last.by_position
        return fits

    def _raw_scores(
        self, score: _Score, ranking: Ranking, request: RankRequest, fitting: IntpArray | None
    ) -> Int64Array | None:
        """Return a plugin's raw scores of the fitting nodes (None: all nodes), or None if all scores are equal."""
        if score.plugin.scores_alone:
            raw = self._raw_of_all(score, ranking, request)
            return raw if raw is None or fitting is None else raw.take(fitting)
        part = request.batch if fitting is None else request.batch.part(fitting)
        _, state = score.plugin.pre_score(request.mirror, request.pod, part)
        return None if state is None else score.plugin.score(state, part)

    def _raw_of_all(self, score: _Score, ranking: Ranking, request: RankRequest) -> Int64Array | None:
        plugin, validity = score.plugin, score.validity
        last = ranking.raw.get(plugin.name)
        if last is not None and last.at < validity.last_at:
            last = None
        if last is not None and not validity.reads_counters:
            return last.by_position
        _, state = plugin.pre_score(*request)
        versions = () if state is None else plugin.score_versions(state)
        if last is not None and last.versions == versions:
            return last.by_position
        raw = None if state is None else plugin.score(state, request.batch)
        if raw is not None and raw.min() == raw.max():
            raw = None
        ranking.raw[plugin.name] = _LastResult(self._validities.now, versions, raw)
        return raw


def _normalised(plugin: AnyScore, part: RankRequest) -> Int64Array | None:
    _, state = plugin.pre_score(part.mirror, part.pod, part.batch)
    return None if state is None else plugin.normalize(plugin.score(state, part.batch))


def _has_error(verdicts: Verdicts) -> bool:
    errors = [code for code, status in enumerate(verdicts.statuses) if status.code is Code.ERROR]
    return bool(errors) and bool(np.isin(verdicts.codes, errors).any())
