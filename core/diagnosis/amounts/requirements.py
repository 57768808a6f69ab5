"""What keeps the pod off nodes by itself: requirements on labels and names (NodeAffinity), taints and cordons."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.diagnosis.amounts.claims import asked_text
from core.diagnosis.amounts.node_labels import values_text
from core.diagnosis.diagnosis import Diagnosis
from core.framework.node_matcher import NodeMatcher, keys_of_terms
from core.mirror.topology import BoolArray, Int64Array
from core.objects.affinity import Comparison, FieldRequirement, NodeSelectorTerm
from core.objects.affinity import NodeAffinity as AffinityToNodes
from core.objects.labels import Operator, Requirement, requirement_text
from core.objects.node import Node
from core.objects.pod import KEEP_PODS_OFF, Taint
from core.plugins.nodeaffinity import NodeAffinity, RequiredState
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.tainttoleration import TaintsAndTolerations, TaintToleration

MAX_REQUIREMENTS: Final = 64
"""How many requirements are checked. Each costs a pass over the nodes, and a pod may have thousands."""
_MAX_VALUES: Final = 10
NODE_NAME: Final = "metadata.name"


class Source(Enum):
    """The field that contains a requirement."""

    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    """requiredDuringSchedulingIgnoredDuringExecution of the pod."""
    ADDED_AFFINITY = "addedAffinity"
    """NodeAffinityArgs.addedAffinity of the scheduler."""


class Asked(msgspec.Struct, frozen=True):
    """A requirement with its source, and the index of its term among the terms of the parsed affinity."""

    source: Source
    term: int | None
    """None if the requirement is not part of a term."""
    requirement: Requirement | Comparison | FieldRequirement

    def met_by(self, node: Node) -> bool:
        """Return whether a node meets the requirement."""
        if isinstance(self.requirement, FieldRequirement):
            return self.requirement.matches(node.name)
        return self.requirement.matches(node.labels)

    @property
    def as_term(self) -> NodeSelectorTerm:
        """The term with only this requirement."""
        match self.requirement:
            case Requirement():
                return NodeSelectorTerm((self.requirement,))
            case Comparison():
                return NodeSelectorTerm(comparisons=(self.requirement,))
            case FieldRequirement():
                return NodeSelectorTerm(fields=(self.requirement,))


Choice: TypeAlias = Sequence[Sequence[Asked]]
"""Alternatives with their requirements. A node must meet one alternative."""


class AskedOfNode(msgspec.Struct, frozen=True, gc=False):
    """One requirement on labels, or on the name of the node (key `metadata.name`)."""

    source: Source
    term: int | None
    """The index among the pod's terms in Kindred's order, which is sorted. None if not part of a term."""
    key: str
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: Sequence[str]
    """At most 10."""

    @property
    def text(self) -> str:
        """The requirement in kubectl's notation."""
        return requirement_text(self.key, self.operator, self.values)


class UnmetRequirement(msgspec.Struct, frozen=True, gc=False):
    """A requirement that a node does not meet."""

    asked: AskedOfNode
    has: str | None
    """The node's value. None if the node does not have the label."""


class RequirementInCluster(msgspec.Struct, frozen=True, gc=False):
    """A requirement with the number of known nodes that do not meet it, regardless of other requirements."""

    asked: AskedOfNode
    nodes: int
    has: str
    """What the nodes have instead, if no known node meets it. Empty otherwise."""


class NearestNode(msgspec.Struct, frozen=True, gc=False):
    """The node with the fewest unmet requirements. Among ties, the one that the fewest other plugins reject."""

    node: str
    unmet: Sequence[UnmetRequirement]


def choices_of(decision: Diagnosis) -> Sequence[Choice]:
    """Return the requirements of NodeAffinity: at most the first 64, because a pod may have thousands.

    Empty if NodeAffinity is not enabled or has no requirements. Invalid terms, which no node can meet, are left out.
    """
    state = decision.state_of(NodeAffinity.name)
    if not isinstance(state, RequiredState):
        return ()
    choices = (
        *_choices(state.asked, Source.NODE_SELECTOR, Source.NODE_AFFINITY),
        *_choices(state.added, Source.ADDED_AFFINITY, Source.ADDED_AFFINITY),
    )
    return _bounded(choices)


def best_alternatives(choices: Sequence[Choice], node: Node) -> Sequence[Asked]:
    """Return the best alternative of each choice: the one with the fewest unmet requirements on the node."""
    best: list[Asked] = []
    for choice in choices:
        best += min(choice, key=lambda alternative: sum(not each.met_by(node) for each in alternative), default=())
    return best


def best_unmet(choices: Sequence[Choice], node: Node) -> Sequence[Asked]:
    """Return the unmet requirements of `best_alternatives` for a node."""
    return [each for each in best_alternatives(choices, node) if not each.met_by(node)]


def unmet_on_node(decision: Diagnosis, position: int) -> Sequence[UnmetRequirement]:
    """Return the unmet requirements of one node."""
    node = decision.node(position)
    return [] if node is None else [_unmet(each, node) for each in best_unmet(choices_of(decision), node)]


def requirements_in_cluster(decision: Diagnosis, limit: int) -> Sequence[RequirementInCluster]:
    """Return up to `limit` requirements, those that exclude most nodes first."""
    excluded = [
        (each, int(np.count_nonzero(~met[decision.known])))
        for choice in choices_of(decision)
        for each, met in _judged(decision, choice)
    ]
    most = sorted((each for each in excluded if each[1]), key=lambda each: -each[1])[:limit]
    return [
        RequirementInCluster(told_of(each), nodes, _instead(decision, each) if nodes == len(decision.known) else "")
        for each, nodes in most
    ]


def _instead(decision: Diagnosis, asked: Asked) -> str:
    if isinstance(asked.requirement, FieldRequirement):
        return "" if asked.requirement.value in decision.mirror.nodes.slots else "other names"
    return values_text(decision, (asked.requirement.key,))


def impossible_terms(decision: Diagnosis, limit: int) -> Sequence[str]:
    """Return up to `limit` parts of the pod's required node affinity that no node can match, whatever its labels.

    These are terms with an error, terms that contradict themselves or the nodeSelector, and empty terms if there are no
    others. Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go (NewLazyErrorNodeSelector,
    newNodeSelectorTerm): a term that cannot be parsed matches no node, and an empty term is left out.
    """
    state = decision.state_of(NodeAffinity.name)
    if not isinstance(state, RequiredState) or NodeAffinity.name not in decision.refusing:
        return ()
    if state.asked.required is None:
        return ()
    if not state.asked.required.terms:
        return ["it has only empty terms, which match no node"]
    return [text for faults in _faults(state.asked) for text in faults][:limit]


def is_unmeetable(asked: AffinityToNodes) -> bool:
    """Return whether every required term is empty or contradicts itself, without an error.

    NodeAffinity's queueing hint skips every node then. After an error it does not.
    """
    if asked.node_names is not None and not asked.node_names:
        return True
    return asked.required is not None and all(
        faults and not term.errors for faults, term in zip(_faults(asked), asked.required.terms, strict=False)
    )


def _faults(asked: AffinityToNodes) -> Iterator[Sequence[str]]:
    """Yield for each of the first 64 required terms why no node can match it. Empty for a term that a node can."""
    for term in () if asked.required is None else asked.required.terms[:MAX_REQUIREMENTS]:
        yield term.errors or [*_contradictions((*asked.selector.requirements, *term.requirements, *term.comparisons))]


def _contradictions(asked: Sequence[Requirement | Comparison]) -> Iterator[str]:
    by_key: dict[str, list[Requirement | Comparison]] = {}
    for each in asked[:MAX_REQUIREMENTS]:
        by_key.setdefault(each.key, []).append(each)
    for of_key in by_key.values():
        if _contradict(of_key):
            yield f"{' and '.join(map(asked_text, of_key[:_MAX_VALUES]))} contradict each other"


def _contradict(asked: Sequence[Requirement | Comparison]) -> bool:
    """Return whether no value of a label, and no absence of it, meets all requirements on its key."""
    listed = next((each for each in asked if isinstance(each, Requirement) and each.operator is Operator.IN), None)
    if listed is not None:
        return not any(all(each.matches({listed.key: value}) for each in asked) for value in listed.values)
    if all(each.matches({}) for each in asked):
        return False
    if any(isinstance(each, Requirement) and each.operator is Operator.DOES_NOT_EXIST for each in asked):
        return True
    compared = [each for each in asked if isinstance(each, Comparison)]
    lowest = max((each.bound + 1 for each in compared if each.greater), default=None)
    highest = min((each.bound - 1 for each in compared if not each.greater), default=None)
    return lowest is not None and highest is not None and lowest > highest


def nearest_node(decision: Diagnosis) -> NearestNode | None:
    """Return the nearest of the nodes that NodeAffinity rejects, or None if it rejects none, or all in PreFilter.

    None, too, if no term of the pod can be met by any node: then no node is near.
    """
    refused, choices = decision.refusing.get(NodeAffinity.name), choices_of(decision)
    if refused is None or not choices or not len(decision.known):
        return None
    if decision.pod.node_affinity.required is not None and all(_faults(decision.pod.node_affinity)):
        return None
    candidates = decision.known[refused[decision.known]]
    if not len(candidates):
        return None
    lacking = unmet_counts(decision)[candidates]
    others = np.sum([each[candidates] for each in decision.refusing.values()], axis=0)
    best = int(candidates[np.lexsort((others, lacking))[0]])
    return NearestNode(decision.batch.names[best], unmet_on_node(decision, best))


def unmet_counts(decision: Diagnosis) -> Int64Array:
    """Return for each node of the decision how many requirements it does not meet, as in `best_unmet`."""
    total = np.zeros(len(decision.batch), np.int64)
    for choice in choices_of(decision):
        counts: Int64Array | None = None
        judged = iter(_judged(decision, choice))
        for alternative in choice:
            lacking = np.zeros(len(decision.batch), np.int64)
            for _ in alternative:
                lacking += ~next(judged)[1]
            counts = lacking if counts is None else np.minimum(counts, lacking)
        if counts is not None:
            total += counts
    return total


def told_of(asked: Asked) -> AskedOfNode:
    """Return a requirement in the form for output."""
    match asked.requirement:
        case Requirement(key, operator, values):
            return AskedOfNode(asked.source, asked.term, key, operator.label, values[:_MAX_VALUES])
        case Comparison(key, greater, bound):
            return AskedOfNode(asked.source, asked.term, key, "Gt" if greater else "Lt", (str(bound),))
        case FieldRequirement(key, value, negated):
            return AskedOfNode(asked.source, asked.term, key, "NotIn" if negated else "In", (value,))


def _choices(affinity: AffinityToNodes, of_selector: Source, of_terms: Source) -> Iterator[Choice]:
    if affinity.selector.requirements:
        yield [[Asked(of_selector, None, each) for each in affinity.selector.requirements]]
    if affinity.required is not None:
        yield [
            [Asked(of_terms, place, each) for each in _requirements(term)]
            for place, term in enumerate(affinity.required.terms)
            if not term.errors
        ]


def _requirements(term: NodeSelectorTerm) -> Sequence[Requirement | Comparison | FieldRequirement]:
    return [*term.requirements, *term.comparisons, *term.fields]


def _bounded(choices: Iterable[Choice]) -> Sequence[Choice]:
    """Return the choices up to MAX_REQUIREMENTS. The last alternative may be cut."""
    left = MAX_REQUIREMENTS
    found = []
    for choice in choices:
        kept = []
        for alternative in choice:
            if left > 0:
                kept.append(alternative[:left])
                left -= len(alternative)
        found.append(kept)
    return found


def _judged(decision: Diagnosis, choice: Choice) -> Iterator[tuple[Asked, BoolArray]]:
    terms = [(each, each.as_term) for alternative in choice for each in alternative]
    matcher = NodeMatcher(decision.mirror, decision.batch, keys_of_terms(term for _, term in terms))
    for each, term in terms:
        yield each, matcher.term(term)


def _unmet(asked: Asked, node: Node) -> UnmetRequirement:
    told = told_of(asked)
    has = node.name if isinstance(asked.requirement, FieldRequirement) else node.labels.get(told.key)
    return UnmetRequirement(told, has)


EXAMPLES: Final = 3


class NodeTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint that keeps the pod off a node: an untolerated NoSchedule or NoExecute taint."""

    key: str
    value: str
    effect: str


class TaintInCluster(NodeTaint, frozen=True, gc=False):
    """A taint that keeps the pod off, with the nodes that have it."""

    nodes: int
    examples: Sequence[str]


class CordonedNodes(msgspec.Struct, frozen=True, gc=False):
    """The nodes that NodeUnschedulable rejects (spec.unschedulable)."""

    nodes: int
    examples: Sequence[str]


def untolerated_taints(decision: Diagnosis, position: int) -> Sequence[Taint]:
    """Return the taints of a node that keep the pod off, in the order of the node's spec."""
    state, node = decision.state_of(TaintToleration.name), decision.node(position)
    if not isinstance(state, TaintsAndTolerations) or node is None:
        return ()
    return state.untolerated(node.taints, KEEP_PODS_OFF)


def taints_on_node(decision: Diagnosis, position: int) -> Sequence[NodeTaint]:
    """Return the taints of a node that keep the pod off."""
    return [NodeTaint(each.key, each.value, each.effect) for each in untolerated_taints(decision, position)]


def is_cordoned(decision: Diagnosis, position: int) -> bool:
    """Return whether NodeUnschedulable rejects a node."""
    refused = decision.refusing.get(NodeUnschedulable.name)
    return refused is not None and bool(refused[position])


def taints_in_cluster(decision: Diagnosis, limit: int) -> Sequence[TaintInCluster]:
    """Return up to `limit` taints that keep the pod off some node, ordered by number of nodes, most first."""
    state = decision.state_of(TaintToleration.name)
    if not isinstance(state, TaintsAndTolerations):
        return ()
    values, places = state.taints.places(decision.batch)
    numbers = np.bincount(places, minlength=len(values))
    nodes: dict[Taint, int] = {}
    at: dict[Taint, list[int]] = {}
    for place in np.flatnonzero(numbers).tolist():
        for taint in state.untolerated(values[place], KEEP_PODS_OFF):
            nodes[taint] = nodes.get(taint, 0) + int(numbers[place])
            at.setdefault(taint, []).append(place)
    most = sorted(nodes, key=lambda taint: (-nodes[taint], taint))[:limit]
    return [
        TaintInCluster(each.key, each.value, each.effect, nodes[each], _examples(decision, np.isin(places, at[each])))
        for each in most
    ]


def cordoned_in_cluster(decision: Diagnosis) -> CordonedNodes | None:
    """Return the cordoned nodes, or None if NodeUnschedulable rejects none."""
    refused = decision.refusing.get(NodeUnschedulable.name)
    if refused is None:
        return None
    return CordonedNodes(int(np.count_nonzero(refused)), _examples(decision, refused))


def _examples(decision: Diagnosis, which: BoolArray) -> list[str]:
    return [decision.batch.names[position] for position in np.flatnonzero(which)[:EXAMPLES].tolist()]
