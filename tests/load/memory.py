"""Whether the memory of a process stays constant, by one sample a second."""

from collections.abc import Sequence
from statistics import median
from typing import Final

WINDOW: Final = 60
"""Samples of one median."""
_GROWTH: Final = 1.05
_SLACK: Final = 8.0  # MB


class Memory:
    """The resident memory of a process in MB. Call `sample` with it once a second."""

    def __init__(self) -> None:
        self.samples: list[float] = []

    def sample(self, megabytes: float) -> None:
        """Add a sample."""
        self.samples.append(megabytes)

    def growth(self) -> str:
        """Return the problem. Empty if the memory is flat, or if there are too few samples."""
        windows = second_and_last(self.samples)
        if windows is None:
            return ""
        before, after = windows
        if after <= _GROWTH * before + _SLACK:
            return ""
        return f"memory: {before:.0f} MB in the second minute, {after:.0f} MB in the last one"


def second_and_last(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the medians of the second and the last minute. None with fewer than three. In the first, caches fill."""
    if len(samples) < 3 * WINDOW:
        return None
    return median(samples[WINDOW : 2 * WINDOW]), median(samples[-WINDOW:])
