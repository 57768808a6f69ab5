"""The usage of nodes as metrics."""

import asyncio

from app.telemetry.metrics.usage_collector import UsageCollector
from tests.app.usage.test_usage_feed import REFUSED, Setting, Source, good, measured


def samples(setting: Setting) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for metric in UsageCollector(setting.feed).collect()
        for sample in metric.samples
    }


def test_reads_nodes_and_ages_are_counted() -> None:
    setting = Setting(Source(good(measured("n1", age=20), problems=["node n2: usage.cpu: absent"]), REFUSED))
    setting.polled(2)
    assert samples(setting) == {
        "kindred_node_usage_polls_totalConnectionFailed": 1,
        "kindred_node_usage_polls_totalsuccess": 1,
        "kindred_node_usage_nodesmeasured": 1,
        "kindred_node_usage_nodestoo_old": 0,
        "kindred_node_usage_nodesnot_measured": 1,
        "kindred_node_usage_unusable_values_total": 1,
        "kindred_node_usage_age_seconds": 20,
    }


def test_without_a_measurement_there_is_no_age() -> None:
    setting = Setting(Source(good()))
    asyncio.run(setting.feed.poll())
    assert "kindred_node_usage_age_seconds" not in samples(setting)
