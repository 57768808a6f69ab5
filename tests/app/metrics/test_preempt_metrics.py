"""The metrics of the verb preempt, and of preemptions of our own."""

import pytest

from app.metrics import Metrics
from app.preemption.outcome import CallResult, Result
from app.watch.freshness import OF_A_DUMP
from core.mirror.cluster import ClusterMirror
from tests.app.metrics.scraped import samples


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ClusterMirror(), OF_A_DUMP, lambda: 0.0)


def test_every_result_is_told_before_it_has_happened(metrics: Metrics) -> None:
    assert samples(metrics, "kindred_preempt_calls_total") == {(result.value,): 0 for result in CallResult}
    assert samples(metrics, "kindred_preempt_added_nodes_total") == {(): 0}
    assert samples(metrics, "kindred_preemptions_total") == {(result.value,): 0 for result in Result}
    assert samples(metrics, "kindred_preemption_victims_total") == {(): 0}


@pytest.mark.parametrize("result", CallResult, ids=lambda result: result.value)
def test_a_result_and_the_nodes_that_were_added_are_counted(metrics: Metrics, result: CallResult) -> None:
    metrics.preempts.observe(result, 3)
    assert samples(metrics, "kindred_preempt_calls_total") == {(each.value,): each is result for each in CallResult}
    assert samples(metrics, "kindred_preempt_added_nodes_total") == {(): 3}


@pytest.mark.parametrize("result", Result, ids=lambda result: result.value)
def test_what_became_of_a_pod_and_how_many_were_evicted_for_it_are_counted(metrics: Metrics, result: Result) -> None:
    metrics.preempts.observe_preemption(result, 2)
    assert samples(metrics, "kindred_preemptions_total") == {(each.value,): each is result for each in Result}
    assert samples(metrics, "kindred_preemption_victims_total") == {(): 2}
