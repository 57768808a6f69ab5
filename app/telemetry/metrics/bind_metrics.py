"""What became of bindings. How long they took is told of every verb alike."""

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
            self._binds.labels(result.value)  # told from the start, as 0

    def observe(self, result: BindingResult) -> None:
        """Take note of a binding."""
        self._binds.labels(result.value).inc()
