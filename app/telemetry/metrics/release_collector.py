"""The release of Kubernetes whose rules apply, read at each scrape."""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from app.answered_release import AnsweredRelease


class ReleaseCollector:
    """The release as labels of a gauge that is always 1."""

    def __init__(self, release: AnsweredRelease) -> None:
        self._release = release

    def collect(self) -> Iterator[Metric]:
        """Yield the metric as it is now."""
        status = self._release.status
        family = GaugeMetricFamily(
            "kindred_kubernetes_release_info",
            "Release of Kubernetes whose rules apply, its source, and whether it is an exact match. Always 1.",
            labels=["release", "source", "exact"],
        )
        family.add_metric([status.release, status.source, str(status.exact).lower()], 1)
        yield family
