"""Numbers of pods per domain of a topology key, with a version that shows caches whether they have changed."""

from itertools import count

from core.mirror.topology import TopologyColumn, TopologyCounts

_births = count(step=1 << 32)
"""First versions of counters, so far apart that no two counters ever have the same."""


class DomainCounts:
    """Numbers of pods per domain of one topology key.

    `version` is another one after every change, and never the version of another counter.
    """

    __slots__ = ("column", "counts", "version")

    def __init__(self, column: TopologyColumn, counts: TopologyCounts) -> None:
        self.column = column
        self.counts = counts
        self.version = next(_births)

    def add(self, slot: int, delta: int) -> None:
        """Count a pod on the node of a slot; a node without the key is in no domain."""
        value_id = int(self.column.of_slot[slot])
        if value_id >= 0:
            self.counts.add(value_id, delta)
            self.version += 1

    def recount(self, counts: TopologyCounts) -> None:
        """Take over other numbers."""
        self.counts = counts
        self.version += 1

    def by_value(self) -> dict[str, int]:
        """Return topology value -> number of pods, for domains that have any."""
        return {self.column.values[value_id]: number for value_id, number in self.counts.items()}
