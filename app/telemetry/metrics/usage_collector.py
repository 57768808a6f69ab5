"""Measured usage of nodes: polls of the source and measured nodes, read at each scrape."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from app.usage.usage_feed import UsageFeed


class UsageCollector:
    """Polls of the source by result, nodes by the state of their measurement, and the oldest measurement."""

    def __init__(self, feed: UsageFeed) -> None:
        self._feed = feed

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        polls = CounterMetricFamily(
            "kindred_node_usage_polls", "Requests for the usage of all nodes, by result.", labels=["result"]
        )
        for result, number in sorted({"success": 0, **self._feed.polls}.items()):
            polls.add_metric([result], number)
        yield polls
        nodes = GaugeMetricFamily(
            "kindred_node_usage_nodes", "Nodes in the mirror, by the state of their measurement.", labels=["state"]
        )
        for state, number in self._feed.counts().items():
            nodes.add_metric([state], number)
        yield nodes
        yield CounterMetricFamily(
            "kindred_node_usage_unusable_values",
            "Measured values that were ignored: absent, negative, not a number, or not plausible.",
            self._feed.unusable,
        )
        oldest = self._feed.oldest()
        if oldest is not None:
            yield GaugeMetricFamily(
                "kindred_node_usage_age_seconds", "Age of the oldest measurement in use, in seconds.", oldest
            )
