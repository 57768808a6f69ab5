"""A random life of a cluster, with questions that are asked of the cache and afresh after every event."""

from collections.abc import Sequence
from typing import ClassVar, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import Action, ClusterEvent
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.framework.interface import SUCCESS, AnyFilter, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod, counted
from core.profile import Profile
from core.releases.differences import rules_of
from core.releases.release import RELEASES, Rules
from core.scheduling_cycle import filter_nodes
from tests.core.mirror.audit import audit
from tests.core.profile_parts import affinity_profile
from tests.properties import scheduling_pool as pool

TTL: Final = 30.0
RULES: Final = [
    *map(rules_of, RELEASES),
    rules_of(RELEASES[1], {"DRAExtendedResource": True, "VolumeLimitScaling": True}),
    rules_of(RELEASES[2], {"StorageCapacityScoring": True, "InPlacePodLevelResourcesVerticalScaling": False}),
    rules_of(RELEASES[2], {"DRANodeAllocatableResources": True}),
    rules_of(RELEASES[3], {"DRANodeAllocatableResources": True}),
    rules_of(RELEASES[0], {"InPlacePodVerticalScaling": False, "PodLevelResources": False}),
]
MAX_QUESTIONS: Final = 3
CONTROLLERS: Final = ("", "rs-1", "rs-1", "rs-2")

arrivals: st.SearchStrategy[Action] = st.sampled_from(("Add", "Update"))
templates = st.integers(0, len(pool.PODS) - 1)
pod_names = st.integers(0, 7)
node_names = st.sampled_from((*pool.NODE_NAMES, pool.FOREIGN))
indices = st.integers(0, 2**16)
Rendered: TypeAlias = dict[tuple[str, str], Sequence[Status | int | None]]


def rendered(profile: Profile, evaluation: Evaluation, batch: NodeBatch) -> Rendered:
    """Return every verdict with its reasons, and every raw score, by plugin and side."""
    results: Rendered = {}
    filtered = evaluation.filtered(profile.filters, batch) if len(batch) % 2 else None
    for plugin in profile.filters:
        found = evaluation.verdicts(plugin, batch)
        results[plugin.name, "filter"] = [SUCCESS if found is None else found.status(at) for at in range(len(batch))]
    # Asked before the plugins or after them, as rows that are brought up to date must not hide a change from the chain.
    filtered = filtered or evaluation.filtered(profile.filters, batch)
    results["all", "filter"] = [filtered.status(at) for at in range(len(batch))]
    cycle = filter_nodes(profile, evaluation, batch)
    results["all, beside nominated pods", "filter"] = [cycle.status(at) for at in range(len(batch))]
    for scorer, _ in profile.scores:
        raw = evaluation.raw_scores(scorer, batch)
        results[scorer.name, "score"] = [None] * len(batch) if raw is None else raw.tolist()
    return results


class Afresh(FreshEvaluation):
    """Runs each filter once for one batch, however often its verdicts are read: they are of one moment."""

    def __init__(self, mirror: ClusterMirror, pod: Pod, batch: NodeBatch) -> None:
        super().__init__(mirror, pod)
        self._batch = batch
        self._verdicts: dict[AnyFilter, Verdicts | None] = {}

    def verdicts(self, plugin: AnyFilter, batch: NodeBatch) -> Verdicts | None:
        """Run PreFilter and Filter, if not done yet."""
        if batch is not self._batch:
            return super().verdicts(plugin, batch)
        if plugin not in self._verdicts:
            self._verdicts[plugin] = super().verdicts(plugin, batch)
        return self._verdicts[plugin]


class EquivalenceMachine(RuleBasedStateMachine):
    """Tells a mirror of events, and asks."""

    profile: ClassVar[Profile] = affinity_profile()
    options: ClassVar[CacheOptions] = CacheOptions(mode="spec")

    def __init__(self) -> None:
        super().__init__()
        self.mirror = ClusterMirror(assumed_pod_ttl=TTL)
        self.cache = self.new_cache()
        self.now = 0.0
        self.uids: dict[int, int] = {}  # number of a pod -> how often it was made
        self.questions: list[Pod] = []

    def new_cache(self) -> EquivalenceCache:
        """Make the cache that is held against fresh answers."""
        return EquivalenceCache(self.mirror, self.profile.plugins, self.options)

    @initialize(
        nodes=st.lists(indices, min_size=1, max_size=6), template=templates, controller=st.sampled_from(CONTROLLERS)
    )
    def start(self, nodes: Sequence[int], template: int, controller: str) -> None:
        for index in nodes:
            self.node_arrives_or_changes("Add", index)
        for namespace in pool.NAMESPACE_STATES[:2]:
            self.mirror.apply(ClusterEvent("Add", namespace))
        self.pod_of_a_class_is_requested_about(template, controller)

    # Questions.

    @precondition(lambda self: len(self.questions) < MAX_QUESTIONS)
    @rule(template=templates, controller=st.sampled_from(CONTROLLERS))
    def pod_of_a_class_is_requested_about(self, template: int, controller: str) -> None:
        self.questions.append(pool.incoming(pool.PODS[template], f"q{len(self.questions)}", controller))

    @precondition(lambda self: len(self.questions) == MAX_QUESTIONS)
    @rule(index=st.integers(0, MAX_QUESTIONS - 1))
    def pod_is_requested_about_no_more(self, index: int) -> None:
        del self.questions[index]

    @rule(
        names=st.lists(node_names, unique=True, max_size=4), template=templates, controller=st.sampled_from(CONTROLLERS)
    )
    def some_nodes_are_requested_about_once(self, names: Sequence[str], template: int, controller: str) -> None:
        self.compare(pool.incoming(pool.PODS[template], "once", controller), names)

    # Pods, watched and decided here.

    @rule(action=arrivals, number=pod_names, template=templates, node=node_names, terminating=st.booleans())
    def pod_arrives_or_changes(self, action: Action, number: int, template: int, node: str, terminating: bool) -> None:  # noqa: FBT001 - drawn by name
        phase = "Terminating" if terminating else "Running"
        pod = pool.placed(pool.PODS[template], self.identity(number), node, phase)
        self.mirror.apply(ClusterEvent(action, pod))

    @rule(
        number=pod_names,
        template=templates,
        node=st.sampled_from((*pool.NODE_NAMES, pool.FOREIGN, "")),
        priority=st.sampled_from((0, 1, -1)),
        terminating=st.booleans(),
    )
    def pod_is_nominated_or_no_longer(
        self,
        number: int,
        template: int,
        node: str,
        priority: int,
        terminating: bool,  # noqa: FBT001 - drawn by name
    ) -> None:
        pod = pool.nominated(pool.PODS[template], self.identity(number), node, priority, terminating=terminating)
        self.mirror.apply(ClusterEvent("Update", pod))

    @rule(number=pod_names, phase=st.sampled_from(("Succeeded", "Failed")))
    def pod_ends(self, number: int, phase: str) -> None:
        known = self.mirror.get_pod(self.identity(number)[1])
        if known is not None:
            ended = pool.placed(pool.PODS[0], (known.name, known.uid), known.node_name, phase)
            self.mirror.apply(ClusterEvent("Update", ended))

    @rule(number=pod_names)
    def pod_is_deleted_and_the_next_of_its_name_is_another(self, number: int) -> None:
        uid = self.identity(number)[1]
        known = self.mirror.get_pod(uid) or self.mirror.pending.get(uid)
        if known is not None:
            self.mirror.apply(ClusterEvent("Delete", known))
        self.uids[number] = self.uids.get(number, 0) + 1

    @rule(number=pod_names, template=templates, node=node_names)
    def pod_is_assumed(self, number: int, template: int, node: str) -> None:
        identity = self.identity(number)
        if not self.mirror.is_mirrored(identity[1]):
            self.mirror.assume(pool.placed(pool.PODS[template], identity, ""), node, self.now)

    @rule(number=pod_names)
    def assumed_pod_is_forgotten(self, number: int) -> None:
        uid = self.identity(number)[1]
        if self.mirror.is_assumed(uid):
            self.mirror.forget(uid)

    @rule(number=pod_names)
    def binding_is_finished(self, number: int) -> None:
        self.mirror.finish_binding(self.identity(number)[1], self.now)

    @rule(seconds=st.sampled_from((1.0, TTL, 2 * TTL)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.mirror.expire(self.now)

    # Everything else.

    @rule(action=arrivals, index=indices)
    def node_arrives_or_changes(self, action: Action, index: int) -> None:
        self.mirror.apply(ClusterEvent(action, pool.NODES[index % len(pool.NODES)]))

    @rule(index=indices)
    def node_is_deleted(self, index: int) -> None:
        self.mirror.apply(ClusterEvent("Delete", pool.NODES[index % len(pool.NODES)]))

    @rule(index=indices, deleted=st.booleans())
    def namespace_changes_or_goes(self, index: int, deleted: bool) -> None:  # noqa: FBT001 - drawn by name
        namespace = pool.NAMESPACE_STATES[index % len(pool.NAMESPACE_STATES)]
        self.mirror.apply(ClusterEvent("Delete" if deleted else "Update", namespace))

    @rule(index=indices, deleted=st.booleans())
    def other_object_changes_or_goes(self, index: int, deleted: bool) -> None:  # noqa: FBT001 - drawn by name
        other = pool.OTHERS[index % len(pool.OTHERS)]
        self.mirror.apply(ClusterEvent("Delete" if deleted else "Update", other))

    @rule(rules=st.sampled_from(RULES))
    def kubernetes_is_upgraded_or_downgraded(self, rules: Rules) -> None:
        self.mirror.change_rules(rules)
        assert audit(self.mirror) == []
        stored = [pod for _, pod in self.mirror.placed_pods()]
        assert stored == [counted(pod, rules.request_counting) for pod in stored]

    # The law.

    @invariant()
    def every_cached_response_is_the_fresh_one(self) -> None:
        for pod in self.questions:
            self.compare(pod, list(self.mirror.nodes.slots))

    def compare(self, pod: Pod, names: Sequence[str]) -> None:
        """Ask the cache and afresh; the nodes that the mirror does not know come as objects, or not at all."""
        foreign = next(node for node in pool.NODES if node.name == pool.FOREIGN)
        objects = {at: foreign for at, name in enumerate(names) if name == pool.FOREIGN}
        batch = self.mirror.batch(names, objects)
        known = [at for at in range(len(names)) if batch.unmirrored.get(at, foreign) is not None]
        cached = rendered(self.profile, self.cache.evaluation(pod), batch)
        fresh = rendered(self.profile, Afresh(self.mirror, pod, batch), batch)
        for side, results in fresh.items():
            assert [cached[side][at] for at in known] == [results[at] for at in known], side

    def identity(self, number: int) -> tuple[str, str]:
        """Return the name and the uid of a pod."""
        return f"p{number}", f"p{number}-{self.uids.get(number, 0)}"
