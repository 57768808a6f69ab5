"""Size, hits and misses of the equivalence cache, read at each scrape."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from core.equivalence.cache import RESULTS, EquivalenceCache
from core.equivalence.cells import Miss


class CacheCollector:
    """Sizes and totals. A cell is the result of one plugin for one node."""

    def __init__(self, cache: EquivalenceCache) -> None:
        self._cache = cache

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        cache, totals = self._cache, self._cache.statistics
        yield _gauge("classes", "Classes of pods in the equivalence cache.", len(cache))
        yield _gauge("bytes", "Approximate size of the equivalence cache in bytes.", cache.nbytes)
        yield self._questions()
        yield self._cells()
        yield self._invalidations()
        yield _counter("evictions", "Classes evicted to stay within the size limit.", totals.evictions)
        yield _counter("checked", "Cells computed again for the shadow check.", totals.checks)
        yield _counter("mismatches", "Cells that differed in the shadow check. Must be 0.", totals.mismatches)

    def _questions(self) -> Metric:
        family = CounterMetricFamily(
            "kindred_equivalence_requests",
            "Requests, by result: all cells cached (hit), some (partial), none (miss), or the pod has no class (none).",
            labels=["result"],
        )
        for result in RESULTS:
            family.add_metric([result], self._cache.statistics.questions[result])
        return family

    def _cells(self) -> Metric:
        family = CounterMetricFamily(
            "kindred_equivalence_cells",
            "Cache cells looked up, by result (hit, miss) and reason for a miss.",
            labels=["result", "reason"],
        )
        family.add_metric(["hit", ""], self._cache.statistics.hits)
        for miss in Miss:
            family.add_metric(["miss", miss.label], self._cache.statistics.misses[miss.name])
        return family

    def _invalidations(self) -> Metric:
        family = CounterMetricFamily(
            "kindred_equivalence_invalidations",
            "Events that invalidated cells of a plugin, without those that only change counters.",
            labels=["plugin", "kind", "operation"],
        )
        for plugin, validity in self._cache.validities.of.items():
            for (kind, operation), count in sorted(validity.counts.items()):
                family.add_metric([plugin, kind, operation], count)
        return family


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(f"kindred_equivalence_{name}", documentation, value)


def _counter(name: str, documentation: str, value: float) -> Metric:
    return CounterMetricFamily(f"kindred_equivalence_{name}", documentation, value)
