"""Whether this replica leads, read at each scrape."""

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class Elected(Protocol):
    """The state of the leader election, as this replica sees it."""

    @property
    def changes(self) -> int:
        """Number of changes of the leader that this replica has seen."""

    def leads(self) -> bool:
        """Whether this replica may decide now."""


class LeaderCollector:
    """A gauge of this replica's leadership, and a counter of changes of the leader."""

    def __init__(self, leadership: Elected) -> None:
        self._leadership = leadership

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        leads = int(self._leadership.leads())
        yield GaugeMetricFamily("kindred_leader", "Whether this replica leads (1) or not (0).", leads)
        yield CounterMetricFamily(
            "kindred_leader_transitions",
            "Changes of the leader that this replica has seen, to itself included.",
            self._leadership.changes,
        )
