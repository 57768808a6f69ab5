"""Time for which one callback holds the event loop. All other work waits meanwhile."""

from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class LoopHolds:
    """Metrics of the loop's delay. The loop watch calls `observe` at each beat."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._held = Histogram(
            "kindred_event_loop_held_seconds",
            "Delay of an event loop timer that is due 20 times a second.",
            registry=registry,
            buckets=_BUCKETS,
        )
        self._longest = Gauge(
            "kindred_event_loop_longest_hold_seconds",
            "Longest delay of that timer since the start.",
            registry=registry,
        )
        self._most = 0.0

    def observe(self, seconds: float) -> None:
        """Record a delay."""
        self._held.observe(seconds)
        if seconds > self._most:
            self._most = seconds
            self._longest.set(seconds)
