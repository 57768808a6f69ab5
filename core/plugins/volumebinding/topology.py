"""Things that only some nodes can reach, found by the nodes' labels without a look at each of them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from core.objects.labels import Operator, Requirement, Selector
from core.objects.node_selector import NodeSelector, NodeSelectorTerm

Thing = TypeVar("Thing")


class ByTopology(Generic[Thing]):
    """Things in an order, each with the nodes that can reach it; None: all nodes.

    A local volume has a term with one host name, so that of 5,000 volumes a node has to be held against a few.
    """

    def __init__(self, things: Iterable[tuple[Thing, NodeSelector | None]]) -> None:
        self.keys: set[str] = set()
        """The label keys that decide."""
        self._things: list[tuple[Thing, NodeSelector | None]] = []  # each with what is left to be held against labels
        self._anywhere: list[int] = []  # places of things that no label alone rules out
        # label key -> value -> places of things that want it
        self._anchored: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, (thing, selector) in enumerate(things):
            anchors = _anchors(selector)
            for key, value in {(anchor.key, value) for anchor in anchors or () for value in anchor.values}:
                self._anchored[key][value].append(place)
            if anchors is None:
                self._anywhere.append(place)
            self.keys |= label_keys(selector)
            self._things.append((thing, None if _is_one_requirement(selector) and anchors else selector))

    def reached(self, labels: Mapping[str, str]) -> Iterator[Thing]:
        """Yield what a node with these labels can reach, in the order."""
        found = [self._anywhere] if self._anywhere else []
        for key, by_value in self._anchored.items():
            value = labels.get(key)
            if value is not None and value in by_value:
                found.append(by_value[value])
        for place in found[0] if len(found) == 1 else sorted(set().union(*found)):
            thing, selector = self._things[place]
            if selector is None or selector.matches(labels):
                yield thing


def label_keys(selector: NodeSelector | None) -> set[str]:
    """Return the label keys that a selector reads."""
    terms = () if selector is None else selector.terms
    return {each.key for term in terms for each in term.requirements} | {
        each.key for term in terms for each in term.comparisons
    }


def selected_nodes(selector: Selector) -> NodeSelector | None:
    """Return a label selector as the node selector that selects the same nodes, None for all of them."""
    if selector.everything:
        return None
    return NodeSelector(() if selector.nothing else (NodeSelectorTerm(selector.requirements),))


def _anchors(selector: NodeSelector | None) -> list[Requirement] | None:
    """Return for each term a requirement of certain values; None if a term has none."""
    if selector is None:
        return None
    anchors = [_anchor(term) for term in selector.terms]
    found = [anchor for anchor in anchors if anchor is not None]
    return found if len(found) == len(anchors) else None


def _anchor(term: NodeSelectorTerm) -> Requirement | None:
    return next((each for each in term.requirements if each.operator is Operator.IN), None)


def _is_one_requirement(selector: NodeSelector | None) -> bool:
    if selector is None or len(selector.terms) != 1:
        return False
    (term,) = selector.terms
    return len(term.requirements) == 1 and not term.comparisons
