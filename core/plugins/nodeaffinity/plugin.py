"""NodeAffinity: the nodes that a pod may or should be on, by their labels and names.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and k8s.io/component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, ScorePlugin, Status, Verdicts, text_of
from core.framework.invalidation import node_update
from core.framework.node_matcher import NodeMatcher, keys_of_terms, label_keys
from core.framework.scores import default_normalize
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.affinity import NO_NODE_AFFINITY, NodeSelectorTerm
from core.objects.affinity import NodeAffinity as AffinityToNodes
from core.objects.labels import EVERYTHING, Selector, errors_text
from core.objects.pod import Pod
from core.plugins.nodeaffinity.explaining import ExplainedNodeAffinity
from core.plugins.nodeaffinity.filtering import (
    CONFLICT,
    ENFORCED_AFFINITY,
    NAME,
    POD_AFFINITY,
    STATUSES,
    PreferredState,
    RequiredState,
)

# Units of work, see core/mirror/work.py.
_PER_ENTRY: Final = 8_000
_PER_NODE: Final = 2
_FEW_ENTRIES: Final = 32
"""Up to this many terms and requirements, the work is never too much. Ordinary pods have no more."""


class NodeAffinity(ExplainedNodeAffinity, FilterPlugin[RequiredState], ScorePlugin[PreferredState]):
    """Filters by the pod's nodeSelector and required node affinity, and scores by its preferred node affinity.

    `added_affinity` applies to every pod, in addition to the pod's own affinity. Raises ValueError if one of its terms
    is invalid, as upstream's ValidateNodeAffinityArgs.
    """

    name = NAME
    former_filters = ("PodMatchNodeSelector", "MatchNodeSelector")
    former_scores = (("NodeAffinityPriority", ""),)
    points = ("preFilter", "filter", "preScore", "score")
    pre_filter_rejects = True
    class_fields = ("node_affinity",)
    invalidated_by = (
        node_update(
            when="a label changed",
            because="any node label can be asked for, by its presence and by its absence",
            reads=lambda node: node.labels,
        ),
    )
    scores_alone = True

    def __init__(self, *, added_affinity: AffinityToNodes = NO_NODE_AFFINITY) -> None:
        if errors := _errors(added_affinity):
            raise ValueError(errors_text(errors))
        self._added = added_affinity

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, RequiredState | None]:
        """Collect the requirements. Fails for a pod if each of its terms requires two names of a node.

        Upstream also narrows the search to `node_names` here. That is not needed: Filter rejects all other nodes.
        """
        affinity = pod.node_affinity
        if affinity.node_names is not None and not affinity.node_names:
            return CONFLICT, None
        if not (affinity.requires or self._added.requires):
            return SKIP, None
        return SUCCESS, RequiredState(mirror, affinity, self._added)

    def filter(self, state: RequiredState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch. The scheduler's requirements come before the pod's."""
        matcher = NodeMatcher(state.mirror, batch, label_keys(state.affinity) | label_keys(state.added))
        _charge(state.mirror, state.affinity.selector, _required(state.affinity), len(batch))
        codes = np.zeros(len(batch), np.uint8)
        codes[~matcher.required(state.affinity)] = STATUSES.index(POD_AFFINITY)
        codes[~matcher.required(state.added)] = STATUSES.index(ENFORCED_AFFINITY)
        return Verdicts(codes, STATUSES)

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, PreferredState | None]:
        """Collect the preferences. Returns an error for a pod with an invalid term.

        SKIP only for a pod without preferences. If the preferences are empty, each node gets 0, as upstream.
        """
        if error := pod.node_affinity.preferred_error:
            return Status(Code.ERROR, (text_of(mirror, error),)), None
        terms = (*self._added.preferred, *pod.node_affinity.preferred)
        prefers = terms or pod.node_affinity.empty_preferences
        return (SUCCESS, PreferredState(mirror, terms)) if prefers else (SKIP, None)

    def score(self, state: PreferredState, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node: the sum of the weights of the terms that the node meets."""
        terms = [each.term for each in state.terms]
        _charge(state.mirror, EVERYTHING, terms, len(batch))
        matcher = NodeMatcher(state.mirror, batch, keys_of_terms(terms))
        total = np.zeros(len(batch), np.int64)
        for each in state.terms:
            met = matcher.term(each.term)
            if met.any():
                total += met * np.int64(each.weight)
        return total

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Normalise the raw scores of the requested nodes to 0..100."""
        return default_normalize(raw)


def _required(affinity: AffinityToNodes) -> tuple[NodeSelectorTerm, ...]:
    return () if affinity.required is None else affinity.required.terms


def _charge(mirror: ClusterMirror, selector: Selector, terms: Sequence[NodeSelectorTerm], nodes: int) -> None:
    """Charge the work of judging nodes by requirements before it is done. Raises WorkLimitError."""
    entries = len(selector.requirements) + len(terms)
    entries += sum([len(term.requirements) + len(term.comparisons) + len(term.fields) for term in terms])
    if entries > _FEW_ENTRIES:
        mirror.work.spend(entries * (_PER_ENTRY + _PER_NODE * nodes), "spec.affinity.nodeAffinity", entries)


def _errors(added: AffinityToNodes) -> list[str]:
    """Return upstream's messages, prefixed with the path of the argument."""
    path = "addedAffinity.{}DuringSchedulingIgnoredDuringExecution"
    required = [f"{path.format('required')}.{error}" for term in _required(added) for error in term.errors]
    return required + [f"{path.format('preferred')}{error}" for each in added.preferred for error in each.term.errors]
