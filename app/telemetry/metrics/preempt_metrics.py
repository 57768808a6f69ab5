"""Results of the verb `preempt`, and of preemptions by Kindred itself."""

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
            "Pods for which Kindred searched victims, by result.",
            ["result"],
            registry=registry,
        )
        self._victims = Counter(
            "kindred_preemption_victims",
            "Pods that Kindred evicted.",
            registry=registry,
        )
        for outcome in EvictionResult:
            self._preemptions.labels(outcome.value)
        for result in PreemptOutcome:
            self._calls.labels(result.value)  # exported as 0 from the start

    def observe(self, result: PreemptResult) -> None:
        """Count a call of the verb."""
        self._calls.labels(result.outcome.value).inc()
        self._added_nodes.inc(result.added_nodes)

    def observe_preemption(self, outcome: EvictionOutcome) -> None:
        """Count the preemption for a pod, and the pods evicted for it."""
        self._preemptions.labels(outcome.result.value).inc()
        self._victims.inc(outcome.evicted)
