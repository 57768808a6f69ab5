"""JSON of a v1.NodeSelector, which pods and volumes have, to the core's value."""

from collections.abc import Sequence

from app.watch.decode import Expression, Wire
from core.objects.node_selector import Expression as Requirement
from core.objects.node_selector import NodeSelector, parse_node_selector


class WireNodeSelectorTerm(Wire):
    """A v1.NodeSelectorTerm."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class WireNodeSelector(Wire):
    """A v1.NodeSelector."""

    node_selector_terms: list[WireNodeSelectorTerm] | None = None


def node_selector_of(wire: WireNodeSelector) -> NodeSelector:
    """Return the selector. Broken terms do not raise: they match nothing, and say why."""
    return parse_node_selector([requirements_of(term) for term in wire.node_selector_terms or ()])


def requirements_of(term: WireNodeSelectorTerm) -> tuple[list[Requirement], list[Requirement]]:
    """Return the expressions and the fields of a term, as `parse_node_selector` takes them."""
    return _requirements(term.match_expressions or ()), _requirements(term.match_fields or ())


def _requirements(expressions: Sequence[Expression]) -> list[Requirement]:
    return [(each.key or "", each.operator or "", each.values or ()) for each in expressions]
