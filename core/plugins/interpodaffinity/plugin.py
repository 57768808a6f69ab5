"""InterPodAffinity: places pods near other pods, or away from them.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity (plugin.go, filtering.go, scoring.go).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from core.explaining.counted_terms import CountedTerm
from core.explaining.decision import Decision
from core.framework.arguments import Int32
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts, Versions, text_of
from core.framework.invalidation import InvalidationRule, Scope, node_update
from core.framework.scores import MAX_NODE_SCORE, mapped
from core.mirror.affinity_counts import MatchTerms, Role
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import DomainCounts, Int64Array
from core.objects.kinds import Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.explaining import ExplainedAffinity, counted_terms
from core.plugins.interpodaffinity.filtering import NAME, DomainSums, PreFilterState

_FEW_COUNTERS: Final = 16
"""Of states that are kept beside a class."""
_FEW_SCORES: Final = 12
"""Up to this number, scores are normalised one by one: six take a third of the time of an array."""

# The score side (scoring.go): preferences of the incoming pod, and of existing pods that select it.


def _own(mirror: ClusterMirror, pod: Pod) -> Iterable[tuple[DomainCounts, int]]:
    if not (pod.affinity.preferred_affinity or pod.affinity.preferred_anti_affinity):
        return ()
    preferred = [(each.term, each.weight) for each in pod.affinity.preferred_affinity]
    preferred += [(each.term, -each.weight) for each in pod.affinity.preferred_anti_affinity]
    terms = [MatchTerms((term.matcher,), term.topology_key) for term, _ in preferred]
    counters = mirror.affinity.matches.of(terms, "spec.affinity")
    return zip(counters, [weight for _, weight in preferred], strict=True)


def _of_existing_pods(
    mirror: ClusterMirror, pod: Pod, hard_pod_affinity_weight: int
) -> Iterator[tuple[DomainCounts, int]]:
    for owner in mirror.affinity.owners(pod.namespace, pod.labels):
        if owner.owner_term.role is Role.PREFERRED:
            yield owner, owner.owner_term.weight
        elif owner.owner_term.role is Role.REQUIRED_AFFINITY and hard_pod_affinity_weight > 0:
            yield owner, hard_pod_affinity_weight


MAX_HARD_POD_AFFINITY_WEIGHT = 100

_INVALIDATED_BY = (
    node_update(
        when="a label changed",
        because="any node label can be the topology key of a term",
        reads=lambda node: node.labels,
    ),
    InvalidationRule(
        kind=Pod,
        scope=Scope.COUNTERS,
        when="it has a term that selects the class, or a term of the class selects it",
        because=(
            "stronger than the design, where an added pod breaks nothing: it can repel or attract another class, or "
            "its own (kubernetes issue 67680), in its whole topology domain"
        ),
    ),
    InvalidationRule(
        kind=Namespace,
        scope=Scope.COUNTERS,
        when="a namespaceSelector selects it now and did not before, or the other way round",
        because="the design is older than namespaceSelector",
    ),
)


class InterPodAffinity(ExplainedAffinity, FilterPlugin[PreFilterState], ScorePlugin[DomainSums]):
    """Filters and scores by inter-pod (anti-)affinity, exactly as the in-tree plugin.

    Each required affinity term of an existing pod that selects the incoming pod adds `hard_pod_affinity_weight`,
    0..100, to the score. With `ignore_preferred_terms_of_existing_pods`, pods without preferences of their own are not
    scored. Raises ValueError if the weight is out of range, as upstream's ValidateInterPodAffinityArgs.
    """

    name = NAME
    former_filters = ("MatchInterPodAffinity",)
    former_scores = (("InterPodAffinityPriority", ""),)
    points = ("preFilter", "filter", "preScore", "score")
    needs_pre = ("filter", "score")
    costly_pre = True
    of_scores = ("hard_pod_affinity_weight", "ignore_preferred_terms_of_existing_pods")
    kinds = (Node, Pod, Namespace)
    class_fields = ("namespace", "labels", "affinity")
    invalidated_by = _INVALIDATED_BY
    scores_alone = True
    by_traits = True

    def __init__(
        self, *, hard_pod_affinity_weight: Int32 = 1, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        if not 0 <= hard_pod_affinity_weight <= MAX_HARD_POD_AFFINITY_WEIGHT:
            raise ValueError(
                f"hardPodAffinityWeight: must be 0..{MAX_HARD_POD_AFFINITY_WEIGHT}, got {hard_pod_affinity_weight}"
            )
        self.hard_pod_affinity_weight = hard_pod_affinity_weight
        """The weight of a required affinity term of an existing pod in the score of a pod that the term selects."""
        self._ignore_preferred_terms_of_existing_pods = ignore_preferred_terms_of_existing_pods

    def epoch(self, mirror: ClusterMirror) -> int:
        """Return since when the same counters concern each pod, and the same ones of them have pods."""
        return mirror.affinity.epoch

    def is_small(self, state: PreFilterState) -> bool:
        """Return whether a state has few counters. It keeps those alive that the mirror has dropped: 5 KB each."""
        return len(state.affinity) + state.anti_affinity.size + state.existing_anti_affinity.size <= _FEW_COUNTERS

    def scores_for(self, pod: Pod) -> bool:
        """Return whether a pod is scored. With `ignore_preferred_terms_of_existing_pods` it must have preferences."""
        has_preferences = pod.affinity.preferred_affinity or pod.affinity.preferred_anti_affinity
        return bool(has_preferences) or not self._ignore_preferred_terms_of_existing_pods

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, PreFilterState | None]:
        """Resolve the pod's hard rules to counters. Fails for a pod whose terms could not be parsed."""
        if pod.affinity.errors:
            return _unparsable(mirror, pod), None
        state = PreFilterState(mirror, pod)
        if state.existing_anti_affinity.empty and not (
            pod.affinity.required_affinity or pod.affinity.required_anti_affinity
        ):
            return SKIP, None
        return SUCCESS, state

    def filter(self, state: PreFilterState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch."""
        return state.judge(batch)

    def status_on(self, state: PreFilterState, slot: int) -> Status:
        """Return the first rule that the node of a slot breaks, or success."""
        return state.status_on(slot)

    def filter_versions(self, state: PreFilterState) -> Versions:
        """Return the versions of all counters that the verdicts depend on."""
        return state.versions()

    def passes_alike(self, state: PreFilterState, before: Versions, slots: Collection[int]) -> bool:
        """Return whether pods on these slots changed the verdicts of no other node."""
        return state.alike(before, slots)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, DomainSums | None]:
        """Resolve the preferences to counters. SKIP if no pod was counted."""
        if pod.affinity.errors:
            return _unparsable(mirror, pod), None
        if not self.scores_for(pod):
            return SKIP, None
        state = DomainSums((*_own(mirror, pod), *_of_existing_pods(mirror, pod, self.hard_pod_affinity_weight)))
        return (SKIP, None) if state.empty else (SUCCESS, state)

    def score(self, state: DomainSums, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node: the sum over the topology keys of its domains' weighted counts."""
        return state.per_node(batch)

    def score_versions(self, state: DomainSums) -> Versions:
        """Return the versions of all counters that the raw scores depend on."""
        return state.versions()

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Normalise the raw scores to 0..100, truncated like Go's int64(). Equal scores all become 0."""
        if len(raw) <= _FEW_SCORES:
            return np.array(_normalized(raw.tolist()), np.int64)
        lowest, highest = raw.item(raw.argmin()), raw.item(raw.argmax())  # not `min`: a reduction takes 2 us of few
        if lowest == highest:
            return np.zeros_like(raw)

        def scale(scores: Int64Array) -> Int64Array:
            return (float(MAX_NODE_SCORE) * ((scores - lowest) / float(highest - lowest))).astype(np.int64)

        return mapped(raw, lowest, highest, scale)

    def terms(self, decision: Decision) -> Sequence[CountedTerm]:
        """Return the terms of the pod, and those of placed pods that select it."""
        pod = decision.pod
        return counted_terms(decision.mirror, pod, self.hard_pod_affinity_weight, scored=self.scores_for(pod))


def _normalized(raw: Sequence[int]) -> list[int]:
    """Return the result of `normalize` for a few scores, in the same operations."""
    lowest, highest = min(raw, default=0), max(raw, default=0)
    if lowest == highest:
        return [0] * len(raw)
    width = float(highest - lowest)
    return [int(float(MAX_NODE_SCORE) * ((score - lowest) / width)) for score in raw]


def _unparsable(mirror: ClusterMirror, pod: Pod) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"parsing pod: {text_of(mirror, pod.affinity.parse_error)}",))
