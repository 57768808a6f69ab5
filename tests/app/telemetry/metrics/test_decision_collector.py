"""What is told of decisions."""

from app.telemetry.metrics.decision_collector import DecisionCollector
from app.verbs.effects import Decision


class Time:
    """How long it took."""

    seconds = 3.25


def samples(collector: DecisionCollector) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("outcome", "")): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


def test_decisions_are_counted_by_outcome_beside_the_time_to_settle() -> None:
    found = samples(DecisionCollector({Decision.ASSUMED: 3, Decision.NO_FIT: 1}, Time()))
    assert found == {
        ("kindred_decisions_total", "assumed"): 3,
        ("kindred_decisions_total", "no_fit"): 1,
        ("kindred_settle_duration_seconds", ""): 3.25,
    }


def test_a_dump_has_nothing_to_settle() -> None:
    assert samples(DecisionCollector({}, None)) == {}
