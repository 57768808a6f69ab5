"""The metrics of the verbs."""

import pytest
from prometheus_client import Metric

from app.telemetry.metrics import Metrics
from app.telemetry.metrics.verb_collector import OUTCOMES, VerbCollector
from app.verbs.observation import Asked, Observation, VerbOutcome
from core.mirror.cluster import ClusterMirror
from tests.app.telemetry.metrics.scraped import collected, families, samples

FITTING = Observation("filter", VerbOutcome.FIT, 0.0004, 0.0, 7000, 300, Asked("shop/web", "u", 500, 480), "", "", "")


def collector_of(*observations: Observation) -> VerbCollector:
    collector = VerbCollector()
    for observation in observations:
        collector.count(observation)
    return collector


def family(collector: VerbCollector, name: str) -> Metric:
    (found,) = (family for family in collector.collect() if family.name == name)
    return found


def buckets(collector: VerbCollector, name: str, verb: str) -> dict[float, float]:
    return {
        float(sample.labels["le"]): sample.value
        for sample in family(collector, name).samples
        if sample.name.endswith("_bucket") and sample.labels["verb"] == verb
    }


def test_every_outcome_that_a_verb_can_have_is_told_before_it_has_happened() -> None:
    told = collected(VerbCollector())["kindred_requests_total"]
    assert told == {(outcome.value, verb): 0 for verb, outcomes in OUTCOMES.items() for outcome in outcomes}
    assert ("no_fit", "filter") in told
    assert ("no_fit", "prioritize") not in told
    assert ("failed", "bind") in told


@pytest.mark.parametrize("verb", OUTCOMES)
@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_a_question_is_counted_by_verb_and_outcome_whether_foreseen_or_not(verb: str, outcome: VerbOutcome) -> None:
    collector = collector_of(FITTING, FITTING._replace(verb=verb, outcome=outcome))
    counts = {labels: count for labels, count in collected(collector)["kindred_requests_total"].items() if count}
    expected = {("fit", "filter"): 1.0}
    expected[outcome.value, verb] = expected.get((outcome.value, verb), 0) + 1
    assert counts == expected


def test_a_verb_that_nobody_has_foreseen_is_counted_too() -> None:
    assert collected(collector_of(FITTING._replace(verb="other")))["kindred_requests_total"]["fit", "other"] == 1


def test_the_answer_to_a_bound_is_still_inside_of_its_bucket() -> None:
    collector = collector_of(*(FITTING._replace(seconds=seconds) for seconds in (0.0001, 0.00025, 0.0003, 10.0, 11.0)))
    found = buckets(collector, "kindred_request_duration_seconds", "filter")
    assert (found[0.00025], found[0.0005], found[5.0], found[10.0], found[float("inf")]) == (2, 3, 3, 4, 5)
    values = collected(collector)
    assert values["kindred_request_duration_seconds_count"]["filter",] == 5
    assert values["kindred_request_duration_seconds_sum"]["filter",] == pytest.approx(21.00065)
    assert values["kindred_request_duration_seconds_count"]["bind",] == 0


def test_each_histogram_has_its_own_figure() -> None:
    collector = collector_of(FITTING._replace(seconds=0.3, waited=0.2, request_bytes=1024, response_bytes=5_000_000))
    values = collected(collector)
    names = ("request_duration_seconds", "request_queue_seconds", "request_size_bytes", "response_size_bytes")
    sums = {name: values[f"kindred_{name}_sum"]["filter",] for name in names}
    assert sums == {
        "request_duration_seconds": 0.3,
        "request_queue_seconds": 0.2,
        "request_size_bytes": 1024,
        "response_size_bytes": 5_000_000,
    }
    assert buckets(collector, "kindred_request_queue_seconds", "filter")[0.1] == 0
    assert buckets(collector, "kindred_request_queue_seconds", "filter")[0.25] == 1
    assert buckets(collector, "kindred_request_size_bytes", "filter")[1024] == 1
    assert buckets(collector, "kindred_response_size_bytes", "filter")[4194304] == 0
    assert buckets(collector, "kindred_response_size_bytes", "filter")[16777216] == 1


def test_nodes_are_added_up_by_verb() -> None:
    scored = FITTING._replace(verb="prioritize", asked=Asked("shop/web", "u", 480, 480))
    values = collected(collector_of(FITTING, scored, scored))
    assert {verb: count for (verb,), count in values["kindred_nodes_asked_total"].items() if count} == {
        "filter": 500,
        "prioritize": 960,
    }
    assert values["kindred_nodes_passed_total"]["filter",] == 480


def test_a_scrape_has_them() -> None:
    metrics = Metrics(ClusterMirror(), lambda: 0.0)
    metrics.observe(FITTING)
    assert samples(metrics, "kindred_requests_total")["fit", "filter"] == 1
    told = families(metrics)["kindred_request_duration_seconds"]
    counts = {sample.labels["verb"]: sample.value for sample in told.samples if sample.name.endswith("_count")}
    assert counts == {"filter": 1, "prioritize": 0, "bind": 0, "preempt": 0}
