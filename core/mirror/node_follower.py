"""Follows the known nodes by generation in steps, for copies of all nodes that take too long to make at once.

To visit 5,000 nodes takes tens of milliseconds, and the event loop must not block that long. With a thousand events a
second, a pass with pauses never sees a single generation. So each pass records the generation at its beginning, and the
next pass reads only the changes since. The passes shrink quickly: a visit takes 10 us, and a change comes every
millisecond. The last few names are visited without a pause, so the copy has one generation.
"""

from collections.abc import Collection, Iterator
from typing import Final

from core.mirror.generation_store import GenerationStore
from core.mirror.node_info import NodeInfo

FEW: Final = 64
"""How many names may be visited without a pause: below a millisecond."""
_MAX_PASSES: Final = 8
"""Limit of passes, if nodes change faster than they are visited. `rest` then returns all remaining names."""


class NodeFollower:
    """Names of nodes that were added, changed or removed. The caller looks up each name, and may not find the node."""

    def __init__(self, held: Collection[str]) -> None:
        """`held` is a view of the names that the caller has an entry for."""
        self.generation = 0
        """Changes after this generation are not read yet."""
        self._held = held

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
        return [*known.deleted_since(self.generation, self._held), *changed]
