"""Finds the things that a node can reach by the node's labels, without a check of each thing."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar

from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.labels import Operator, Requirement, Selector

Thing = TypeVar("Thing")


class ByTopology(Generic[Thing]):
    """Things in an order, each with a selector of the nodes that can reach it (None: all nodes).

    A local volume has a term with one host name, so a node is compared with only a few of 5,000 volumes.
    """

    def __init__(self, things: Iterable[tuple[Thing, NodeSelector | None]]) -> None:
        self.keys: set[str] = set()
        """The node labels, by key, that decide."""
        self._things: list[tuple[Thing, NodeSelector | None]] = []  # each with the remaining requirements on labels
        self._anywhere: list[int] = []  # indices of things that no single label excludes
        # label key -> value -> indices of things that require it
        self._anchored: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place, (thing, selector) in enumerate(things):
            anchors = _anchors(selector)
            for key, value in {(anchor.key, value) for anchor in anchors or () for value in anchor.values}:
                self._anchored[key][value].append(place)
            if anchors is None:
                self._anywhere.append(place)
            self.keys |= label_keys(selector)
            self._things.append((thing, None if _is_one_requirement(selector) and anchors else selector))

    def __iter__(self) -> Iterator[Thing]:
        """Yield all things, in their order."""
        return (thing for thing, _ in self._things)

    @property
    def loose(self) -> int:
        """How many things no single label excludes."""
        return len(self._anywhere)

    def anywhere(self, wanted: Callable[[Thing], bool]) -> list[int]:
        """Return the indices of the wanted things that no single label excludes, for `reached`."""
        return [place for place in self._anywhere if wanted(self._things[place][0])]

    def reached(
        self, labels: Mapping[str, str], *, start: int = 0, anywhere: Sequence[int] | None = None
    ) -> Iterator[Thing]:
        """Yield the things that a node with these labels can reach, in their order, from index `start` on.

        Of the things that no single label excludes, only those in `anywhere` are checked.
        """
        anywhere = self._anywhere if anywhere is None else anywhere
        found = [anywhere] if anywhere else []
        for key, by_value in self._anchored.items():
            value = labels.get(key)
            if value is not None and value in by_value:
                found.append(by_value[value])
        places = found[0] if len(found) == 1 else sorted(set[int]().union(*found))
        for place in islice(places, bisect_left(places, start) if start else 0, None):
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
    """Return a label selector as the node selector for the same nodes, or None for all nodes."""
    if selector.everything:
        return None
    return NodeSelector(() if selector.nothing else (NodeSelectorTerm(selector.requirements),))


def _anchors(selector: NodeSelector | None) -> list[Requirement] | None:
    """Return for each term a requirement that lists values, or None if a term has none."""
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
