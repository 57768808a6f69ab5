"""JSON of a v1.NodeSelector, which pods and volumes have, to the core's value."""

from collections.abc import Sequence

from app.objects.decode import Expression, Wire, refuse_long_key
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
    """Return the selector. Invalid terms do not raise. They match no node, and have the error.

    Raises DecodeError for a key that no label can have.
    """
    return parse_node_selector(
        [
            requirements_of(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(wire.node_selector_terms or ())
        ]
    )


def requirements_of(term: WireNodeSelectorTerm, path: str) -> tuple[list[Requirement], list[Requirement]]:
    """Return the expressions and the fields of a term, for `parse_node_selector`. Raises DecodeError."""
    return (
        _requirements(term.match_expressions or (), f"{path}.matchExpressions"),
        _requirements(term.match_fields or (), f"{path}.matchFields"),
    )


def _requirements(expressions: Sequence[Expression], path: str) -> list[Requirement]:
    for index, each in enumerate(expressions):
        refuse_long_key(each.key, f"{path}[{index}].key")
    return [(each.key or "", each.operator or "", each.values or ()) for each in expressions]
