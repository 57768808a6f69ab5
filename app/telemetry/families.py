"""Families of metrics with labels, and a histogram that costs little to count in."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from typing import Any, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Values: TypeAlias = Iterable[tuple[Sequence[str], float]]
"""Label values, in the order of the label names, with the value of the sample."""


def gauge(name: str, documentation: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a gauge with labels. `name` is without the prefix of all metrics."""
    return _filled(GaugeMetricFamily(f"kindred_{name}", documentation, labels=labels), values)


def counter(name: str, documentation: str, labels: Sequence[str], values: Values) -> Metric:
    """Return a counter with labels. `name` is without the prefix of all metrics, and without `_total`."""
    return _filled(CounterMetricFamily(f"kindred_{name}", documentation, labels=labels), values)


def by_label(
    of: Callable[..., Metric], label: str, name: str, documentation: str, numbers: Mapping[Any, float]
) -> Metric:
    """Return a gauge or a counter with one label. The values of the label are texts, or members of an Enum."""
    texts = ((each.value if isinstance(each, Enum) else each, number) for each, number in numbers.items())
    return of(name, documentation, [label], (((text,), number) for text, number in texts))


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    for of_labels, value in values:
        family.add_metric(of_labels, value)
    return family


def histogram(
    name: str, documentation: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], "Histogram"]]
) -> Metric:
    """Return a histogram with labels. `name` is without the prefix of all metrics."""
    family = HistogramMetricFamily(f"kindred_{name}", documentation, labels=labels)
    for of_labels, counted in values:
        family.add_metric(of_labels, counted.buckets(), counted.sum)
    return family


class Histogram:
    """Counts of values up to each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are the upper bounds of the buckets, ascending."""
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return each upper bound with the number of values up to it."""
        bounds = (*map(repr, self.bounds), "+Inf")
        return list(zip(bounds, accumulate(self.counts), strict=True))
