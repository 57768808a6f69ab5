"""The response of `filter`, as a table for people, and as names of nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.commands.output_format import node_name
from app.commands.printer import Line
from app.commands.text_columns import counted, wrapped, wrapped_table


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
