"""All metrics of one service, and the text of a scrape. They read other components at the scrape."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from app.telemetry.metrics.families import Histogram, histogram
from app.telemetry.metrics.mirror import mirror_metrics
from app.telemetry.metrics.process import GcPauses, LoopHolds, build_metrics
from app.telemetry.metrics.requests import RequestMetrics
from core.mirror.cluster import ClusterMirror

Reading: TypeAlias = Callable[[], Iterable[Metric]]
"""Returns the metrics of a component as they are now."""
_DELAYS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    """The metrics of one service."""

    CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, mirror: ClusterMirror, clock: Callable[[], float]) -> None:
        """Start all counters at 0. `clock` returns seconds."""
        self.requests = RequestMetrics()
        """Observes each request, and each preemption of the evictor."""
        self.gc_pauses = GcPauses(clock)
        """The caller that runs the service wraps it in `observing`."""
        self.loop_holds = LoopHolds()
        """The watch of the event loop calls its `observe`."""
        self.confirmations = Histogram(_DELAYS)
        """Observes the seconds from assuming a pod to the watch event that confirmed it."""
        self._readings: list[Reading] = [
            self.requests.collect,
            partial(mirror_metrics, mirror),
            self._delays,
            self.gc_pauses.collect,
            self.loop_holds.collect,
            build_metrics,
            ProcessCollector(registry=None).collect,
        ]

    def register(self, reading: Reading) -> None:
        """Add the metrics of a component. The module that creates the component calls this."""
        self._readings.append(reading)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as they are now."""
        for reading in self._readings:
            yield from reading()

    def pieces(self) -> Iterator[bytes]:
        """Yield the text format in pieces, all of one moment. Each piece takes a short time to make."""
        for family in list(self.collect()):
            yield generate_latest(_One(family))

    def _delays(self) -> Iterator[Metric]:
        yield histogram(
            "mirror_to_watch_delay_seconds",
            "Seconds from assuming a pod to the watch event that confirmed it.",
            [],
            [((), self.confirmations)],
        )


class _One:
    """A collector of one metric, as the library renders whole registries only."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)
