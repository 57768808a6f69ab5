"""What the verb `preempt` was answered with and how long that took, and what became of preemptions of our own."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from app.preemption.outcome import CallResult, Result

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class PreemptMetrics:
    """Counters and times of preemption."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "kindred_preempt_calls",
            "Calls of the verb, by what they were answered with.",
            ["result"],
            registry=registry,
        )
        self._added_nodes = Counter(
            "kindred_preempt_added_nodes",
            "Nodes in answers that were not offered, as Kindred alone had refused them.",
            registry=registry,
        )
        self._seconds = Histogram(
            "kindred_preempt_duration_seconds",
            "From a preempt call to its answer.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._preemptions = Counter(
            "kindred_preemptions",
            "Pods that no node was left for, by what became of them.",
            ["result"],
            registry=registry,
        )
        self._victims = Counter(
            "kindred_preemption_victims",
            "Pods that were evicted.",
            registry=registry,
        )
        for outcome in Result:
            self._preemptions.labels(outcome.value)
        for result in CallResult:
            self._calls.labels(result.value)  # told from the start, as 0

    def observe(self, result: CallResult, added_nodes: int, seconds: float) -> None:
        """Take note of a call, which took so long."""
        self._calls.labels(result.value).inc()
        self._added_nodes.inc(added_nodes)
        self._seconds.observe(seconds)

    def observe_preemption(self, result: Result, evicted: int) -> None:
        """Take note of what became of a pod, and of how many others were evicted for it."""
        self._preemptions.labels(result.value).inc()
        self._victims.inc(evicted)
