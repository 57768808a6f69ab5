"""Pauses of the process for Python's garbage collection. No request makes progress during a pause."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from prometheus_client.core import GaugeMetricFamily, Metric, SummaryMetricFamily


class _Pauses:
    __slots__ = ("count", "longest", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.longest = 0.0


class GcPauses:
    """A collector of the pauses by generation. Pauses are measured only within `observing`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Measure in seconds of `clock`."""
        self._clock = clock
        self._began = 0.0
        self._by_generation = {generation: _Pauses() for generation in range(len(gc.get_count()))}

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Measure the pauses of the block."""
        gc.callbacks.append(self._note)
        try:
            yield
        finally:
            gc.callbacks.remove(self._note)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        pauses = SummaryMetricFamily(
            "kindred_gc_pause_seconds",
            "Pauses of the process for garbage collection.",
            labels=["generation"],
        )
        longest = GaugeMetricFamily(
            "kindred_gc_longest_pause_seconds",
            "Longest pause for garbage collection since the start.",
            labels=["generation"],
        )
        for generation, known in self._by_generation.items():
            pauses.add_metric([str(generation)], known.count, known.seconds)
            longest.add_metric([str(generation)], known.longest)
        yield pauses
        yield longest

    def _note(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "start":
            self._began = self._clock()
            return
        pauses = self._by_generation[info["generation"]]
        lasted = self._clock() - self._began
        pauses.count += 1
        pauses.seconds += lasted
        pauses.longest = max(pauses.longest, lasted)
