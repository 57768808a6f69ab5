"""The metrics of bindings."""

import pytest

from app.telemetry.metrics import Metrics
from app.verbs.binding.binding_outcome import BindingResult
from app.verbs.observation import Asked, Observation, VerbOutcome
from core.mirror.cluster import ClusterMirror
from tests.app.telemetry.metrics.scraped import samples

BOUND = Observation("bind", VerbOutcome.FIT, 0.01, 0.0, 100, 12, Asked("shop/web", "u", 1), "", "", "")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(ClusterMirror(), lambda: 0.0)


def test_every_result_is_told_before_it_has_happened(metrics: Metrics) -> None:
    assert samples(metrics, "kindred_binds_total") == {(result.value,): 0 for result in BindingResult}


@pytest.mark.parametrize("result", BindingResult, ids=lambda result: result.value)
def test_a_result_is_counted(metrics: Metrics, result: BindingResult) -> None:
    metrics.observe(BOUND._replace(result=result))
    assert samples(metrics, "kindred_binds_total") == {(each.value,): each is result for each in BindingResult}


def test_a_request_that_the_verb_did_not_answer_has_no_result(metrics: Metrics) -> None:
    metrics.observe(BOUND._replace(outcome=VerbOutcome.SHED))
    assert not any(samples(metrics, "kindred_binds_total").values())
    assert samples(metrics, "kindred_requests_total")["shed", "bind"] == 1
