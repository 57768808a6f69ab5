"""Results of bindings. Their durations are in the histograms of all verbs (verb_collector.py)."""

from prometheus_client import CollectorRegistry, Counter

from app.verbs.binding.binding_outcome import BindingResult


class BindMetrics:
    """Counters of the verb `bind`, finer than its outcomes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._binds = Counter(
            "kindred_binds",
            "Bindings, by result.",
            ["result"],
            registry=registry,
        )
        for result in BindingResult:
            self._binds.labels(result.value)  # exported as 0 from the start

    def observe(self, result: BindingResult) -> None:
        """Count a binding."""
        self._binds.labels(result.value).inc()
