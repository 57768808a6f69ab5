"""State of list and watch of each resource, read at each scrape."""

from collections.abc import Callable, Iterator, Mapping, Sized
from types import MappingProxyType
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.watch.freshness import Freshness, ResourceState, SyncStatus

_DIGITS: Final = 3
"""Milliseconds. With more digits the two clocks differ at each scrape, and Prometheus stores each value as a change."""


class WatchCollector:
    """The states of the watched resources, and whether they make the service ready."""

    def __init__(
        self,
        freshness: Freshness,
        clock: Callable[[], float],
        unix_time: Callable[[], float],
        known: Mapping[str, Sized] = MappingProxyType({}),
    ) -> None:
        """Report `freshness`. Its times are of `clock`; `unix_time` converts them to seconds since 1970.

        `known` is resource -> its objects received and not deleted.
        """
        self._freshness = freshness
        self._clock = clock
        self._unix_time = unix_time
        self._known = known

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        ready = self._freshness.status() is SyncStatus.FRESH
        yield GaugeMetricFamily("kindred_ready", "Whether the mirror is complete and recent (1) or not (0).", ready)
        yield from self._gauges()
        yield from self._counters()
        yield self._counts_by("type", "requests", "Requests to the API server, by type.", lambda state: state.requests)
        yield self._counts_by(
            "reason", "relists", "Relists, by the reason why the watch ended.", lambda state: state.relists
        )
        yield self._counts_by("type", "events", "Watch events, by type.", lambda state: state.events)
        yield self._counts_by(
            "kind", "failures", "Failed requests to the API server, by status or error.", lambda state: state.failures
        )

    def _gauges(self) -> Iterator[Metric]:
        synced = _gauge("synced", "Whether the resource was listed completely once (1) or not (0).")
        absent = _gauge("absent", "Whether the API server lacks the resource (1) or has it (0).")
        last_byte = _gauge(
            "last_byte_timestamp_seconds",
            "Time when the API server last sent anything for the resource, in seconds since 1970.",
        )
        last_event = _gauge(
            "last_event_timestamp_seconds",
            "Time of the last watch event other than a bookmark, in seconds since 1970.",
        )
        now, unix_now = self._clock(), self._unix_time()
        for state in self._freshness.states:
            synced.add_metric([state.plural], state.synced)
            absent.add_metric([state.plural], state.absent)
            age = self._freshness.age(state)
            if age is not None:
                last_byte.add_metric([state.plural], round(unix_now - age, _DIGITS))
            if state.last_event_at is not None:
                last_event.add_metric([state.plural], round(unix_now - (now - state.last_event_at), _DIGITS))
        objects = _gauge("known_objects", "Objects received from the API server and not deleted.")
        for plural, known in self._known.items():
            objects.add_metric([plural], len(known))
        size = _gauge(
            "wire_bytes",
            "Estimated size of these objects in bytes as received: the mean of decoded objects, times their number.",
        )
        for state in self._freshness.states:
            size.add_metric([state.plural], state.wire_size())
        yield from (synced, absent, last_byte, last_event, objects, size)

    def _counters(self) -> Iterator[Metric]:
        errors = _counter("decode_errors", "Objects with a field that could not be decoded.")
        seconds = _counter("decode_seconds", "Seconds spent on decoding objects.")
        for state in self._freshness.states:
            errors.add_metric([state.plural], state.decode_errors)
            seconds.add_metric([state.plural], state.decode_seconds)
        yield from (errors, seconds)

    def _counts_by(
        self, label: str, name: str, documentation: str, counts_of: Callable[[ResourceState], Mapping[str, int]]
    ) -> Metric:
        family = _counter(name, documentation, label)
        for state in self._freshness.states:
            for value, count in sorted(counts_of(state).items()):
                family.add_metric([state.plural, value], count)
        return family


def _gauge(name: str, documentation: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kindred_watch_{name}", documentation, labels=["resource"])


def _counter(name: str, documentation: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"kindred_watch_{name}", documentation, labels=["resource", *labels])
