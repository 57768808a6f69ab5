"""One decision with all its parts: the results of filter and prioritize, and the part of each plugin."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np

from core.diagnosis.explained_profile import ExplainProfile, Judge, served_alone
from core.diagnosis.not_judged import NotJudged, judged
from core.events import Kind, Missing
from core.explaining.counted_terms import CountedTerm, PodSearch
from core.explaining.explained import Explained
from core.framework.evaluation import Composite, FreshEvaluation, everywhere
from core.framework.interface import SUCCESS, AnyFilter, AnyScore, Codes, DeviceAmounts, Status, Verdicts
from core.framework.scores import NOT_SCORED
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.mirror.topology import BoolArray, Int64Array, IntpArray
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins import DEVICE_TOTALS, DEVICES
from core.profile import Profile
from core.scheduling_cycle import NominatedRejection, filter_nodes, nominated_on, rejections_by_nominated, score_nodes

_MAX_RESOURCES: Final = 8
"""How many resources are named. A pod may request hundreds."""


class RecordedEvaluation(FreshEvaluation):
    """Runs each plugin once, for one batch of nodes for the filters, and one for the scores."""

    def __init__(self, mirror: ClusterMirror, pod: Pod, counting: Collection[str] = ()) -> None:
        """Run plugins for a pod. The scores of those that `counting` names count devices."""
        super().__init__(mirror, pod)
        self._counting = counting
        self.of_filters: dict[str, Verdicts | None] = {}
        """Plugin -> its verdicts on every filtered node. None means that all pass."""
        self.states: dict[str, Any] = {}
        """Plugin, or part of a composite -> its PreFilter state. None if it skipped or failed."""
        self.of_scores: dict[str, Int64Array | None] = {}
        """Plugin -> its raw scores of every scored node. None if it skips the pod, or could not judge some node."""
        self.unscored: dict[str, Mapping[str, str]] = {}
        """Plugin whose scores do not count -> the nodes that it could not judge, with the reason."""

    @cached_property
    def _amounts(self) -> DeviceAmounts:
        """One count for all scores, so that they stop at the same bound as in a decision."""
        return DEVICE_TOTALS(self.mirror)

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Run PreFilter and Filter once. A second call returns the recorded result."""
        if plugin.name in self.of_filters:
            return self.of_filters[plugin.name]
        status, state = plugin.pre_filter(self.mirror, self.pod)
        found = everywhere(status, batch) if state is None else plugin.filter(state, batch)
        self.states[plugin.name], self.of_filters[plugin.name] = state, found
        if isinstance(plugin, Composite) and state is not None:
            self.states.update({each.part.name: each.state for each in state})
        return found

    def raw_scores(self, plugin: AnyScore, batch: NodeBatch) -> Int64Array | None:
        """Run PreScore and Score. No score counts if some node could not be judged."""
        _, state = plugin.pre_score(self.mirror, self.pod, batch)
        if state is not None and plugin.name in self._counting:
            amounts = self._amounts
            state = plugin.with_devices(state, amounts) if plugin.counts_devices(amounts, self.pod) else state
        found = None if state is None else plugin.score(state, batch)
        if isinstance(plugin, Explained) and state is not None and (unknown := plugin.undecided(state)):
            self.unscored[plugin.name], found = unknown, None
        self.of_scores[plugin.name] = found
        return found


NO_PLUGIN: Final = ""
"""Stands for a plugin if none decided, because the node is unknown or out of the partition."""
NOTHING_MISSING: Final[Mapping[Kind, Missing]] = {}
"""The mirror holds every kind of object that the plugins read."""


class ScorePart(msgspec.Struct, frozen=True, gc=False):
    """The part of one plugin in the score of a node."""

    plugin: str
    weight: int
    raw: int | None
    """None if the plugin skips this pod. Then all nodes get 0."""
    normalized: int
    """0..100, among the scored nodes."""
    judged_by: Judge


class Diagnosis:
    """The diagnosis of a pod and some nodes. Made from the mirror at one time, and stale after any event.

    `verdicts` are the results of `filter` for the nodes. `scores` are the results of `prioritize` for the fitting
    nodes, because kube-scheduler sends no others, or for all nodes with `score_all`. `not_judged` are rules that the
    results do not include, and `not_scored` plugins whose scores alone are left out.
    """

    def __init__(  # noqa: PLR0913  # what a decision follows from
        self,
        explained: Profile | ExplainProfile,
        mirror: ClusterMirror,
        pod: Pod,
        batch: NodeBatch,
        *,
        score_all: bool = False,
        missing: Mapping[Kind, Missing] = NOTHING_MISSING,
    ) -> None:
        """Run all plugins of `explained`. A plain Profile is treated as the serving profile.

        `missing` are kinds of objects that the mirror should hold but does not, with the reason. See `judged`.
        """
        whole = served_alone(explained) if isinstance(explained, Profile) else explained
        self.explained: Final = whole.of_pod(mirror, pod).under(mirror.rules)
        profile, not_judged, self.not_scored = judged(self.explained.profile, pod, missing, mirror)
        self.profile: Final = profile
        """The profile of the judged plugins."""
        rules = self.explained.scheduler
        self.scheduler: Final = None if rules is None else rules.state(len(mirror.nodes.slots))
        """The scheduler's configured profile, or None if it is unknown."""
        self.pod: Final = pod
        self.batch: Final = batch
        self.mirror: Final = mirror
        self.generation: Final = mirror.generation
        self.search: Final = PodSearch()
        self._recorded: Final = RecordedEvaluation(mirror, pod, [*self._counting_devices()])
        self.verdicts: Final = filter_nodes(profile, self._recorded, batch)
        self.fitting: Final[IntpArray] = (self.verdicts.codes == 0).nonzero()[0]
        """Positions of the fitting nodes."""
        self.not_judged: Final = [
            *not_judged,
            *(rules.not_judged if rules is not None else ()),
            *self._undecided(),
            *self._devices_not_judged(),
        ]
        self.scored: Final[IntpArray] = _known(batch) if score_all else self.fitting
        """Positions of the scored nodes. `prioritize` gives all other nodes 0."""
        self.scores: Final[Int64Array] = score_nodes(profile, self._recorded, batch.part(self.scored))
        """Scores of these nodes, 0..100."""
        self.not_scored += self._unscored()

    def _counting_devices(self) -> Iterator[str]:
        """Yield the plugins whose scores count devices: if Kindred ranks by these, or else those of kube-scheduler."""
        if all(plugin.name != DEVICES.name for plugin, _ in self.profile.scores):
            return
        ranks = self.explained.judge_of_score(DEVICES.name) is Judge.KINDRED
        for plugin, _ in self.profile.scores:
            if plugin.may_count_devices and (ranks or self.explained.judge_of_score(plugin.name) is Judge.SCHEDULER):
                yield plugin.name

    def _unscored(self) -> Iterator[NotJudged]:
        for plugin, unknown in self._recorded.unscored.items():
            for why, nodes in Counter(unknown.values()).most_common(_MAX_RESOURCES):
                yield NotJudged(plugin, f"{why} (nodes: {nodes})")

    def _undecided(self) -> Iterator[NotJudged]:
        """Yield the plugins that could not judge some of the nodes that fit."""
        for each in self.profile.explained:
            state = self.state_of(each.name)
            if state is None or not (found := each.undecided(state)):
                continue
            names = {self.batch.names[position] for position in self.fitting.tolist()}
            reasons = Counter(why for node, why in found.items() if node in names)
            for why, nodes in reasons.most_common(_MAX_RESOURCES):
                yield NotJudged(each.name, f"{why} (nodes: {nodes})")

    def _devices_not_judged(self) -> list[NotJudged]:
        """Return the rule of the devices behind the pod's extended resources, if a verdict depends on devices."""
        parts, name = self.profile.filter_parts, DEVICES.name
        if any(each.name == name for each in self.explained.profile.filters):
            parts = ()  # it is judged, or it is said why it is not
        if left := [each for part in parts for each in part.left_to_devices(self.mirror, self.pod, self.batch)]:
            is_off = self.scheduler is not None and name in self.scheduler.filters_off
            judge = "no program allocates" if is_off else "kube-scheduler alone allocates"
            return [NotJudged(name, f"{judge} the devices for {', '.join(left[:_MAX_RESOURCES])}")]
        failed = () if len(self.fitting) else self.verdicts.statuses
        reasons = {reason for status in failed for reason in status.reasons}
        every = (part.device_needs(self.mirror, self.pod) for part in self.profile.filter_parts)
        found = (need for each in every for need in each.items())
        needs = {need for reason, need in found if reason in reasons}
        return [NotJudged(name, need) for need in sorted(needs)[:_MAX_RESOURCES]]

    @cached_property
    def response(self) -> Verdicts:
        """The results of `filter` by the serving profile, which has no more plugins than this one."""
        served = self.explained.served
        if served is self.profile:
            return self.verdicts
        judged = {plugin.name: plugin for plugin in self.profile.filters}
        if all(judged.get(plugin.name) is plugin for plugin in served.filters):
            return filter_nodes(served, self._recorded, self.batch)
        # Separate, because a plugin may be off in the rest of the explanation, or have other arguments there.
        with self.mirror.work.apart():
            return filter_nodes(served, FreshEvaluation(self.mirror, self.pod), self.batch)

    @cached_property
    def rejected_with_nominated(self) -> Mapping[int, NominatedRejection]:
        """The nodes, by position, that the pod does not fit with the pods nominated for them."""
        return rejections_by_nominated(self.mirror, self.profile.filters, self.pod, self.batch)

    def nominated_on(self, position: int) -> Sequence[Pod]:
        """Return the pods nominated for a node that count there when this pod is judged."""
        if position in self.batch.unmirrored:
            return ()
        return nominated_on(self.mirror, self.pod, self.batch.names[position])

    @cached_property
    def deciding(self) -> Codes:
        """The first plugin that failed each node: 1 + its index in the profile, or 0 for none.

        A plugin whose PreFilter failed comes before all plugins whose Filter failed. See `first_failures`.
        """
        deciding = np.zeros(len(self.batch), np.int16)
        recorded = enumerate((self._recorded.of_filters.get(each.name) for each in self.profile.filters), start=1)
        failed = [(place, verdicts) for place, verdicts in recorded if verdicts is not None]
        for place, verdicts in sorted(failed, key=lambda each: not each[1].of_pre_filter):
            deciding[(verdicts.codes > 0) & (deciding == 0)] = place
        places = {plugin.name: place for place, plugin in enumerate(self.profile.filters, start=1)}
        for position, rejection in self.rejected_with_nominated.items():
            deciding[position] = places[rejection.failure.plugin]
        outside = self.batch.out_of_partition
        deciding[self.batch.unknown] = 0
        if outside is not None:
            deciding[outside] = 0
        return deciding

    def state_of(self, plugin: str) -> Any:  # noqa: ANN401  # each plugin has a type of its own
        """Return the PreFilter state of a plugin. Stale after the next event, and in any fork.

        Returns None if the plugin is not enabled, skips the pod, or failed in PreFilter.
        """
        return self._recorded.states.get(plugin)

    @cached_property
    def refusing(self) -> Mapping[str, BoolArray]:
        """Plugin -> the nodes that it fails without nominated pods, regardless of others, if there are any."""
        recorded = ((plugin.name, self._recorded.of_filters.get(plugin.name)) for plugin in self.profile.filters)
        failed = ((name, verdicts.codes > 0) for name, verdicts in recorded if verdicts is not None)
        return {name: codes for name, codes in failed if codes.any()}

    @cached_property
    def known(self) -> IntpArray:
        """Positions of the nodes of the mirror, in the partition."""
        positions = _known(self.batch)
        known: IntpArray = positions[self.batch.slots[positions] != NO_SLOT]
        return known

    def node(self, position: int) -> Node | None:
        """Return a node of the mirror or of the request, or None if neither has it."""
        if position in self.batch.unmirrored:
            return self.batch.unmirrored[position]
        return self.mirror.nodes.infos[self.batch.names[position]].node

    def groups(self) -> tuple[list[tuple[Status, str, int]], IntpArray]:
        """Return the groups of nodes with equal status and deciding plugin, and the index of each node's group.

        A group is the status, the plugin, and the number of nodes. Nodes that fit may be a group, too.
        """
        size = len(self.profile.filters) + 1
        pairs, places, counts = np.unique(
            self.verdicts.codes.astype(np.int64) * size + self.deciding, return_inverse=True, return_counts=True
        )
        groups = []
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            code, place = divmod(pair, size)
            plugin = self.profile.filters[place - 1].name if place else NO_PLUGIN
            groups.append((self.verdicts.statuses[code], plugin, count))
        return groups, places

    def deciding_plugin(self, position: int) -> str:
        """Return the first plugin that failed a node. NO_PLUGIN if the node fits, or if no plugin ran."""
        place = int(self.deciding[position])
        return self.profile.filters[place - 1].name if place else NO_PLUGIN

    def judge_of(self, plugin: str) -> Judge:
        """Return the program that filters by a plugin. For NO_PLUGIN it is Kindred, which rejects unknown nodes."""
        return Judge.KINDRED if plugin == NO_PLUGIN else self.explained.judge_of_filter(plugin)

    def predicates(self, position: int) -> Sequence[tuple[str, Status]]:
        """Return every predicate's verdict on a node without nominated pods, even after the first failure."""
        return [
            (plugin.name, _status(self._recorded.of_filters.get(plugin.name), position))
            for plugin in self.profile.filters
        ]

    def score(self, position: int) -> tuple[int, Sequence[ScorePart]] | None:
        """Return the score of a node with its parts, or None if it is not scored."""
        found = np.flatnonzero(self.scored == position)
        if not len(found):
            return None
        place = int(found[0])
        return int(self.scores[place]), [self._part(plugin, weight, place) for plugin, weight in self.profile.scores]

    @cached_property
    def terms(self) -> Sequence[CountedTerm]:
        """The terms about other pods that take part in the decision. Empty if no enabled plugin has any."""
        return [term for plugin in self.profile.explained for term in plugin.terms(self)]

    def raw_scores(self, plugin: AnyScore) -> Int64Array | None:
        """Return a plugin's raw scores of the scored nodes, or None if it skips the pod."""
        return self._recorded.of_scores.get(plugin.name)

    @cached_property
    def normalized(self) -> Mapping[str, Int64Array]:
        """Plugin -> its normalised scores of the scored nodes. Plugins that skip the pod are missing."""
        raw = ((plugin, self.raw_scores(plugin)) for plugin, _ in self.profile.scores)
        return {plugin.name: plugin.normalize(scores) for plugin, scores in raw if scores is not None}

    def _part(self, plugin: AnyScore, weight: int, place: int) -> ScorePart:
        raw, judge = self.raw_scores(plugin), self.explained.judge_of_score(plugin.name)
        if raw is None:
            return ScorePart(plugin.name, weight, None, 0, judge)
        # A plugin may exclude nodes (NOT_SCORED), which is not a score to show.
        raw_score = None if raw[place] == NOT_SCORED else int(raw[place])
        return ScorePart(plugin.name, weight, raw_score, int(self.normalized[plugin.name][place]), judge)


def _status(verdicts: Verdicts | None, position: int) -> Status:
    return SUCCESS if verdicts is None else verdicts.status(position)


def _known(batch: NodeBatch) -> IntpArray:
    """Return the positions of the known nodes in the partition."""
    outside = batch.out_of_partition
    known: BoolArray = np.ones(len(batch), np.bool_) if outside is None else ~outside
    known[batch.unknown] = False
    return known.nonzero()[0]
