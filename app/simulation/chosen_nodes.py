"""The nodes that a question names: by name, by a label selector as kubectl takes it, and by zone."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from core.explaining.words import listed
from core.mirror.cluster import ClusterMirror
from core.objects.labels import Selector, SelectorError, parse_selector
from core.objects.node import ZONE, Node

_MAX_LISTED: Final = 10
_TERM: Final = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<none>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<operator>==|=|!=)\s*(?P<value>[^\s,=!()]*)"
    r"|\s(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,(?!\s*\Z)|\Z)"
)
_EQUAL: Final[Mapping[str, str]] = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


class QuestionError(Exception):
    """A question that the cluster has no answer to, such as one about a node that it does not have, in one line.

    `field` is the field of the question, and `value` what it has there, if the message is about one value.
    """

    def __init__(self, field: str, message: str, value: str = "") -> None:
        super().__init__(": ".join(filter(None, (field, value, message))))
        self.field = field
        self.value = value
        self.message = message


def selector_of_text(text: str) -> Selector:
    """Return a selector in kubectl's form: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Raises QuestionError.

    Source: k8s.io/apimachinery pkg/labels/selector.go (Parse).
    """
    terms, place = list[tuple[str, str, Sequence[str]]](), 0
    while place < len(text) or not text:
        term = _TERM.match(text, place) if text.strip() else None
        if term is None:
            raise QuestionError(
                "selector", "expected a label selector, as for kubectl", text[place:].strip() or "nothing"
            )
        place = term.end()
        if term["absent"]:
            terms.append((term["none"], "DoesNotExist", ()))
        elif term["operator"] or term["set"]:
            values = [term["value"]] if term["operator"] else [each.strip() for each in term["values"].split(",")]
            terms.append((term["key"], _EQUAL[term["operator"] or term["set"]], values))
        else:
            terms.append((term["key"], "Exists", ()))
    try:
        return parse_selector({}, terms)
    except SelectorError as error:
        raise QuestionError("selector", str(error), text) from None


def chosen_nodes(
    mirror: ClusterMirror, names: Sequence[str], selector: str = "", zone: str = "", *, may_be_all: bool = False
) -> list[str]:
    """Return the names of the nodes that any of these choose: those of `names` as given, then the others by name.

    kubectl takes the nodes of a drain in this order.
    Raises QuestionError for a name, a selector or a zone of no node, and if no node is left, unless they `may_be_all`.
    """
    nodes = {node.name: node for _, node in mirror.nodes}
    given = [name.removeprefix("node/") for name in names]
    found = {*given}
    unknown = sorted(found - nodes.keys())
    if unknown:
        raise QuestionError("nodes", f"no such node: {listed(unknown, _MAX_LISTED)}")
    if selector:
        matches, none = selector_of_text(selector).matches, QuestionError("selector", "no node matches", selector)
        found |= _of(nodes, lambda node: matches(node.labels), none)
    if zone:
        values = sorted({node.labels[ZONE] for node in nodes.values() if ZONE in node.labels})
        has = f"; there are {listed(values, _MAX_LISTED)}" if values else f": no node has the label {ZONE}"
        none = QuestionError("zone", f"no node is in it{has}", zone)
        found |= _of(nodes, lambda node: node.labels.get(ZONE) == zone, none)
    if len(found) == len(nodes) and not may_be_all:
        raise QuestionError("nodes", "all nodes are chosen, so that none is left for their pods")
    return [*dict.fromkeys([*given, *sorted(found)])]


def _of(nodes: Mapping[str, Node], has: Callable[[Node], bool], none: QuestionError) -> set[str]:
    found = {name for name, node in nodes.items() if has(node)}
    if not found:
        raise none
    return found
