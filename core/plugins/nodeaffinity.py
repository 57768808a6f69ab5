"""NodeAffinity: which nodes a pod may be on by their labels and names, and which of them it would rather be on.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go and k8s.io/component-helpers
scheduling/corev1/nodeaffinity/nodeaffinity.go.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from core.events import Kind
from core.framework.interface import Verdicts, Versions
from core.framework.invalidation import InvalidationRule, Operation, Scope
from core.framework.label_errors import said
from core.framework.node_matcher import NodeMatcher, keys_of_terms, label_keys
from core.framework.normalize import default_normalize
from core.framework.status import SKIP, SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.labels import EVERYTHING, Selector, errors_text
from core.objects.node import Node
from core.objects.node_affinity import NO_NODE_AFFINITY, PreferredTerm
from core.objects.node_affinity import NodeAffinity as AffinityToNodes
from core.objects.node_selector import NodeSelectorTerm
from core.objects.pod import Pod

POD_AFFINITY: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
)
ENFORCED_AFFINITY: Final = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",)
)
CONFLICT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("pod affinity terms conflict",))
# In the order in which they are judged: the first failure is a node's verdict.
_STATUSES: Final = (SUCCESS, ENFORCED_AFFINITY, POD_AFFINITY)

# Units of work, see core/mirror/work.py.
_PER_ENTRY: Final = 8_000
_PER_NODE: Final = 2
_FEW_ENTRIES: Final = 32
"""So many terms and requirements are never too much work, and ordinary pods have no more."""

_INVALIDATED_BY = (
    InvalidationRule(
        kind=Node,
        operations=(Operation.UPDATE,),
        scope=Scope.NODE,
        when="a label changed",
        because="any node label can be asked for, by its presence and by its absence",
        touches=lambda before, after: before.labels != after.labels,
    ),
)


class RequiredState(msgspec.Struct, frozen=True):
    """The requirements of one incoming pod on its node, and of the scheduler. Stale after the next event."""

    mirror: ClusterMirror
    asked: AffinityToNodes
    added: AffinityToNodes


class PreferredState(msgspec.Struct, frozen=True):
    """The preferences of one incoming pod, and of the scheduler for it. Stale after the next event."""

    mirror: ClusterMirror
    terms: tuple[PreferredTerm, ...]


class NodeAffinity:
    """Filter by the pod's nodeSelector and required affinity to nodes, and score by its preferred one.

    `added_affinity` applies to every pod, beside the pod's own affinity. Raises ValueError for one
    with a broken term, as upstream's ValidateNodeAffinityArgs.
    """

    name = "NodeAffinity"
    kinds: tuple[Kind, ...] = (Node,)
    class_fields = ("node_affinity",)
    invalidated_by = _INVALIDATED_BY
    scores_alone = True
    normalizes_alone = False

    def __init__(self, *, added_affinity: AffinityToNodes = NO_NODE_AFFINITY) -> None:
        if errors := _errors(added_affinity):
            raise ValueError(errors_text(errors))
        self._added = added_affinity

    def references(self, _mirror: ClusterMirror, _pod: Pod) -> None:
        """Return None: the pod's fields name no other object; of nodes they give the names, which stay theirs."""

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, RequiredState | None]:
        """Gather the requirements; fails for a pod if each of its terms requires two names of a node.

        Upstream narrows the search to `node_names` here. It needs no doing: Filter fails all other nodes by itself.
        """
        asked = pod.node_affinity
        if asked.node_names is not None and not asked.node_names:
            return CONFLICT, None
        if not (_requires(asked) or _requires(self._added)):
            return SKIP, None
        return SUCCESS, RequiredState(mirror, asked, self._added)

    def filter(self, state: RequiredState, batch: NodeBatch) -> Verdicts:
        """Judge every node of the batch; the scheduler's requirements come before the pod's."""
        matcher = NodeMatcher(state.mirror, batch, label_keys(state.asked) | label_keys(state.added))
        _charge(state.mirror, state.asked.selector, _required(state.asked), len(batch))
        codes = np.zeros(len(batch), np.uint8)
        codes[~matcher.required(state.asked)] = _STATUSES.index(POD_AFFINITY)
        codes[~matcher.required(state.added)] = _STATUSES.index(ENFORCED_AFFINITY)
        return Verdicts(codes, _STATUSES)

    def filter_versions(self, _state: RequiredState) -> Versions:
        """Return nothing: the verdicts follow from no counters."""
        return ()

    def pre_score(self, mirror: ClusterMirror, pod: Pod, _batch: NodeBatch) -> tuple[Status, PreferredState | None]:
        """Gather the preferences; an error for a pod with a broken term.

        SKIP only for a pod without preferences: with empty ones each node gets a 0, as upstream has it.
        """
        if error := pod.node_affinity.preferred_error:
            return Status(Code.ERROR, (said(mirror, error),)), None
        terms = (*self._added.preferred, *pod.node_affinity.preferred)
        prefers = terms or pod.node_affinity.empty_preferences
        return (SUCCESS, PreferredState(mirror, terms)) if prefers else (SKIP, None)

    def score(self, state: PreferredState, batch: NodeBatch) -> Int64Array:
        """Return the raw score of every node: the sum of the weights of the terms that it meets."""
        terms = [each.term for each in state.terms]
        _charge(state.mirror, EVERYTHING, terms, len(batch))
        matcher = NodeMatcher(state.mirror, batch, keys_of_terms(terms))
        total = np.zeros(len(batch), np.int64)
        for each in state.terms:
            met = matcher.term(each.term)
            if met.any():
                total += met * np.int64(each.weight)
        return total

    def score_versions(self, _state: PreferredState) -> Versions:
        """Return nothing: the scores follow from no counters."""
        return ()

    def normalize(self, raw: Int64Array) -> Int64Array:
        """Spread the raw scores of the nodes asked over 0..100."""
        return default_normalize(raw)


def _requires(affinity: AffinityToNodes) -> bool:
    return affinity.required is not None or not affinity.selector.everything


def _required(affinity: AffinityToNodes) -> tuple[NodeSelectorTerm, ...]:
    return () if affinity.required is None else affinity.required.terms


def _charge(mirror: ClusterMirror, selector: Selector, terms: Sequence[NodeSelectorTerm], nodes: int) -> None:
    """Charge the work of judging nodes by requirements, before it is done. Raises WorkLimitError."""
    entries = len(selector.requirements) + len(terms)
    entries += sum([len(term.requirements) + len(term.comparisons) + len(term.fields) for term in terms])
    if entries > _FEW_ENTRIES:
        mirror.work.spend(entries * (_PER_ENTRY + _PER_NODE * nodes), "spec.affinity.nodeAffinity", entries)


def _errors(added: AffinityToNodes) -> list[str]:
    """Return upstream's messages, with the path of the argument in front."""
    path = "addedAffinity.{}DuringSchedulingIgnoredDuringExecution"
    required = [f"{path.format('required')}.{error}" for term in _required(added) for error in term.errors]
    return required + [f"{path.format('preferred')}{error}" for each in added.preferred for error in each.term.errors]
