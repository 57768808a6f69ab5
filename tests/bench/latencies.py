"""Times of many answers, and what is told of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of time, in seconds of one clock."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Latencies:
    """When each of many answers was waited for."""

    spans: list[Span] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the seconds that such a share of the answers took at most (nearest rank). There must be an answer."""
        return percentile([span.seconds for span in self.spans], share)

    @property
    def longest(self) -> float:
        """The seconds of the slowest answer. There must be an answer."""
        return max(span.seconds for span in self.spans)

    def during(self, others: Iterable[Span]) -> "Latencies":
        """Return the answers that were waited for while any of the others was. Both are in the order of time."""
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
    """Return the smallest value that is not exceeded by such a share of the values (nearest rank)."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]
