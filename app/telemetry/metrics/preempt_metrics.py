"""What the verb `preempt` was answered with, and what became of preemptions of our own."""

from prometheus_client import CollectorRegistry, Counter

from app.eviction.eviction_outcome import EvictionOutcome, EvictionResult
from app.verbs.preempt_outcome import PreemptOutcome, PreemptResult


class PreemptMetrics:
    """Counters of preemption."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "kindred_preempt_calls",
            "Calls of preempt, by response.",
            ["result"],
            registry=registry,
        )
        self._added_nodes = Counter(
            "kindred_preempt_added_nodes",
            "Candidate nodes that Kindred added because only Kindred had refused them.",
            registry=registry,
        )
        self._preemptions = Counter(
            "kindred_preemptions",
            "Pods for which Kindred looked for victims, by result.",
            ["result"],
            registry=registry,
        )
        self._victims = Counter(
            "kindred_preemption_victims",
            "Evicted pods.",
            registry=registry,
        )
        for outcome in EvictionResult:
            self._preemptions.labels(outcome.value)
        for result in PreemptOutcome:
            self._calls.labels(result.value)  # told from the start, as 0

    def observe(self, result: PreemptResult) -> None:
        """Count a call of the verb."""
        self._calls.labels(result.outcome.value).inc()
        self._added_nodes.inc(result.added_nodes)

    def observe_preemption(self, outcome: EvictionOutcome) -> None:
        """Take note of what became of a pod, and of how many others were evicted for it."""
        self._preemptions.labels(outcome.result.value).inc()
        self._victims.inc(outcome.evicted)
