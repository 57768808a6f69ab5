"""Which questions have a line of the log, what stands in it, and how many there are at most."""

import logging

import pytest

from app.telemetry.request_log import MAX_LINES, PROBLEMS, RequestLog, question_fields
from app.verbs.observation import Asked, Observation, VerbOutcome
from tests.app.telemetry.passing_time import Clock

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


@pytest.fixture
def clock() -> Clock:
    return Clock()


def fields(record: logging.LogRecord, *names: str) -> list[object]:
    return [vars(record).get(name) for name in names]


@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_problems_are_warnings_and_nothing_else_is_told(
    outcome: VerbOutcome, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    RequestLog("problems", clock, clock.later)(FITTING._replace(outcome=outcome))
    good = {VerbOutcome.FIT, VerbOutcome.NO_FIT, VerbOutcome.BYPASSED}
    assert [record.levelno for record in caplog.records] == ([] if outcome in good else [logging.WARNING])
    assert set(VerbOutcome) - good == PROBLEMS


def test_all_is_a_line_for_every_question_with_problems_standing_out(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log = RequestLog("all", clock, clock.later)
    for observation in (FITTING, FITTING._replace(outcome=VerbOutcome.NO_FIT), *2 * MAX_LINES * [REFUSED]):
        log(observation)
    assert [record.levelno for record in caplog.records] == [
        *2 * [logging.INFO],
        *2 * MAX_LINES * [logging.WARNING],
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
    outcome: VerbOutcome, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    quotes = outcome in {VerbOutcome.BAD_REQUEST, VerbOutcome.DOUBTED, VerbOutcome.REFUSED}
    observation = FITTING._replace(
        outcome=outcome, error="Pod.spec: has a secret", request=b"a secret", response=b"secret"
    )
    log = RequestLog("problems", clock, clock.later)
    caplog.set_level(logging.INFO)
    log(observation)
    assert ("secret" in str(vars(caplog.records[0]))) is not quotes
    assert fields(caplog.records[0], "request", "response") == [None, None]
    caplog.set_level(logging.DEBUG)
    log(observation)
    assert fields(caplog.records[1], "error") == ["Pod.spec: has a secret"]


def test_a_storm_is_told_by_a_few_lines_a_second_and_their_number(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log = RequestLog("problems", clock, clock.later)
    for _ in range(1000):
        log(REFUSED)
    assert len(caplog.records) == MAX_LINES
    log(REFUSED._replace(outcome=VerbOutcome.STALE))
    log(REFUSED._replace(verb="prioritize"))
    assert len(caplog.records) == MAX_LINES + 2, "others have lines of their own"
    caplog.clear()
    clock.pass_by(0.9)
    assert caplog.records == []
    clock.pass_by(0.2)
    (last,) = caplog.records
    assert last.getMessage() == "requests not logged"
    assert fields(last, "verb", "outcome", "left_out") == ["filter", "shed", 1000 - MAX_LINES]


def test_after_a_storm_there_are_lines_again(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog("problems", clock, clock.later)
    for _ in range(MAX_LINES + 1):
        log(REFUSED)
    clock.pass_by(1.1)
    caplog.clear()
    for _ in range(3):
        log(REFUSED)
        clock.pass_by(0.5)
    assert [record.getMessage() for record in caplog.records] == 3 * ["request"]


def test_a_slow_stream_of_problems_is_told_whole(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog("problems", clock, clock.later)
    for _ in range(5 * MAX_LINES):
        log(REFUSED)
        clock.pass_by(1 / MAX_LINES + 0.001)
    assert [record.getMessage() for record in caplog.records] == 5 * MAX_LINES * ["request"]
