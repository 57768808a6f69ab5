"""What is counted of requests, bindings and preemptions."""

import pytest
from prometheus_client import Metric

from app.telemetry.request_metrics import OUTCOMES, RequestMetrics
from app.verbs.executor import EvictionOutcome, EvictionResult
from app.verbs.request import BindingResult, Request, VerbOutcome, VerbResponse
from tests.app.telemetry.metrics.scraped import values


def responded(  # noqa: PLR0913  # what is counted
    verb: str = "filter",
    outcome: VerbOutcome = VerbOutcome.FIT,
    *,
    seconds: float = 0.0004,
    waited: float = 0.0,
    result: BindingResult | None = None,
    dry_run: bool = False,
) -> Request:
    """Return a request with its response."""
    response = VerbResponse(b"", outcome=outcome, result=result)
    return Request(verb=verb, seconds=seconds, waited=waited, response=response, dry_run=dry_run)


def counted(*requests: Request) -> RequestMetrics:
    metrics = RequestMetrics()
    for request in requests:
        metrics.observe(request)
    return metrics


def counts(metrics: RequestMetrics, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric that are not 0."""
    return {labels: count for labels, count in values(metrics.collect())[name].items() if count}


def family(metrics: RequestMetrics, name: str) -> Metric:
    (found,) = (family for family in metrics.collect() if family.name == name)
    return found


def buckets(metrics: RequestMetrics, name: str, verb: str) -> dict[float, float]:
    return {
        float(sample.labels["le"]): sample.value
        for sample in family(metrics, name).samples
        if sample.name.endswith("_bucket") and sample.labels["verb"] == verb
    }


def test_every_outcome_and_result_that_there_can_be_is_told_before_it_has_happened() -> None:
    found = values(RequestMetrics().collect())
    outcomes = {(outcome.value, verb) for verb, outcomes in OUTCOMES.items() for outcome in outcomes}
    assert ("no_fit", "filter") in outcomes
    assert ("no_fit", "prioritize") not in outcomes
    assert {name: each for name, each in found.items() if name.endswith("_total")} == {
        "kindred_requests_total": dict.fromkeys(outcomes, 0),
        "kindred_stale_requests_total": dict.fromkeys(((verb,) for verb in OUTCOMES), 0),
        "kindred_binds_total": {(result.value,): 0 for result in BindingResult},
        "kindred_preemptions_total": {(result.value,): 0 for result in EvictionResult},
        "kindred_preemption_victims_total": {(): 0},
    }


@pytest.mark.parametrize("verb", OUTCOMES)
@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_a_question_is_counted_by_verb_and_outcome_whether_foreseen_or_not(verb: str, outcome: VerbOutcome) -> None:
    metrics = counted(responded(), responded(verb, outcome))
    expected = {("fit", "filter"): 1.0}
    expected[outcome.value, verb] = expected.get((outcome.value, verb), 0) + 1
    assert counts(metrics, "kindred_requests_total") == expected


def test_a_verb_that_nobody_has_foreseen_is_counted_too() -> None:
    assert counts(counted(responded("other")), "kindred_requests_total") == {("fit", "other"): 1}


def test_the_answer_to_a_bound_is_still_inside_of_its_bucket() -> None:
    metrics = counted(*(responded(seconds=seconds) for seconds in (0.0001, 0.00025, 0.0003, 10.0, 11.0)))
    found = buckets(metrics, "kindred_request_duration_seconds", "filter")
    assert (found[0.00025], found[0.0005], found[5.0], found[10.0], found[float("inf")]) == (2, 3, 3, 4, 5)
    assert counts(metrics, "kindred_request_duration_seconds_count") == {("filter",): 5}
    assert counts(metrics, "kindred_request_duration_seconds_sum")["filter",] == pytest.approx(21.00065)


def test_the_time_in_the_queue_has_a_histogram_of_its_own() -> None:
    metrics = counted(responded(seconds=0.3, waited=0.2))
    assert counts(metrics, "kindred_request_duration_seconds_sum") == {("filter",): 0.3}
    assert counts(metrics, "kindred_request_queue_seconds_sum") == {("filter",): 0.2}
    found = buckets(metrics, "kindred_request_queue_seconds", "filter")
    assert (found[0.1], found[0.25]) == (0, 1)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        *(pytest.param(responded("bind", result=each), {(each.value,): 1}, id=each.value) for each in BindingResult),
        pytest.param(responded("bind", result=BindingResult.BOUND, dry_run=True), {}, id="a-dry-run-binds-nothing"),
        pytest.param(responded("bind", VerbOutcome.SHED), {}, id="what-did-not-run-has-no-result"),
    ],
)
def test_a_binding_is_counted_by_its_result(request_: Request, expected: dict[tuple[str, ...], float]) -> None:
    assert counts(counted(request_), "kindred_binds_total") == expected


@pytest.mark.parametrize("result", EvictionResult, ids=lambda result: result.value)
def test_what_became_of_a_pod_and_how_many_were_evicted_for_it_are_counted(result: EvictionResult) -> None:
    metrics = RequestMetrics()
    metrics.observe_preemption(EvictionOutcome(result, 2))
    assert counts(metrics, "kindred_preemptions_total") == {(result.value,): 1}
    assert counts(metrics, "kindred_preemption_victims_total") == {(): 2}


def test_stale_answers_are_counted_by_verb() -> None:
    metrics = counted(*(Request(verb=verb, is_fresh=False) for verb in ("filter", "prioritize", "filter")), Request())
    assert counts(metrics, "kindred_stale_requests_total") == {("filter",): 2, ("prioritize",): 1}
