"""Who leads, looked up when it is asked for."""

from collections.abc import Iterator
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class Elected(Protocol):
    """What is known of the leader election."""

    @property
    def changes(self) -> int:
        """How often another leader than before was seen."""

    def leads(self) -> bool:
        """Whether this replica may decide now."""


class LeaderCollector:
    """A gauge of this replica, and how often the leader has changed."""

    def __init__(self, leadership: Elected) -> None:
        self._leadership = leadership

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        leads = int(self._leadership.leads())
        yield GaugeMetricFamily("kindred_leader", "Whether this replica leads (1) or not (0).", leads)
        yield CounterMetricFamily(
            "kindred_leader_transitions",
            "How often this replica has seen another leader than before, itself included.",
            self._leadership.changes,
        )
