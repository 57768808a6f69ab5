"""The resource figures of the whole cluster, as sums of the nodes' figures."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from core.mirror.generation_store import GenerationStore
from core.mirror.node_figures import Amounts, Figures
from core.mirror.node_info import NodeInfo

# Follows the known nodes by generation in steps, for copies of all nodes that take too long to make at once.
#
# To visit 5,000 nodes takes tens of milliseconds, and the event loop must not block that long. With a thousand events
# a second, a pass with pauses never sees a single generation. So each pass records the generation at its beginning,
# and the next pass reads only the changes since. The passes shrink quickly: a visit takes 10 us, and a change comes
# every millisecond. The last few names are visited without a pause, so the copy has one generation.

FEW: Final = 64
"""How many names may be visited without a pause: below a millisecond."""
_MAX_PASSES: Final = 8
"""Limit of passes, if nodes change faster than they are visited. `rest` then returns all remaining names."""


class NodeFollower:
    """Names of nodes that were added, changed or removed. The caller looks up each name, and may not find the node."""

    def __init__(self, stored: Collection[str]) -> None:
        """Read the changes of names; `stored` is a view of the names that the caller has an entry for."""
        self.generation = 0
        """Changes after this generation are not read yet."""
        self._stored = stored

    def steps(self, known: GenerationStore[NodeInfo]) -> Iterator[str]:
        """Yield most of the names. The nodes may change between two steps.

        If the caller stops early, the next call restarts.
        """
        for _ in range(_MAX_PASSES):
            generation, names = known.latest, self._names(known)
            if len(names) <= FEW:
                return
            yield from names
            self.generation = generation

    def rest(self, known: GenerationStore[NodeInfo]) -> list[str]:
        """Return the remaining names. After the caller has looked them up, its copy is up to date."""
        names = self._names(known)
        self.generation = known.latest
        return names

    def _names(self, known: GenerationStore[NodeInfo]) -> list[str]:
        changed = [info.name for info in known.changed_since(self.generation)]
        return [*known.deleted_since(self.generation, self._stored), *changed]


class ClusterFigures:
    """The sums of the known nodes' figures. A read visits the nodes that changed since the last read: 4 us each."""

    def __init__(self) -> None:
        self._of_node: dict[str, Figures] = {}  # node name -> its figures at the last read
        self._follower = NodeFollower(self._of_node.keys())
        self._sums: dict[str, Amounts] = {field: {} for field in Figures.__struct_fields__}

    def steps(self, nodes: GenerationStore[NodeInfo]) -> Iterator[None]:
        """Do most of the work of `follow`, in steps. Nodes may change in between."""
        for name in self._follower.steps(nodes):
            self._look(name, nodes)
            yield

    def follow(self, nodes: GenerationStore[NodeInfo]) -> Figures:
        """Return the sums at the present generation."""
        for name in self._follower.rest(nodes):
            self._look(name, nodes)
        return Figures(*({**amounts} for amounts in self._sums.values()))

    def _look(self, name: str, nodes: GenerationStore[NodeInfo]) -> None:
        info = nodes.values.get(name)
        if info is None:
            self._replace(self._of_node.pop(name, _NONE), _NONE)
            return
        figures = info.figures
        self._replace(self._of_node.get(name, _NONE), figures)
        self._of_node[name] = figures

    def _replace(self, before: Figures, now: Figures) -> None:
        for field, sums in self._sums.items():
            _exchange(sums, getattr(before, field), getattr(now, field))


_NONE = Figures({}, {}, {}, {})


def _exchange(sums: Amounts, before: Mapping[str, int], now: Mapping[str, int]) -> None:
    if before == now:
        return
    for resource, amount in now.items():
        if change := amount - before.get(resource, 0):
            _add(sums, resource, change)
    for resource, amount in before.items():
        if resource not in now:
            _add(sums, resource, -amount)


def _add(sums: Amounts, resource: str, change: int) -> None:
    if total := sums.get(resource, 0) + change:
        sums[resource] = total
    else:
        sums.pop(resource, None)
