"""Requests to the verbs: counted after each response, exported at each scrape.

The counters are plain numbers, because every request pays for them. Counting a request takes 1.2 µs here, and 5.3 µs
with the histograms and counters of the client library, with their children looked up once.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from app.verbs.observation import Observation, VerbOutcome

_SECONDS: Final = (
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
_BYTES: Final = tuple(float(4**power) for power in range(5, 14))  # 1 KiB to 64 MiB
_WHATEVER_THE_VERB: Final = (
    VerbOutcome.FIT,
    VerbOutcome.BAD_REQUEST,
    VerbOutcome.STALE,
    VerbOutcome.SHED,
    VerbOutcome.BYPASSED,
    VerbOutcome.NOT_LEADING,
    VerbOutcome.INTERNAL_ERROR,
)
OUTCOMES: Final[Mapping[str, Sequence[VerbOutcome]]] = {
    "filter": (
        *_WHATEVER_THE_VERB,
        VerbOutcome.NO_FIT,
        VerbOutcome.DOUBTED,
        VerbOutcome.TOO_MUCH_WORK,
        VerbOutcome.REFUSED,
    ),
    "prioritize": (*_WHATEVER_THE_VERB, VerbOutcome.TOO_MUCH_WORK),
    "bind": (*_WHATEVER_THE_VERB, VerbOutcome.NO_FIT, VerbOutcome.FAILED),
    "preempt": (*_WHATEVER_THE_VERB, VerbOutcome.NO_FIT, VerbOutcome.FAILED, VerbOutcome.TOO_MUCH_WORK),
}
"""Verb -> outcomes exported as 0 from the start. To Prometheus, a new series that begins with 1 is no increase."""


class VerbCollector:
    """The counters and histograms of every verb."""

    def __init__(self) -> None:
        self._figures = {verb: _Figures(outcomes) for verb, outcomes in OUTCOMES.items()}

    def count(self, observation: Observation) -> None:
        """Count a request. The verb is the route's, not the client's text, so there are few verbs."""
        figures = self._figures.get(observation.verb)
        if figures is None:
            figures = self._figures[observation.verb] = _Figures(())
        figures.count(observation)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        yield self._requests()
        yield self._counter("nodes_asked", "Nodes in requests.", "nodes")
        yield self._counter(
            "nodes_passed", "Nodes that passed filter, were scored by prioritize, or were kept by preempt.", "passed"
        )
        yield self._histogram(
            "request_duration_seconds",
            "Seconds from the complete request to its response, including the time in the queue.",
            "seconds",
        )
        yield self._histogram("request_queue_seconds", "Seconds that requests spent in the queue.", "waited")
        yield self._histogram("request_size_bytes", "Size of request bodies in bytes.", "request_bytes")
        yield self._histogram("response_size_bytes", "Size of response bodies in bytes.", "response_bytes")

    def _requests(self) -> Metric:
        family = CounterMetricFamily("kindred_requests", "Requests, by verb and outcome.", labels=["verb", "outcome"])
        for verb, figures in self._figures.items():
            for outcome, count in figures.outcomes.items():
                family.add_metric([verb, outcome.value], count)
        return family

    def _counter(self, name: str, documentation: str, figure: str) -> Metric:
        family = CounterMetricFamily(f"kindred_{name}", documentation, labels=["verb"])
        for verb, figures in self._figures.items():
            family.add_metric([verb], getattr(figures, figure))
        return family

    def _histogram(self, name: str, documentation: str, figure: str) -> Metric:
        family = HistogramMetricFamily(f"kindred_{name}", documentation, labels=["verb"])
        for verb, figures in self._figures.items():
            histogram: _Histogram = getattr(figures, figure)
            family.add_metric([verb], histogram.buckets(), histogram.sum)
        return family


class _Histogram:
    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def buckets(self) -> Sequence[tuple[str, float]]:
        """Return each upper bound with the number of values up to it."""
        bounds = (*map(repr, self.bounds), "+Inf")
        return list(zip(bounds, accumulate(self.counts), strict=True))


class _Figures:
    """The counters and histograms of one verb."""

    __slots__ = (
        "nodes", "outcomes", "passed", "request_bytes", "response_bytes", "seconds", "waited",
    )  # fmt: skip

    def __init__(self, outcomes: Sequence[VerbOutcome]) -> None:
        self.outcomes = dict.fromkeys(outcomes, 0)
        self.nodes = 0
        self.passed = 0
        self.seconds = _Histogram(_SECONDS)
        self.waited = _Histogram(_SECONDS)
        self.request_bytes = _Histogram(_BYTES)
        self.response_bytes = _Histogram(_BYTES)

    def count(self, observation: Observation) -> None:
        """Count a request. The lines are repeated for each histogram: four calls took a third of the time, measured."""
        _, outcome, seconds, waited, request_bytes, response_bytes, asked, *_ = observation
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.nodes += asked.nodes
        self.passed += asked.passed
        histogram = self.seconds
        histogram.counts[bisect_left(_SECONDS, seconds)] += 1
        histogram.sum += seconds
        histogram = self.waited
        histogram.counts[bisect_left(_SECONDS, waited)] += 1
        histogram.sum += waited
        histogram = self.request_bytes
        histogram.counts[bisect_left(_BYTES, request_bytes)] += 1
        histogram.sum += request_bytes
        histogram = self.response_bytes
        histogram.counts[bisect_left(_BYTES, response_bytes)] += 1
        histogram.sum += response_bytes
