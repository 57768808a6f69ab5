"""Follows the known nodes by generation in steps, for copies of all nodes that are too long to make at once.

To look at all of 5,000 nodes takes tens of milliseconds, for which the event loop should not stop, and under a thousand
events a second a pass with pauses never sees one generation. So a pass records the generation at its beginning, and the
next pass reads only the changes since. The passes shrink quickly: a node is looked at in 10 us, and changes come every
millisecond. When few names are left, they are looked at without a pause: then all is of one generation.
"""

from collections.abc import Collection, Iterator
from typing import Final

from core.mirror.generation_store import GenerationStore
from core.mirror.node_info import NodeInfo

FEW: Final = 64
"""Names that may be looked at without a pause: below a millisecond."""
_MAX_PASSES: Final = 8
"""Passes, should nodes change faster than they are looked at; `rest` has the remainder, however long it is then."""


class NodeFollower:
    """Names of nodes that came, changed or went. The follower looks each of them up, and may not find it."""

    def __init__(self, held: Collection[str]) -> None:
        """`held` is a view of the names that the follower has an entry for."""
        self.generation = 0
        """Later changes of the mirror are not read yet."""
        self._held = held

    def steps(self, known: GenerationStore[NodeInfo]) -> Iterator[str]:
        """Yield most of the names. The nodes may change between two steps. Left early, it begins anew next time."""
        for _ in range(_MAX_PASSES):
            generation, names = known.latest, self._names(known)
            if len(names) <= FEW:
                return
            yield from names
            self.generation = generation

    def rest(self, known: GenerationStore[NodeInfo]) -> list[str]:
        """Return the names that are left. Once all of them are looked up, the follower is up to date."""
        names = self._names(known)
        self.generation = known.latest
        return names

    def _names(self, known: GenerationStore[NodeInfo]) -> list[str]:
        changed = [info.name for info in known.changed_since(self.generation)]
        return [*known.deleted_since(self.generation, self._held), *changed]
