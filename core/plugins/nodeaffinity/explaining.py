"""What NodeAffinity adds to explanations: requirements on labels and names that nodes do not meet, and remedies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured, Remedies
from core.explaining.node_labels import text_of_requirement, values_text
from core.explaining.obstacles import MAX_STEPS, MAX_TERMS, NEAREST, Obstacles, Proposal, Search, Turn, proposed
from core.explaining.pod_steps import CorrectRequirement, DropRequirement
from core.explaining.remedy import CONTROL_PLANE, SetLabel, Step
from core.explaining.requirements import (
    NODE_NAME,
    AskedOfNode,
    Source,
    Sourced,
    UnmetRequirement,
    label_meeting,
    output_form,
)
from core.explaining.typos import mistaken_key, mistaken_value
from core.explaining.words import counted, which_have
from core.framework.node_matcher import NodeMatcher, keys_of_terms
from core.mirror.topology import BoolArray, Int64Array
from core.objects.affinity import Comparison, FieldRequirement, NodeAffinity, NodeSelectorTerm
from core.objects.labels import Operator, Requirement
from core.objects.node import TOPOLOGY_LABELS, Node
from core.plugins.nodeaffinity.filtering import NAME, RequiredState

MAX_REQUIREMENTS: Final = 64
"""How many requirements are checked. Each costs a pass over the nodes, and a pod may have thousands."""
_MAX_CONTRADICTING: Final = 10
_LOOKED_AT: Final = 256
"""How many nodes are checked for labels that the pod misspells."""

Choice: TypeAlias = Sequence[Sequence[Sourced]]
"""Alternatives with their requirements. A node must meet one alternative."""


class RequirementInCluster(msgspec.Struct, frozen=True, gc=False):
    """A requirement with the number of known nodes that do not meet it, regardless of other requirements."""

    asked: AskedOfNode
    nodes: int
    has: str
    """What the nodes have instead, if no known node meets it. Empty otherwise."""

    @property
    def text(self) -> str:
        """The requirement and the nodes in words."""
        nodes, has = counted(self.nodes, "node"), which_have(self.nodes, self.has)
        return f"requires {self.asked.text}: not met by {nodes}{has}"


class NearestNode(msgspec.Struct, frozen=True, gc=False):
    """The node with the fewest unmet requirements. Among ties, the one that the fewest other plugins reject."""

    node: str
    unmet: Sequence[UnmetRequirement]

    @property
    def text(self) -> str:
        """The node and its unmet requirements in words."""
        return f"nearest by labels: {self.node}, which lacks {', '.join(each.text for each in self.unmet)}"


def choices_of(decision: Decision) -> Sequence[Choice]:
    """Return the requirements of NodeAffinity: at most the first 64, because a pod may have thousands.

    Empty if NodeAffinity is not enabled or has no requirements. Invalid terms, which no node can meet, are left out.
    """
    state = decision.state_of(NAME)
    if not isinstance(state, RequiredState):
        return ()
    choices = (
        *_choices(state.affinity, Source.NODE_SELECTOR, Source.NODE_AFFINITY),
        *_choices(state.added, Source.ADDED_AFFINITY, Source.ADDED_AFFINITY),
    )
    return _bounded(choices)


def best_alternatives(choices: Sequence[Choice], node: Node) -> Sequence[Sourced]:
    """Return the best alternative of each choice: the one with the fewest unmet requirements on the node."""
    best: list[Sourced] = []
    for choice in choices:
        best += min(choice, key=lambda alternative: sum(not each.met_by(node) for each in alternative), default=())
    return best


def best_unmet(choices: Sequence[Choice], node: Node) -> Sequence[Sourced]:
    """Return the unmet requirements of `best_alternatives` for a node."""
    return [each for each in best_alternatives(choices, node) if not each.met_by(node)]


def unmet_on_node(decision: Decision, position: int) -> Sequence[UnmetRequirement]:
    """Return the unmet requirements of one node."""
    node = decision.node(position)
    return [] if node is None else [_unmet(each, node) for each in best_unmet(choices_of(decision), node)]


def requirements_in_cluster(decision: Decision, limit: int) -> Sequence[RequirementInCluster]:
    """Return up to `limit` requirements, those that exclude most nodes first."""
    excluded = [
        (each, int(np.count_nonzero(~met[decision.known])))
        for choice in choices_of(decision)
        for each, met in _judged(decision, choice)
    ]
    most = sorted((each for each in excluded if each[1]), key=lambda each: -each[1])[:limit]
    return [
        RequirementInCluster(output_form(each), nodes, _instead(decision, each) if nodes == len(decision.known) else "")
        for each, nodes in most
    ]


def _instead(decision: Decision, required: Sourced) -> str:
    if isinstance(required.requirement, FieldRequirement):
        return "" if required.requirement.value in decision.mirror.nodes.slots else "other names"
    return values_text(decision, (required.requirement.key,))


def impossible_terms(decision: Decision, limit: int) -> Sequence[str]:
    """Return up to `limit` parts of the pod's required node affinity that no node can match, whatever its labels.

    These are terms with an error, terms that contradict themselves or the nodeSelector, and empty terms if there are no
    others. Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go (NewLazyErrorNodeSelector,
    newNodeSelectorTerm): a term that cannot be parsed matches no node, and an empty term is left out.
    """
    state = decision.state_of(NAME)
    if not isinstance(state, RequiredState) or NAME not in decision.refusing:
        return ()
    if state.affinity.required is None:
        return ()
    if not state.affinity.required.terms:
        return ["it has only empty terms, which match no node"]
    return [text for faults in _faults(state.affinity) for text in faults][:limit]


def is_unmeetable(affinity: NodeAffinity) -> bool:
    """Return whether every affinity term is empty or contradicts itself, without an error.

    NodeAffinity's queueing hint skips every node then. After an error it does not.
    """
    if affinity.node_names is not None and not affinity.node_names:
        return True
    return affinity.required is not None and all(
        faults and not term.errors for faults, term in zip(_faults(affinity), affinity.required.terms, strict=False)
    )


def _faults(affinity: NodeAffinity) -> Iterator[Sequence[str]]:
    """Yield for each of the first 64 affinity terms why no node can match it. Empty for a term that a node can."""
    for term in () if affinity.required is None else affinity.required.terms[:MAX_REQUIREMENTS]:
        yield term.errors or [
            *_contradictions((*affinity.selector.requirements, *term.requirements, *term.comparisons))
        ]


def _contradictions(required: Sequence[Requirement | Comparison]) -> Iterator[str]:
    by_key: dict[str, list[Requirement | Comparison]] = {}
    for each in required[:MAX_REQUIREMENTS]:
        by_key.setdefault(each.key, []).append(each)
    for of_key in by_key.values():
        if _contradict(of_key):
            yield f"{' and '.join(map(text_of_requirement, of_key[:_MAX_CONTRADICTING]))} contradict each other"


def _contradict(required: Sequence[Requirement | Comparison]) -> bool:
    """Return whether no value of a label, and no absence of it, meets all requirements on its key."""
    listed = next((each for each in required if isinstance(each, Requirement) and each.operator is Operator.IN), None)
    if listed is not None:
        return not any(all(each.matches({listed.key: value}) for each in required) for value in listed.values)
    if all(each.matches({}) for each in required):
        return False
    if any(isinstance(each, Requirement) and each.operator is Operator.DOES_NOT_EXIST for each in required):
        return True
    compared = [each for each in required if isinstance(each, Comparison)]
    lowest = max((each.bound + 1 for each in compared if each.greater), default=None)
    highest = min((each.bound - 1 for each in compared if not each.greater), default=None)
    return lowest is not None and highest is not None and lowest > highest


def nearest_node(decision: Decision) -> NearestNode | None:
    """Return the nearest of the nodes that NodeAffinity rejects, or None if it rejects none, or all in PreFilter.

    None, too, if no term of the pod can be met by any node: then no node is near.
    """
    rejected, choices = decision.refusing.get(NAME), choices_of(decision)
    if rejected is None or not choices or not len(decision.known):
        return None
    if decision.pod.node_affinity.required is not None and all(_faults(decision.pod.node_affinity)):
        return None
    candidates = decision.known[rejected[decision.known]]
    if not len(candidates):
        return None
    lacking = unmet_counts(decision)[candidates]
    others = np.sum([each[candidates] for each in decision.refusing.values()], axis=0)
    best = int(candidates[np.lexsort((others, lacking))[0]])
    return NearestNode(decision.batch.names[best], unmet_on_node(decision, best))


def unmet_counts(decision: Decision) -> Int64Array:
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


def _choices(affinity: NodeAffinity, of_selector: Source, of_terms: Source) -> Iterator[Choice]:
    if affinity.selector.requirements:
        yield [[Sourced(of_selector, None, each) for each in affinity.selector.requirements]]
    if affinity.required is not None:
        yield [
            [Sourced(of_terms, place, each) for each in _requirements(term)]
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
        remaining = []
        for alternative in choice:
            if left > 0:
                remaining.append(alternative[:left])
                left -= len(alternative)
        found.append(remaining)
    return found


def _judged(decision: Decision, choice: Choice) -> Iterator[tuple[Sourced, BoolArray]]:
    terms = [(each, each.as_term) for alternative in choice for each in alternative]
    matcher = NodeMatcher(decision.mirror, decision.batch, keys_of_terms(term for _, term in terms))
    for each, term in terms:
        yield each, matcher.term(term)


def _unmet(required: Sourced, node: Node) -> UnmetRequirement:
    rendered = output_form(required)
    has = node.name if isinstance(required.requirement, FieldRequirement) else node.labels.get(rendered.key)
    return UnmetRequirement(rendered, has)


_PLATFORM: Final = frozenset(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "os"))
"""Labels without which the pod's containers cannot run."""
_OF_MACHINES: Final = (
    *("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "karpenter.sh", "karpenter.k8s.aws"),
    *("eks.amazonaws.com", "cloud.google.com", "kubernetes.azure.com"),
)
"""Domains of labels with facts about a node: kubelet, cloud providers and detectors of hardware set them, and set back
what a person changes. Source: k8s.io/kubernetes pkg/kubelet/kubelet_node_status.go (updateDefaultLabels), and
kubernetes-sigs/node-feature-discovery pkg/nfd-master."""
_OF_PEOPLE: Final = ("node-role.kubernetes.io", "node-restriction.kubernetes.io")
_TOPOLOGY: Final = "topology."
"""Start of the domains of labels that kubelet sets for a CSI driver."""


def drop_requirements(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Remove the requirements that a node does not meet. None if they are not the pod's, but the scheduler's.

    None also for the architecture and the operating system, because the containers would not run, and for the name of
    the node in a DaemonSet's pod: its controller asks for it in each pod that it makes (k8s.io/kubernetes
    pkg/controller/daemon/util/daemonset_util.go, ReplaceDaemonSetPodNodeNameNodeAffinity).
    """
    node, choices = obstacles.decision.node(position), choices_of(obstacles.decision)
    unmet = () if node is None else best_unmet(choices, node)
    if not unmet or any(each.source is Source.ADDED_AFFINITY for each in unmet):
        return None
    steps = [DropRequirement(output_form(each)) for each in unmet]
    if any(each.asked.key in _PLATFORM for each in steps):
        return None
    if obstacles.decision.pod.of_daemon_set and any(each.asked.key == NODE_NAME for each in steps):
        return None
    return steps


def label_node(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Set the labels that a node lacks. None for its name, and for labels that identify a node."""
    node, choices = obstacles.decision.node(position), choices_of(obstacles.decision)
    if node is None:
        return None
    best = best_alternatives(choices, node)
    steps: dict[str, Step] = {}
    for each in best:
        if each.met_by(node):
            continue
        if isinstance(each.requirement, FieldRequirement) or _is_fact(each.requirement.key):
            return None
        step = _label(each.requirement.key, best, node)
        if step is None:
            return None
        steps[step.key] = step
    return [*steps.values()] or None


def _is_fact(key: str) -> bool:
    """Return whether a label says what a node is, so that a person must not change it."""
    domain = key.rpartition("/")[0]
    if key in CONTROL_PLANE or domain.startswith(_TOPOLOGY):
        return True
    return domain not in _OF_PEOPLE and any(f".{domain}".endswith(f".{each}") for each in _OF_MACHINES)


def _label(key: str, required_all: Sequence[Sourced], node: Node) -> SetLabel | None:
    required = [
        each.requirement
        for each in required_all
        if not isinstance(each.requirement, FieldRequirement) and each.requirement.key == key
    ]
    labels = label_meeting(key, required)
    return None if labels is None else SetLabel(node.name, key, labels.get(key), node.labels.get(key))


def drop(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to remove unmet requirements, for the nearest of the nodes that no other plugin rejects."""
    for position in _nearest_by_labels(obstacles):
        yield from proposed(obstacles, drop_requirements, position)


def label(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to set the missing labels on these nodes."""
    for position in _nearest_by_labels(obstacles):
        yield from proposed(obstacles, label_node, position)


def _nearest_by_labels(obstacles: Obstacles) -> Sequence[int]:
    """Return some nodes with the fewest unmet requirements, among those that only NodeAffinity rejects."""
    positions = obstacles.only({NAME})
    if not len(positions):
        return ()
    lacking = unmet_counts(obstacles.decision)[positions]
    nearest: list[int] = positions[lacking == lacking.min()][:NEAREST].tolist()
    return nearest


def correct(obstacles: Obstacles) -> Iterator[Proposal]:
    """Propose to ask for a label of a node instead of one that no node has and that differs by a typo."""
    decision = obstacles.decision
    every, choices = len(decision.known), choices_of(decision)
    nowhere = {
        (each.asked.source, each.asked.term, each.asked.key, each.asked.operator, tuple(each.asked.values))
        for each in requirements_in_cluster(decision, MAX_TERMS)
        if each.nodes == every and each.asked.operator in ("In", "Exists")
    }
    seen: list[Sequence[Step]] = []
    for position in obstacles.some_of(obstacles.only({NAME}), _LOOKED_AT) if nowhere else ():
        node = decision.node(position)
        unmet = [] if node is None else [output_form(each) for each in best_unmet(choices, node)]
        steps: list[Step] = []
        for required in unmet:
            known = (required.source, required.term, required.key, required.operator, tuple(required.values)) in nowhere
            label = _meant(required.key, required.values, node) if known and node is not None else None
            if label is not None:
                steps.append(CorrectRequirement(required, *label))
        if steps and len(steps) == len(unmet) <= MAX_STEPS and steps not in seen:
            seen.append(steps)
            yield Proposal(decision.batch.names[position], steps)


def _meant(key: str, values: Sequence[str], node: Node) -> tuple[str, str] | None:
    """Return the label of the node that was probably meant, or None."""
    has = node.labels.get(key)
    if has is not None:
        return (key, has) if any(mistaken_value(each, has) for each in values) else None
    for other, value in sorted(node.labels.items()):
        if mistaken_key(key, other) and any(
            value == each or mistaken_value(each, value) for each in values or (value,)
        ):
            return other, value
    return None


class ExplainedNodeAffinity(Explained):
    """What the plugin adds to explanations."""

    keeps_off = "the node affinity or nodeSelector"
    events = (
        Event(
            "Node",
            ("Add", "UpdateNodeLabel"),
            may_help=lambda decision, _: not is_unmeetable(decision.pod.node_affinity),
        ),
    )
    measured = Measured(
        on_node={"requirements": lambda decision, position, _: unmet_on_node(decision, position)},
        in_cluster={
            "requirements": requirements_in_cluster,
            "impossible": impossible_terms,
            "nearest": lambda decision, _: nearest_node(decision),
        },
    )
    remedies = Remedies(
        searches=(
            Search(Turn.CORRECT_REQUIREMENTS, correct, most=1),
            Search(Turn.DROP, drop),
            Search(Turn.LABEL, label),
        ),
        fix=drop_requirements,
    )

    def labels_needed(self, decision: Decision) -> Mapping[str, str]:
        """Return the zone and the region that the pod or its scheduler names: no copy of another node has them."""
        state = decision.state_of(NAME)
        affinities = (state.added, state.affinity) if isinstance(state, RequiredState) else ()
        alone = (
            each.required.terms for each in affinities if each.required is not None and len(each.required.terms) == 1
        )
        selectors = (each.selector.requirements for each in affinities)
        required = chain(*selectors, *(term.requirements for terms in alone for term in terms))
        named = [each for each in required if each.operator is Operator.IN and len(each.values) == 1]
        return {each.key: each.values[0] for each in named if each.key in TOPOLOGY_LABELS}

    def name_needed(self, decision: Decision) -> str:
        """Return the first of the names that the pod allows."""
        return min(decision.pod.node_affinity.node_names or ("",))
