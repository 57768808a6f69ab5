"""Metrics of requests: outcomes, durations, the queue, bindings, decisions and preemptions.

The counters are plain numbers, because every request pays for them. Counting a request takes 0.7 µs here, and four
times as long with the histograms and counters of the client library, with their children looked up once.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.telemetry.families import Histogram, by_label, counter, histogram
from app.verbs.executor import EvictionOutcome, EvictionResult
from app.verbs.request import BindingResult, Decision, Request, VerbOutcome

_SECONDS: Final = (
    0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
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
        VerbOutcome.RETRIED,
        VerbOutcome.TOO_MUCH_WORK,
        VerbOutcome.REJECTED,
    ),
    "prioritize": (*_WHATEVER_THE_VERB, VerbOutcome.TOO_MUCH_WORK),
    "bind": (*_WHATEVER_THE_VERB, VerbOutcome.NO_FIT, VerbOutcome.FAILED),
    "preempt": (*_WHATEVER_THE_VERB, VerbOutcome.NO_FIT, VerbOutcome.FAILED, VerbOutcome.TOO_MUCH_WORK),
}
"""Verb -> outcomes exported as 0 from the start. To Prometheus, a new series that begins with 1 is no increase."""


class RequestMetrics:
    """The counters and histograms of every verb."""

    def __init__(self) -> None:
        """Start all counters at 0, so that each is exported from the start."""
        self._verbs = {verb: _Verb(outcomes) for verb, outcomes in OUTCOMES.items()}
        self._stale = dict.fromkeys(OUTCOMES, 0)
        self._binds = dict.fromkeys(BindingResult, 0)
        self._preemptions = dict.fromkeys(EvictionResult, 0)
        self._victims = 0

    def observe(self, request: Request) -> None:
        """Count a request, after its response. The verb is the route's, not the client's text: there are few.

        The lines of Histogram.observe are repeated: calls took a third of the time, measured.
        """
        verb = self._verbs.get(request.verb)
        if verb is None:
            verb = self._verbs[request.verb] = _Verb(())
        outcome, result = request.response.outcome, request.response.result
        verb.outcomes[outcome] = verb.outcomes.get(outcome, 0) + 1
        seconds, waited = verb.seconds, verb.waited
        seconds.counts[bisect_left(_SECONDS, request.seconds)] += 1
        seconds.sum += request.seconds
        waited.counts[bisect_left(_SECONDS, request.waited)] += 1
        waited.sum += request.waited
        if not request.is_fresh:
            self._stale[request.verb] = self._stale.get(request.verb, 0) + 1
        if result is not None and not request.dry_run:
            self._binds[result] += 1

    def observe_preemption(self, outcome: EvictionOutcome) -> None:
        """Count the preemption for a pod by Kindred itself, and the pods evicted for it."""
        self._preemptions[outcome.result] += 1
        self._victims += outcome.evicted

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        verbs = self._verbs.items()
        yield counter(
            "requests",
            "Requests, by verb and outcome.",
            ["verb", "outcome"],
            (((verb, outcome.value), number) for verb, each in verbs for outcome, number in each.outcomes.items()),
        )
        yield histogram(
            "request_duration_seconds",
            "Seconds from the complete request to its response, including the time in the queue.",
            ["verb"],
            (((verb,), each.seconds) for verb, each in verbs),
        )
        yield histogram(
            "request_queue_seconds",
            "Seconds that requests spent in the queue.",
            ["verb"],
            (((verb,), each.waited) for verb, each in verbs),
        )
        about_stale = "Requests received while the mirror was stale or not synced, answered or refused."
        yield by_label(counter, "verb", "stale_requests", about_stale, self._stale)
        yield by_label(counter, "result", "binds", "Bindings, by result.", self._binds)
        about_preemptions = "Pods for which Kindred searched victims, by result."
        yield by_label(counter, "result", "preemptions", about_preemptions, self._preemptions)
        yield CounterMetricFamily("kindred_preemption_victims", "Pods that Kindred evicted.", self._victims)


class _Verb:
    __slots__ = ("outcomes", "seconds", "waited")

    def __init__(self, outcomes: Sequence[VerbOutcome]) -> None:
        self.outcomes = dict.fromkeys(outcomes, 0)
        self.seconds = Histogram(_SECONDS)
        self.waited = Histogram(_SECONDS)


def queue_metrics(waiting: int, shed: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the length of the queue, and the requests that it rejected: reason -> number."""
    yield GaugeMetricFamily("kindred_queue_length", "Requests in the queue.", waiting)
    yield by_label(counter, "reason", "requests_shed", "Rejected requests, by reason.", shed)


def decision_metrics(decisions: Mapping[Decision, int]) -> Iterator[Metric]:
    """Yield the decisions, outcome -> number."""
    about = "Decisions, by outcome. replaced: the pod came again after an earlier decision."
    yield by_label(counter, "outcome", "decisions", about, decisions)
