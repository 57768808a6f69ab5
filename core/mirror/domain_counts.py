"""Numbers of pods per domain of a topology key, with a version that shows caches when they change."""

from itertools import count

from core.mirror.topology import TopologyColumn, TopologyCounts

_births = count(step=1 << 32)
"""First versions of counters, so far apart that no two counters ever have the same version."""


class DomainCounts:
    """Numbers of pods per domain of one topology key.

    Every change gives `version` a new value, which no other counter ever has.
    """

    __slots__ = ("column", "counts", "version")

    def __init__(self, column: TopologyColumn, counts: TopologyCounts) -> None:
        self.column = column
        self.counts = counts
        self.version = next(_births)

    def add(self, slot: int, delta: int) -> None:
        """Add `delta` for the node of a slot. A node without the key is in no domain."""
        value_id = int(self.column.of_slot[slot])
        if value_id >= 0:
            self.counts.add(value_id, delta)
            self.version += 1

    def recount(self, counts: TopologyCounts) -> None:
        """Replace all numbers."""
        self.counts = counts
        self.version += 1

    def by_value(self) -> dict[str, int]:
        """Return topology value -> number of pods, for domains with pods."""
        return {self.column.values[value_id]: number for value_id, number in self.counts.items()}
