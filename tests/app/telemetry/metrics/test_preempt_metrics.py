"""The metrics of the verb preempt, and of preemptions of our own."""

import pytest

from app.eviction.eviction_outcome import EvictionOutcome, EvictionResult
from app.telemetry.metrics import Metrics
from app.verbs.observation import Asked, Observation, VerbOutcome
from app.verbs.preempt_outcome import PreemptOutcome, PreemptResult
from core.mirror.cluster import ClusterMirror
from tests.app.telemetry.metrics.scraped import samples

CALL = Observation("preempt", VerbOutcome.FIT, 0.01, 0.0, 100, 12, Asked("shop/web", "u", 4, 1), "", "", "")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ClusterMirror(), lambda: 0.0)


def test_every_result_is_told_before_it_has_happened(metrics: Metrics) -> None:
    assert samples(metrics, "kindred_preempt_calls_total") == {(result.value,): 0 for result in PreemptOutcome}
    assert samples(metrics, "kindred_preempt_added_nodes_total") == {(): 0}
    assert samples(metrics, "kindred_preemptions_total") == {(result.value,): 0 for result in EvictionResult}
    assert samples(metrics, "kindred_preemption_victims_total") == {(): 0}


@pytest.mark.parametrize("result", PreemptOutcome, ids=lambda result: result.value)
def test_a_result_and_the_nodes_that_were_added_are_counted(metrics: Metrics, result: PreemptOutcome) -> None:
    metrics.observe(CALL._replace(result=PreemptResult(result, 3)))
    assert samples(metrics, "kindred_preempt_calls_total") == {(each.value,): each is result for each in PreemptOutcome}
    assert samples(metrics, "kindred_preempt_added_nodes_total") == {(): 3}


@pytest.mark.parametrize("result", EvictionResult, ids=lambda result: result.value)
def test_what_became_of_a_pod_and_how_many_were_evicted_for_it_are_counted(
    metrics: Metrics, result: EvictionResult
) -> None:
    metrics.preempts.observe_preemption(EvictionOutcome(result, 2))
    assert samples(metrics, "kindred_preemptions_total") == {(each.value,): each is result for each in EvictionResult}
    assert samples(metrics, "kindred_preemption_victims_total") == {(): 2}
