"""Outcomes of decisions, read at each scrape."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.verbs.effects import Decision


class SettlingTime(Protocol):
    """The time that a replica waits before its first decision."""

    @property
    def seconds(self) -> float:
        """Duration of the last wait, in seconds."""


class DecisionCollector:
    """Counts since the start."""

    def __init__(self, decisions: Mapping[Decision, int], settling: SettlingTime | None) -> None:
        """Report `decisions`, outcome -> number. `settling` is None in a service that watches no cluster."""
        self._decisions = decisions
        self._settling = settling

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        counts = CounterMetricFamily(
            "kindred_decisions",
            "Decisions, by outcome. replaced: the pod came again after an earlier decision.",
            labels=["outcome"],
        )
        for outcome, count in self._decisions.items():
            counts.add_metric([outcome.value], count)
        yield counts
        if self._settling is not None:
            yield GaugeMetricFamily(
                "kindred_settle_duration_seconds",
                "Duration of the last settling before the first decision, in seconds.",
                self._settling.seconds,
            )
