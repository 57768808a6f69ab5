"""Which questions have a line of the log, what stands in it, and how many there are at most."""

import logging

import pytest

from app.line_rate import LIMIT, NO_LIMIT, LineLimit
from app.logs import LATE, JsonLines
from app.telemetry.request_log import PROBLEMS, RequestLog, question_fields
from app.verbs.request import Asked, Observation, VerbOutcome

FITTING = Observation(
    "filter",
    VerbOutcome.FIT,
    0.00042,
    0.0001,
    7000,
    300,
    Asked("shop/web", "u-1", 500, 480),
    "hit 00000000000000ab",
    "",
    "",
)
REFUSED = FITTING._replace(outcome=VerbOutcome.SHED, source="", error="shed: 100 questions wait")


def fields(record: logging.LogRecord, *names: str) -> list[object]:
    found = {**vars(record), **vars(record)[LATE]()}
    return [found.get(name) for name in names]


@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_problems_are_warnings_and_nothing_else_is_told(outcome: VerbOutcome, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    RequestLog()(FITTING._replace(outcome=outcome))
    good = {VerbOutcome.FIT, VerbOutcome.NO_FIT, VerbOutcome.BYPASSED}
    assert [record.levelno for record in caplog.records] == ([] if outcome in good else [logging.WARNING])
    assert set(VerbOutcome) - good == PROBLEMS


def test_at_level_debug_there_is_a_line_for_every_question_with_problems_standing_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    log = RequestLog()
    for observation in (FITTING, FITTING._replace(outcome=VerbOutcome.NO_FIT), *2 * 10 * [REFUSED]):
        log(observation)
    assert [record.levelno for record in caplog.records] == [
        *2 * [logging.DEBUG],
        *2 * 10 * [logging.WARNING],
    ]


def test_a_line_has_what_is_known_of_the_question() -> None:
    assert question_fields(FITTING, error=False) == {
        "verb": "filter",
        "pod": "shop/web",
        "uid": "u-1",
        "class": "00000000000000ab",
        "cache": "hit",
        "outcome": "fit",
        "duration_ms": 0.42,
        "waited_ms": 0.1,
        "nodes": 500,
        "passed": 480,
        "request_bytes": 7000,
        "response_bytes": 300,
    }


def test_a_pod_without_a_class_has_none() -> None:
    told = question_fields(FITTING._replace(source="none"), error=False)
    assert (told["cache"], "class" in told) == ("none", False)


def test_a_pods_name_that_is_none_is_a_short_line() -> None:
    told = question_fields(FITTING._replace(asked=Asked("a\n" + "b" * 5000, "u\x1b")), error=False)
    assert str(told["pod"]).startswith("a\\nbbb")
    assert len(str(told["pod"])) < 2100
    assert told["uid"] == "u\\x1b"


@pytest.mark.parametrize("outcome", sorted(PROBLEMS, key=str), ids=lambda outcome: outcome.value)
def test_what_may_quote_the_request_is_told_at_level_debug_alone(
    outcome: VerbOutcome, caplog: pytest.LogCaptureFixture
) -> None:
    quotes = outcome in {VerbOutcome.BAD_REQUEST, VerbOutcome.DOUBTED, VerbOutcome.REFUSED}
    observation = FITTING._replace(
        outcome=outcome, error="Pod.spec: has a secret", request=b"a secret", response=b"secret"
    )
    log = RequestLog()
    caplog.set_level(logging.INFO)
    log(observation)
    assert ("secret" in JsonLines().format(caplog.records[0])) is not quotes
    assert fields(caplog.records[0], "request", "response") == [None, None]
    caplog.set_level(logging.DEBUG)
    log(observation)
    assert fields(caplog.records[1], "error") == ["Pod.spec: has a secret"]


def test_each_verb_and_outcome_has_its_own_limit_unless_every_request_is_wanted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for level in (logging.INFO, logging.DEBUG):
        caplog.set_level(level)
        RequestLog()(REFUSED)
    limits = [vars(record)[LIMIT] for record in caplog.records]
    assert limits == [LineLimit(("verb", "outcome")), NO_LIMIT]
    assert fields(caplog.records[0], *limits[0].by) == ["filter", "shed"]
