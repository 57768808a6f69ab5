"""What encoding has in common for all kinds: core values to v1 objects from which decoding makes equal values.

The reverse of app/watch/decode*.py. Quantities are written in one form, lists that are sets are sorted, and what an
object does not say is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from core.objects.labels import OPERATORS, Operator, Requirement, Selector
from core.objects.node_selector import NodeSelector, NodeSelectorTerm
from core.objects.owner import ControllerRef

V1: TypeAlias = dict[str, object]

_OPERATOR_NAMES: Final[Mapping[Operator, str]] = {operator: name for name, operator in OPERATORS.items()}
_MILLIS: Final = 1000


class NotExpressibleError(ValueError):
    """An object that no v1 object stands for, as decoding has kept too little of it; the message names it and why."""


class Versioned(Protocol):
    """What every object has besides its name."""

    @property
    def uid(self) -> str:
        """Who it is through all its updates."""

    @property
    def resource_version(self) -> str:
        """Which of its states this is."""


def present(members: Mapping[str, object]) -> V1:
    """Return the members that say something: nothing empty, no zero, no false."""
    return {name: value for name, value in members.items() if value}


def metadata_of(found: Versioned, name: str, **members: object) -> V1:
    """Return the metadata of an object, with what else is to stand in it."""
    shared = {"uid": found.uid, "resourceVersion": found.resource_version}
    return present({"name": name, **members, **shared})


def owners_of(controller: ControllerRef | None) -> Sequence[V1]:
    """Return the ownerReferences."""
    if controller is None:
        return ()
    said = {"apiVersion": controller.api_version, "kind": controller.kind, "name": controller.name}
    return [{**present({**said, "uid": controller.uid}), "controller": True}]


def quantities_of(amounts: Mapping[str, int]) -> dict[str, str]:
    """Return a v1.ResourceList of amounts as the scheduler counts them: cpu in millicores, all others whole."""
    return {name: cpu_quantity(amount) if name == "cpu" else str(amount) for name, amount in amounts.items()}


def cpu_quantity(millis: int) -> str:
    """Return millicores as a quantity."""
    return f"{millis}m" if millis % _MILLIS else str(millis // _MILLIS)


def label_selector(selector: Selector) -> V1 | None:
    """Return a LabelSelector; None (null) is the one that selects nothing."""
    if selector.nothing:
        return None
    labels: dict[str, str] = {}
    expressions: list[V1] = []
    for requirement in selector.requirements:
        one_value = requirement.operator is Operator.IN and len(requirement.values) == 1
        if one_value and requirement.key not in labels:
            labels[requirement.key] = requirement.values[0]
        else:
            expressions.append(_expression(requirement))
    return present({"matchLabels": labels, "matchExpressions": expressions})


def selected_labels(selector: Selector) -> dict[str, str]:
    """Return a selector of labels alone, such as a nodeSelector, as a mapping."""
    return {requirement.key: requirement.values[0] for requirement in selector.requirements}


def node_selector(selector: NodeSelector, whose: str) -> V1:
    """Return a v1.NodeSelector. Raises NotExpressibleError for a broken term, of which only the error is known."""
    return {"nodeSelectorTerms": [node_selector_term(term, whose) for term in selector.terms]}


def node_selector_term(term: NodeSelectorTerm, whose: str) -> V1:
    """Return a v1.NodeSelectorTerm. Raises NotExpressibleError for a broken one."""
    if term.errors:
        raise NotExpressibleError(f"{whose}: a broken node selector term cannot be written again: {term.errors[0]}")
    comparisons: Iterable[V1] = (
        {"key": each.key, "operator": "Gt" if each.greater else "Lt", "values": [str(each.bound)]}
        for each in term.comparisons
    )
    fields = [
        {"key": each.key, "operator": "NotIn" if each.negated else "In", "values": [each.value]} for each in term.fields
    ]
    expressions = [*map(_expression, term.requirements), *comparisons]
    return present({"matchExpressions": expressions, "matchFields": fields})


def _expression(requirement: Requirement) -> V1:
    said: V1 = {"key": requirement.key, "operator": _OPERATOR_NAMES[requirement.operator]}
    return {**said, "values": list(requirement.values)} if requirement.values else said
