"""The metrics of bindings."""

import pytest

from app.binding.outcome import Result
from app.metrics import Metrics
from app.watch.freshness import OF_A_DUMP
from core.mirror.cluster import ClusterMirror
from tests.app.metrics.scraped import families, samples


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ClusterMirror(), OF_A_DUMP, lambda: 0.0)


def test_every_result_is_told_before_it_has_happened(metrics: Metrics) -> None:
    assert samples(metrics, "kindred_binds_total") == {(result.value,): 0 for result in Result}
    assert samples(metrics, "kindred_bind_conflicts_total") == {(): 0}


@pytest.mark.parametrize("result", Result, ids=lambda result: result.value)
def test_a_result_is_counted_and_only_a_broken_rule_is_a_conflict(metrics: Metrics, result: Result) -> None:
    metrics.binds.observe(result, 0.02)
    assert samples(metrics, "kindred_binds_total") == {(each.value,): each is result for each in Result}
    assert samples(metrics, "kindred_bind_conflicts_total") == {(): result is Result.CONFLICT}


def test_durations_are_a_histogram_up_to_the_schedulers_own_timeout(metrics: Metrics) -> None:
    for seconds in (0.004, 0.02, 4.9, 6.0):
        metrics.binds.observe(Result.BOUND, seconds)
    family = families(metrics)["kindred_bind_duration_seconds"]
    buckets = {sample.labels["le"]: sample.value for sample in family.samples if sample.name.endswith("_bucket")}
    assert (buckets["0.005"], buckets["0.025"], buckets["5.0"], buckets["+Inf"]) == (1, 2, 3, 4)
