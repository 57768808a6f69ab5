"""The responses of `filter` and `prioritize`, as tables for people, and as names of nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from app.commands.output_format import node_name
from app.commands.printer import Line
from app.commands.text_columns import Side, counted, table, wrapped, wrapped_table

_SCORES: Final[Sequence[tuple[str, Side]]] = (("NODE", "left"), ("SCORE", "right"))


def filter_text(result: Mapping[str, Any], *, wide: bool) -> Sequence[Line]:
    """Return an ExtenderFilterResult of names as lines: each node with its result."""
    if result["Error"]:
        return wrapped(f"Error: {result['Error']}")
    passed: Sequence[str] = result["NodeNames"] or ()
    rows = [(node, "fits", "") for node in passed]
    for key, verdict in (("FailedNodes", "fails"), ("FailedAndUnresolvableNodes", "unresolvable")):
        rows += [(node, verdict, reason) for node, reason in (result[key] or {}).items()]
    head = wrapped(f"Fits on {len(passed):,} of {counted(len(rows), 'node')}.")
    return [*head, *wrapped_table(("NODE", "VERDICT", "REASON"), rows, 0, wide=wide)]


def filter_names(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the nodes that fit."""
    return map(node_name, result["NodeNames"] or ())


def prioritize_text(result: Sequence[Mapping[str, Any]], *, wide: bool) -> Sequence[Line]:
    """Return a HostPriorityList as a table, in its order."""
    return table(_SCORES, [(each["Host"], each["Score"]) for each in result], 0, wide=wide)


def prioritize_names(result: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of all nodes, the highest score first. Equal scores keep their order."""
    return (node_name(each["Host"]) for each in sorted(result, key=lambda each: -each["Score"]))
