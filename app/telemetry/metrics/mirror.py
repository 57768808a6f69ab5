"""Metrics of the mirror: its objects, how it follows the API server, the cache of results, and the usage of nodes.

Each function yields the metrics of one component as they are at the scrape.
"""

from collections.abc import Callable, Iterator, Mapping, Sized
from types import MappingProxyType
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.telemetry.metrics.families import counter, gauge
from app.usage.usage_feed import UsageFeed
from app.watch.freshness import Freshness, ResourceState, SyncStatus
from app.watch.release import AnsweredRelease
from core.equivalence.cache import EquivalenceCache
from core.equivalence.rows import Miss
from core.mirror.cluster import ClusterMirror

_DIGITS: Final = 3
"""Milliseconds. With more digits the two clocks differ at each scrape, and Prometheus stores each value as a change."""


def mirror_metrics(mirror: ClusterMirror) -> Iterator[Metric]:
    """Yield the numbers of nodes and pods."""
    yield GaugeMetricFamily("kindred_mirror_nodes", "Nodes in the mirror.", len(mirror.nodes.slots))
    yield GaugeMetricFamily(
        "kindred_mirror_pods", "Placed pods in the mirror, including assumed ones.", mirror.pod_count()
    )
    yield GaugeMetricFamily(
        "kindred_mirror_assumed_pods",
        "Assumed pods: bound or decided, not yet seen in the watch.",
        len(mirror.assumed),
    )


def watch_metrics(
    freshness: Freshness, unix_time: Callable[[], float], known: Mapping[str, Sized] = MappingProxyType({})
) -> Iterator[Metric]:
    """Yield the states of the watched resources, and whether they make the service ready.

    `unix_time` returns seconds since 1970. `known` is resource -> its objects received and not deleted.
    """
    ready = freshness.status() is SyncStatus.FRESH
    yield GaugeMetricFamily("kindred_ready", "Whether the mirror is complete and recent (1) or not (0).", ready)
    ages = ((state.plural, freshness.age(state)) for state in freshness.states)
    yield gauge(
        "watch_last_byte_timestamp_seconds",
        "Time when the API server last sent anything for the resource, in seconds since 1970.",
        ["resource"],
        (((plural,), round(unix_time() - age, _DIGITS)) for plural, age in ages if age is not None),
    )
    yield gauge(
        "watch_known_objects",
        "Objects received from the API server and not deleted.",
        ["resource"],
        (((plural,), len(objects)) for plural, objects in known.items()),
    )
    yield counter(
        "watch_decode_errors",
        "Objects with a field that could not be decoded.",
        ["resource"],
        (((state.plural,), state.decode_errors) for state in freshness.states),
    )

    def counts_by(
        label: str, name: str, documentation: str, counts_of: Callable[[ResourceState], Mapping[str, int]]
    ) -> Metric:
        values = (
            ((state.plural, value), number)
            for state in freshness.states
            for value, number in sorted(counts_of(state).items())
        )
        return counter(f"watch_{name}", documentation, ["resource", label], values)

    yield counts_by("type", "requests", "Requests to the API server, by type.", lambda state: state.requests)
    yield counts_by("reason", "relists", "Relists, by the reason why the watch ended.", lambda state: state.relists)
    yield counts_by(
        "kind", "failures", "Failed requests to the API server, by status or error.", lambda state: state.failures
    )


def cache_metrics(cache: EquivalenceCache) -> Iterator[Metric]:
    """Yield the size and the hits of the equivalence cache. A cell is the result of one plugin for one node."""
    totals = cache.statistics
    yield counter(
        "equivalence_cells",
        "Cache cells looked up, by result (hit, miss) and reason for a miss.",
        ["result", "reason"],
        [(("hit", ""), totals.hits), *((("miss", miss.label), totals.misses[miss.name]) for miss in Miss)],
    )
    yield GaugeMetricFamily(
        "kindred_equivalence_bytes", "Approximate size of the equivalence cache in bytes.", cache.nbytes
    )
    for name, documentation, number in (
        ("evictions", "Classes evicted to stay within the size limit.", totals.evictions),
        ("checked", "Cells computed again for the shadow check.", totals.checks),
        ("mismatches", "Cells that differed in the shadow check. Must be 0.", totals.mismatches),
    ):
        yield CounterMetricFamily(f"kindred_equivalence_{name}", documentation, number)


def usage_metrics(feed: UsageFeed) -> Iterator[Metric]:
    """Yield the nodes by the state of their measured usage."""
    yield gauge(
        "node_usage_nodes",
        "Nodes in the mirror, by the state of their measured usage.",
        ["state"],
        (((state,), number) for state, number in feed.counts().items()),
    )


def release_metrics(release: AnsweredRelease) -> Iterator[Metric]:
    """Yield the release of Kubernetes whose rules apply, as labels."""
    status = release.status
    yield gauge(
        "kubernetes_release_info",
        "Release of Kubernetes whose rules apply, its source, and whether it is an exact match. Always 1.",
        ["release", "source", "exact"],
        [((status.release, status.source, str(status.exact).lower()), 1)],
    )
