"""Which nodes are this scheduler's own, where several schedulers share a cluster."""

from collections.abc import Mapping

from core.objects.labels import EVERYTHING, Selector


class Partition:
    """A rule on node names and labels, by which several schedulers own disjoint nodes; at first every node is in.

    A name that was set explicitly wins over the selector, and may be set before there is such a node. Nodes out of the
    partition are answered unresolvable; their pods count for all that is counted over the cluster.
    """

    def __init__(self) -> None:
        self.whole = True
        """Whether the rule lets every node in, so that no node needs a check."""
        self._selector = EVERYTHING
        self._names: dict[str, bool] = {}  # node name -> whether it is in, for the names that were set
        self._outside = 0  # how many of them are out: a rule may name hundreds of thousands

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node of this name with these labels is in."""
        inside = self._names.get(name)
        return self._selector.matches(labels) if inside is None else inside

    def set_selector(self, selector: Selector) -> None:
        """Let in the nodes whose labels it matches, but for the names that were set."""
        self._selector = selector
        self._weigh()

    def set_name(self, name: str, *, inside: bool) -> None:
        """Put one node in or out, whatever its labels are."""
        self._outside += (not inside) - (self._names.get(name) is False)
        self._names[name] = inside
        self._weigh()

    def clear_name(self, name: str) -> None:
        """Leave one node to the selector again."""
        self._outside -= self._names.pop(name, None) is False
        self._weigh()

    def _weigh(self) -> None:
        self.whole = self._selector.everything and not self._outside
