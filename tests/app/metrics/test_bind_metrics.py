"""The metrics of bindings."""

import pytest

from app.binding.outcome import Result
from app.metrics import Metrics
from app.watch.freshness import OF_A_DUMP
from core.mirror.cluster import ClusterMirror
from tests.app.metrics.scraped import samples


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ClusterMirror(), OF_A_DUMP, lambda: 0.0)


def test_every_result_is_told_before_it_has_happened(metrics: Metrics) -> None:
    assert samples(metrics, "kindred_binds_total") == {(result.value,): 0 for result in Result}


@pytest.mark.parametrize("result", Result, ids=lambda result: result.value)
def test_a_result_is_counted(metrics: Metrics, result: Result) -> None:
    metrics.binds.observe(result)
    assert samples(metrics, "kindred_binds_total") == {(each.value,): each is result for each in Result}
