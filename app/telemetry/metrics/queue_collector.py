"""Requests in progress and rejected requests, read at each scrape."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class Queue(Protocol):
    """The requests in progress, and the number of rejected ones."""

    @property
    def in_flight(self) -> int:
        """Requests without a response, queued ones included."""

    @property
    def waiting(self) -> int:
        """Requests in the queue."""

    @property
    def bytes_held(self) -> int:
        """Size of the bodies of requests in progress, in bytes."""

    @property
    def shed(self) -> Mapping[str, int]:
        """Reason -> rejected requests. Has every reason, with 0 as well."""


class QueueCollector:
    """Lengths now, and counts since the start."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        queue = self._queue
        for name, documentation, value in (
            ("requests_in_flight", "Requests in progress, queued ones included.", queue.in_flight),
            ("queue_length", "Requests in the queue.", queue.waiting),
            (
                "queue_bytes",
                "Size of the bodies of requests in progress, in bytes.",
                queue.bytes_held,
            ),
        ):
            yield GaugeMetricFamily(f"kindred_{name}", documentation, value)
        shed = CounterMetricFamily("kindred_requests_shed", "Rejected requests, by reason.", labels=["reason"])
        for reason, count in queue.shed.items():
            shed.add_metric([reason], count)
        yield shed
