"""Times of many responses, and statistics of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple


class Span(NamedTuple):
    """A period, in seconds of one clock."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """Length of the period."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Latencies:
    """The waiting time of each of many responses, as a period."""

    spans: list[Span] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the percentile of the seconds at `share` (nearest rank). There must be a response."""
        return percentile([span.seconds for span in self.spans], share)

    @property
    def longest(self) -> float:
        """The seconds of the slowest response. There must be a response."""
        return max(span.seconds for span in self.spans)

    def during(self, others: Iterable[Span]) -> "Latencies":
        """Return the responses whose wait overlaps any of the other periods. Both must be in the order of time."""
        found: list[Span] = []
        remaining = iter(others)
        other = next(remaining, None)
        for span in self.spans:
            while other is not None and other.ended <= span.began:
                other = next(remaining, None)
            if other is not None and other.began < span.ended:
                found.append(span)
        return Latencies(found)

    def __str__(self) -> str:
        if not self.spans:
            return "none"
        return (
            f"p50 {self.percentile(0.5) * 1e3:8.3f} ms   p99 {self.percentile(0.99) * 1e3:8.3f} ms   "
            f"longest {self.longest * 1e3:8.3f} ms   of {len(self.spans):,}"
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value such that `share` of the values are at most as large (nearest rank)."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
