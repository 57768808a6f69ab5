"""The text of a scrape, read back as Prometheus reads it."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.telemetry.metrics import Metrics


def families(metrics: Metrics) -> dict[str, Metric]:
    """Return the metrics of a scrape by name, as the parser has it: of a counter without `_total`."""
    text = b"".join(metrics.pieces()).decode()
    parsed = list(text_string_to_metric_families(text))
    named = {family.name: family for family in parsed}
    assert len(named) == len(parsed), "a metric stands in two places"
    return named


def values(metrics: Iterable[Metric]) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values of metrics by name and label values, in the order of the label names."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in metrics:
        for sample in family.samples:
            of_name = found.setdefault(sample.name, {})
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in of_name, "a sample stands twice"
            of_name[labels] = sample.value
    return found
