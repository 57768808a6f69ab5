"""Inter-pod affinity terms as values that can be interned: equal terms of different pods share one counter.

Source: k8s.io/kubernetes pkg/scheduler/framework/types.go (newAffinityTerm, getNamespacesFromPodAffinityTerm).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from core.objects.labels import (
    EVERYTHING,
    OPERATORS,
    Operator,
    Requirement,
    Selector,
    errors_text,
    requirement,
    requirement_errors,
    set_errors,
)
from core.objects.quantity import MAX_INT64, json_list, quoted


class PodMatcher(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The pods that a term selects: pods with the labels, in one of the namespaces or in a selected namespace.

    If the term names no namespace, `namespaces` has the namespace of the pod with the term.
    """

    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector


class AffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A PodAffinityTerm: a matcher of pods, and the node label whose values are the topology domains."""

    matcher: PodMatcher
    topology_key: str


class WeightedAffinityTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A preferred term with its weight, 1..100. The list that contains the term determines its sign."""

    term: AffinityTerm
    weight: int


class TermError(msgspec.Struct, frozen=True, gc=False):
    """Why one of the four lists of terms could not be parsed.

    `group` is upstream's name of the list (`requiredAffinityTerms`), `field` the path under `spec.affinity`.
    """

    group: str
    field: str
    message: str


class PodAffinity(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The four lists of inter-pod affinity terms of one pod.

    A list with an invalid term is empty and named in `errors`. The other lists stay valid. Upstream does the same for
    an existing pod (NodeInfo.AddPod ignores the error), and rejects an incoming pod.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedAffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedAffinityTerm, ...] = ()
    errors: tuple[TermError, ...] = ()

    @property
    def parse_error(self) -> str:
        """The error of upstream's NewPodInfo for these terms. Empty if all could be parsed."""
        if not self.errors:
            return ""
        return errors_text([f"{error.group}: {error.message}" for error in self.errors])


NO_AFFINITY: Final = PodAffinity()


# Node selectors: requirements on nodes in node affinity (of pods, volumes) and in topologies of a StorageClass.
#
# Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity/nodeaffinity.go and k8s.io/apimachinery
# pkg/labels/selector.go.

Expression: TypeAlias = tuple[str, str, Sequence[str]]
"""A NodeSelectorRequirement: key, operator, values."""

_ORDERINGS: Final = ("Gt", "Lt")
_LABEL_OPERATORS: Final = '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
_FIELD_OPERATORS: Final = '"In", "NotIn"'
_integer: Final = re.compile("([+-]?)0*([0-9]{1,19})")


class Comparison(msgspec.Struct, frozen=True, order=True, gc=False):
    """A Gt or Lt requirement. Only a label whose value is an int64 can meet it."""

    key: str
    greater: bool
    bound: int

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the label exists and its value is beyond the bound."""
        number = label_number(labels.get(self.key, ""))
        if number is None:
            return False
        return number > self.bound if self.greater else number < self.bound


class FieldRequirement(msgspec.Struct, frozen=True, order=True, gc=False):
    """A matchFields requirement, In or NotIn with one value. Nodes have one field, `metadata.name`."""

    key: str
    value: str
    negated: bool = False

    def matches(self, name: str) -> bool:
        """Return whether a node with this name meets the requirement."""
        field = name if self.key == "metadata.name" else ""
        return (field == self.value) is not self.negated


class NodeSelectorTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A conjunction of requirements, sorted. With `errors` (upstream's messages) it matches no node."""

    requirements: tuple[Requirement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    fields: tuple[FieldRequirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node meets every requirement. With an empty name, field requirements are ignored."""
        if self.errors or (name and not all(field.matches(name) for field in self.fields)):
            return False
        return all(each.matches(labels) for each in self.requirements) and all(
            each.matches(labels) for each in self.comparisons
        )

    @property
    def size(self) -> int:
        """Size of the value: 1, plus the number of requirements and of their values."""
        values = sum([1 + len(each.values) for each in self.requirements])
        return 1 + values + len(self.comparisons) + len(self.fields) + len(self.errors)


class NodeSelector(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A disjunction of terms. Empty terms of the API object are left out, because they match no node."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str = "") -> bool:
        """Return whether a node meets a term. Without a name (a volume's affinity), field requirements are ignored.

        An invalid term matches no node, and the other terms stay valid, as in upstream's LazyErrorNodeSelector.
        """
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def size(self) -> int:
        """Size of the value: the number of terms, requirements, and their values."""
        return sum([term.size for term in self.terms])

    @property
    def parse_error(self) -> str:
        """Upstream's error for the invalid terms if no other term matches. Empty if all could be parsed."""
        errors = [error for term in self.terms for error in term.errors]
        return errors_text(errors) if errors else ""


def parse_node_selector(terms: Sequence[tuple[Sequence[Expression], Sequence[Expression]]]) -> NodeSelector:
    """Return the selector for the nodeSelectorTerms of a v1.NodeSelector, each as (matchExpressions, matchFields)."""
    return NodeSelector(
        tuple(
            _term(f"nodeSelectorTerms[{index}]", expressions, fields)
            for index, (expressions, fields) in enumerate(terms)
            if expressions or fields
        )
    )


def _term(path: str, expressions: Sequence[Expression], fields: Sequence[Expression]) -> NodeSelectorTerm:
    errors: list[str] = []
    requirements: set[Requirement] = set()
    comparisons: set[Comparison] = set()
    for index, (key, operator, values) in enumerate(expressions):
        where = f"{path}.matchExpressions[{index}]"
        if broken := _expression_errors(where, key, operator, values):
            errors += broken
        elif operator in _ORDERINGS:
            comparisons.add(Comparison(key, operator == "Gt", int(values[0])))
        else:
            requirements.add(requirement(key, OPERATORS[operator], values))
    for index, (_, operator, values) in enumerate(fields):
        errors += _field_errors(f"{path}.matchFields[{index}]", operator, values)
    if errors:
        return NodeSelectorTerm(errors=tuple(errors))
    return NodeSelectorTerm(
        tuple(sorted(requirements)),
        tuple(sorted(comparisons)),
        tuple(sorted({FieldRequirement(key, values[0], operator == "NotIn") for key, operator, values in fields})),
    )


def _expression_errors(path: str, key: str, operator: str, values: Sequence[str]) -> list[str]:
    if operator in _ORDERINGS:
        return requirement_errors(key, values, _ordering_errors(values), path)
    if operator in OPERATORS:
        return requirement_errors(key, values, set_errors(OPERATORS[operator], values), path)
    return [_unsupported(path, operator, _LABEL_OPERATORS)]


def _ordering_errors(values: Sequence[str]) -> list[str]:
    errors = []
    if len(values) != 1:
        errors.append(f"values: {_invalid(values)}: for 'Gt', 'Lt' operators, exactly one value is required")
    return errors + [
        f"values[{index}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values)
        if label_number(value) is None
    ]


def _field_errors(path: str, operator: str, values: Sequence[str]) -> list[str]:
    if operator not in ("In", "NotIn"):
        return [_unsupported(path, operator, _FIELD_OPERATORS)]
    return [] if len(values) == 1 else [f"{path}.values: {_invalid(values)}: must have one element"]


def _invalid(values: Sequence[str]) -> str:
    return f"Invalid value: {json_list(list(values)) if values else 'null'}"


def _unsupported(path: str, operator: str, supported: str) -> str:
    return f"{path}.operator: Unsupported value: {quoted(operator)}: supported values: {supported}"


def label_number(text: str) -> int | None:
    """Return the integer value of a label, parsed like strconv.ParseInt(text, 10, 64), or None if that fails."""
    parts = _integer.fullmatch(text)
    if parts is None:
        return None
    number = int(parts[1] + parts[2])
    return number if -MAX_INT64 - 1 <= number <= MAX_INT64 else None


# A pod's requirements on nodes: its nodeSelector and its node affinity (nodeaffinity.go: GetRequiredNodeAffinity,
# NewPreferredSchedulingTerms; k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go).


class PreferredTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A PreferredSchedulingTerm: the weight of a node that meets the term."""

    weight: int
    term: NodeSelectorTerm


class NodeAffinity(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The requirements and preferences of a pod for its node.

    `selector` is the nodeSelector. `required` is None if the pod has no required node affinity. A required node
    affinity without terms matches no node. The terms of `required` are alternatives, so they are sorted.

    `preferred` excludes empty terms and terms of weight 0. It is sorted, unless a term is invalid, because
    `preferred_error` reports the errors in their order. `empty_preferences` means that the pod has preferences, but
    that all are excluded.

    `node_names` are the only nodes that the `metadata.name` fields of the required terms allow. It is None if a term
    has no such field, and empty if every term contradicts itself.
    """

    selector: Selector = EVERYTHING
    required: NodeSelector | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    node_names: frozenset[str] | None = None
    empty_preferences: bool = False

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node meets the requirements. No node meets an invalid term (RequiredNodeAffinity.Match)."""
        if not self.selector.matches(labels):
            return False
        return self.required is None or self.required.matches(labels, name)

    @property
    def requires(self) -> bool:
        """Whether there are requirements, not only preferences."""
        return self.required is not None or not self.selector.everything

    @property
    def size(self) -> int:
        """Size of the value: the number of terms, requirements, and their values."""
        required = 0 if self.required is None else self.required.size
        return self.selector.size + required + sum([preferred.term.size for preferred in self.preferred])

    @property
    def preferred_error(self) -> str:
        """Upstream's error for invalid preferred terms. Empty if all could be parsed."""
        errors = [error for preferred in self.preferred for error in preferred.term.errors]
        return errors_text(errors) if errors else ""


NO_NODE_AFFINITY: Final = NodeAffinity()


def selector_from_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector of a nodeSelector, which is not validated (labels.SelectorFromSet)."""
    if not labels:
        return EVERYTHING
    return Selector(tuple(requirement(key, Operator.IN, [labels[key]]) for key in sorted(labels)))
