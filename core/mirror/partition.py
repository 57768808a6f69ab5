"""The nodes that belong to this scheduler, if several schedulers share a cluster."""

from collections.abc import Mapping

from core.objects.labels import EVERYTHING, Selector


class Partition:
    """A rule on node names and labels, so that several schedulers own disjoint nodes. Initially all nodes are in.

    A name that was set explicitly takes precedence over the selector, and need not exist yet. Nodes out of the
    partition get an unresolvable status, but their pods count wherever pods of the whole cluster count.
    """

    def __init__(self) -> None:
        self.whole = True
        """Whether the rule includes every node, so that no node needs a check."""
        self._selector = EVERYTHING
        self._names: dict[str, bool] = {}  # node name -> whether it is in, for explicitly set names
        self._outside = 0  # how many of them are out: a rule may name hundreds of thousands

    def includes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node with this name and these labels is in."""
        inside = self._names.get(name)
        return self._selector.matches(labels) if inside is None else inside

    def set_selector(self, selector: Selector) -> None:
        """Include the nodes whose labels match, except for explicitly set names."""
        self._selector = selector
        self._weigh()

    def set_name(self, name: str, *, inside: bool) -> None:
        """Include or exclude one node regardless of its labels."""
        self._outside += (not inside) - (self._names.get(name) is False)
        self._names[name] = inside
        self._weigh()

    def clear_name(self, name: str) -> None:
        """Remove an explicit setting, so that the selector decides for the node."""
        self._outside -= self._names.pop(name, None) is False
        self._weigh()

    def _weigh(self) -> None:
        self.whole = self._selector.everything and not self._outside
