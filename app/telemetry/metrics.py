"""The metrics of `/metrics` as they are at the scrape: of the mirror and its watches, of the cache, of the process.

Each function yields the metrics of one component. request_metrics.py counts requests as they come.
"""

import gc
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from app import __version__
from app.feeds.freshness import Freshness, ResourceState, SyncStatus
from app.feeds.memory import MemoryWatch
from app.feeds.release import ReleaseTracker
from app.feeds.usage_feed import UsageFeed
from app.server.tls import ReloadedTls
from app.telemetry.families import Histogram, by_label, counter, gauge, histogram
from app.telemetry.request_metrics import RequestMetrics
from core.equivalence.cache import EquivalenceCache
from core.equivalence.rows import Miss
from core.mirror.cluster import ClusterMirror

_DIGITS: Final = 3
"""Milliseconds. With more digits the two clocks differ at each scrape, and Prometheus stores each value as a change."""


def mirror_metrics(mirror: ClusterMirror) -> Iterator[Metric]:
    """Yield the numbers of nodes and pods."""
    for name, documentation, number in (
        ("nodes", "Nodes in the mirror.", len(mirror.nodes.slots)),
        ("pods", "Placed pods in the mirror, including assumed ones.", mirror.pod_count()),
        ("assumed_pods", "Assumed pods: bound or decided, not yet seen in the watch.", len(mirror.assumed)),
    ):
        yield GaugeMetricFamily(f"kindred_mirror_{name}", documentation, number)


def watch_metrics(
    freshness: Freshness, unix_time: Callable[[], float], known: Mapping[str, Sized] = {}
) -> Iterator[Metric]:
    """Yield the states of the watched resources, and whether they make the service ready.

    `unix_time` returns seconds since 1970. `known` is resource -> its objects received and not deleted.
    """
    ready = freshness.status() is SyncStatus.FRESH
    yield GaugeMetricFamily("kindred_ready", "Whether the mirror is complete and recent (1) or not (0).", ready)
    ages = ((state.plural, freshness.age(state)) for state in freshness.states)
    yield gauge(
        "watch_last_byte_timestamp_seconds",
        "Time when the API server last sent anything for the resource, in seconds since 1970.",
        ["resource"],
        (((plural,), round(unix_time() - age, _DIGITS)) for plural, age in ages if age is not None),
    )
    about_known = "Objects received from the API server and not deleted."
    sizes = {plural: len(objects) for plural, objects in known.items()}
    yield by_label(gauge, "resource", "watch_known_objects", about_known, sizes)
    about_errors = "Objects with a field that could not be decoded."
    errors = {state.plural: state.decode_errors for state in freshness.states}
    yield by_label(counter, "resource", "watch_decode_errors", about_errors, errors)

    def counts_by(
        label: str, name: str, documentation: str, counts_of: Callable[[ResourceState], Mapping[str, int]]
    ) -> Metric:
        values = (
            ((state.plural, value), number)
            for state in freshness.states
            for value, number in sorted(counts_of(state).items())
        )
        return counter(f"watch_{name}", documentation, ["resource", label], values)

    yield counts_by("type", "requests", "Requests to the API server, by type.", lambda state: state.requests)
    yield counts_by("reason", "relists", "Relists, by the reason why the watch ended.", lambda state: state.relists)
    yield counts_by(
        "kind", "failures", "Failed requests to the API server, by status or error.", lambda state: state.failures
    )


def cache_metrics(cache: EquivalenceCache) -> Iterator[Metric]:
    """Yield the size and the hits of the equivalence cache. A cell is the result of one plugin for one node."""
    totals = cache.statistics
    yield counter(
        "equivalence_cells",
        "Cache cells looked up, by result (hit, miss) and reason for a miss.",
        ["result", "reason"],
        [(("hit", ""), totals.hits), *((("miss", miss.label), totals.misses[miss.name]) for miss in Miss)],
    )
    yield GaugeMetricFamily(
        "kindred_equivalence_bytes", "Approximate size of the equivalence cache in bytes.", cache.nbytes
    )
    for name, documentation, number in (
        ("evictions", "Classes evicted to stay within the size limit.", totals.evictions),
        ("checked", "Cells computed again for the shadow check.", totals.checks),
        ("mismatches", "Cells that differed in the shadow check. Must be 0.", totals.mismatches),
    ):
        yield CounterMetricFamily(f"kindred_equivalence_{name}", documentation, number)


def usage_metrics(feed: UsageFeed) -> Iterator[Metric]:
    """Yield the nodes by the state of their measured usage."""
    about = "Nodes in the mirror, by the state of their measured usage."
    yield by_label(gauge, "state", "node_usage_nodes", about, feed.counts())


def release_metrics(release: ReleaseTracker) -> Iterator[Metric]:
    """Yield the release of Kubernetes whose rules apply, as labels."""
    status = release.status
    yield gauge(
        "kubernetes_release_info",
        "Release of Kubernetes whose rules apply, its source, and whether it is an exact match. Always 1.",
        ["release", "source", "exact"],
        [((status.release, status.source, str(status.exact).lower()), 1)],
    )


class GcPauses:
    """Pauses of the process for Python's garbage collection, in which no request makes progress, by generation.

    Pauses are measured only within `observing`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Measure in seconds of `clock`."""
        self._clock = clock
        self._began = 0.0
        self._counts = [0] * len(gc.get_count())
        self._seconds = [0.0] * len(self._counts)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Measure the pauses of the block."""
        gc.callbacks.append(self._note)
        try:
            yield
        finally:
            gc.callbacks.remove(self._note)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric as it is now."""
        pauses = SummaryMetricFamily(
            "kindred_gc_pause_seconds", "Pauses of the process for garbage collection.", labels=["generation"]
        )
        for generation, (count, seconds) in enumerate(zip(self._counts, self._seconds, strict=True)):
            pauses.add_metric([str(generation)], count, seconds)
        yield pauses

    def _note(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
            return
        self._counts[info["generation"]] += 1
        self._seconds[info["generation"]] += self._clock() - self._began


class LoopHolds:
    """The longest time for which one callback held the event loop. All other work waits meanwhile."""

    def __init__(self) -> None:
        self._longest = 0.0

    def observe(self, seconds: float) -> None:
        """Record a delay. The loop watch calls this at each beat."""
        self._longest = max(self._longest, seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric as it is now."""
        yield GaugeMetricFamily(
            "kindred_event_loop_longest_hold_seconds",
            "Longest delay since the start of an event loop timer that is due 20 times a second.",
            self._longest,
        )


def leader_metrics(leads: Callable[[], bool]) -> Iterator[Metric]:
    """Yield whether this replica leads."""
    yield GaugeMetricFamily("kindred_leader", "Whether this replica leads (1) or not (0).", leads())


def memory_metrics(memory: MemoryWatch) -> Iterator[Metric]:
    """Yield the memory limit. The client library exports the memory in use."""
    yield GaugeMetricFamily(
        "kindred_memory_limit_bytes", "Memory limit of the process in bytes. 0: no limit.", memory.limit.bytes
    )


def tls_metrics(ports: Sequence[ReloadedTls]) -> Iterator[Metric]:
    """Yield the expiry of the certificates."""
    about = "Expiry of the port's certificate, in seconds since 1970."
    ends = {port.port: port.not_after for port in ports}
    yield by_label(gauge, "port", "tls_certificate_not_after_timestamp_seconds", about, ends)


def build_metrics() -> Iterator[Metric]:
    """Yield the versions of Kindred and of Python, as labels."""
    yield gauge(
        "build_info",
        "Build information: version and Python version. Always 1.",
        ["version", "python"],
        [((__version__, platform.python_version()), 1)],
    )


Reading: TypeAlias = Callable[[], Iterable[Metric]]
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


class _One(NamedTuple):
    """A collector of one metric, as the library renders whole registries only."""

    family: Metric

    def collect(self) -> Iterable[Metric]:
        return (self.family,)
