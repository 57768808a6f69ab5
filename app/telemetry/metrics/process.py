"""Metrics of the process: its version, memory limit, pauses, certificates, and whether it leads."""

import gc
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily

from app import __version__
from app.server.tls import ReloadedTls
from app.telemetry.metrics.families import gauge
from app.watch.memory import MemoryWatch


class _Pauses:
    __slots__ = ("count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0


class GcPauses:
    """Pauses of the process for Python's garbage collection, in which no request makes progress, by generation.

    Pauses are measured only within `observing`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Measure in seconds of `clock`."""
        self._clock = clock
        self._began = 0.0
        self._by_generation = {generation: _Pauses() for generation in range(len(gc.get_count()))}

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
        for generation, known in self._by_generation.items():
            pauses.add_metric([str(generation)], known.count, known.seconds)
        yield pauses

    def _note(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
            return
        pauses = self._by_generation[info["generation"]]
        pauses.count += 1
        pauses.seconds += self._clock() - self._began


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
    yield gauge(
        "tls_certificate_not_after_timestamp_seconds",
        "Expiry of the port's certificate, in seconds since 1970.",
        ["port"],
        (((port.port,), port.not_after) for port in ports),
    )


def build_metrics() -> Iterator[Metric]:
    """Yield the versions of Kindred and of Python, as labels."""
    yield gauge(
        "build_info",
        "Build information: version and Python version. Always 1.",
        ["version", "python"],
        [((__version__, platform.python_version()), 1)],
    )
