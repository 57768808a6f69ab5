"""Requirements of a pod on the labels and the name of a node, each with its source, as explanations report them."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from core.objects.affinity import Comparison, FieldRequirement, NodeSelectorTerm, label_number
from core.objects.labels import Operator, Requirement, requirement_text
from core.objects.node import Node
from core.objects.pod import Pod

MAX_VALUES: Final = 10
"""How many values of a requirement are reported."""
NODE_NAME: Final = "metadata.name"
_ANY_VALUE: Final = "true"
_EMPTY: Final = "''"


class Source(Enum):
    """The field that contains a requirement."""

    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    """requiredDuringSchedulingIgnoredDuringExecution of the pod."""
    ADDED_AFFINITY = "addedAffinity"
    """NodeAffinityArgs.addedAffinity of the scheduler."""


class Sourced(msgspec.Struct, frozen=True):
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

    @property
    def text(self) -> str:
        """The requirement, and what the node has instead."""
        if self.has is None:
            return f"{self.asked.text} (no such label)"
        is_text = self.asked.operator in ("Gt", "Lt") and label_number(self.has) is None
        return f"{self.asked.text} (has {self.has or _EMPTY}{', which is no integer' if is_text else ''})"


def output_form(sourced: Sourced) -> AskedOfNode:
    """Return a requirement in the form for output."""
    match sourced.requirement:
        case Requirement(key, operator, values):
            return AskedOfNode(sourced.source, sourced.term, key, operator.label, values[:MAX_VALUES])
        case Comparison(key, greater, bound):
            return AskedOfNode(sourced.source, sourced.term, key, "Gt" if greater else "Lt", (str(bound),))
        case FieldRequirement(key, value, negated):
            return AskedOfNode(sourced.source, sourced.term, key, "NotIn" if negated else "In", (value,))


def required_keys(pod: Pod) -> set[str]:
    """Return the keys of the labels that the pod asks of its node."""
    selector, required = pod.node_affinity.selector, pod.node_affinity.required
    terms = () if required is None else required.terms
    return {each.key for each in (*selector.requirements, *(one for term in terms for one in term.requirements))}


def label_meeting(key: str, requirements: Sequence[Requirement | Comparison]) -> Mapping[str, str] | None:
    """Return the label of a key that meets all requirements (empty: the label must be missing), or None if none can."""
    values: list[str | None] = []
    for each in requirements:
        if isinstance(each, Comparison):
            values.append(str(each.bound + (1 if each.greater else -1)))
        elif each.operator is Operator.IN:
            values += each.values
    for value in (*values, None, _ANY_VALUE):
        labels = {} if value is None else {key: value}
        if all(each.matches(labels) for each in requirements):
            return labels
    return None
