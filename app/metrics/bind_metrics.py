"""What became of bindings, and how long they took."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from app.binding.outcome import Result

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class BindMetrics:
    """Counters and times of the verb `bind`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._binds = Counter(
            "kindred_binds",
            "Bindings, by what became of them.",
            ["result"],
            registry=registry,
        )
        self._conflicts = Counter(
            "kindred_bind_conflicts",
            "Bindings that were refused as a hard rule did not let the pod onto the node any more.",
            registry=registry,
        )
        self._seconds = Histogram(
            "kindred_bind_duration_seconds",
            "From a bind call to its answer.",
            registry=registry,
            buckets=_SECONDS,
        )
        for result in Result:
            self._binds.labels(result.value)  # told from the start, as 0

    def observe(self, result: Result, seconds: float) -> None:
        """Take note of a binding, which took so long."""
        self._binds.labels(result.value).inc()
        if result is Result.CONFLICT:
            self._conflicts.inc()
        self._seconds.observe(seconds)
