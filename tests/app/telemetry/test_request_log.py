"""Which questions have a line of the log, what stands in it, and how many there are at most."""

import logging
from typing import Any

import pytest
from msgspec.structs import replace

from app.process.logs import LATE, LIMIT, NO_LIMIT, JsonLines, LineLimit
from app.telemetry.request_log import PROBLEMS, log_request, question_fields
from app.verbs.request import Request, VerbOutcome, VerbResponse

FITS = VerbResponse(bytes(300), "hit 00000000000000ab", pod="shop/web", uid="u-1", nodes=500, passed=480)


def responded(response: VerbResponse = FITS, **changes: Any) -> Request:  # noqa: ANN401  # fields of a response
    """Return a request with a response, or with another one."""
    response = replace(response, **changes)
    return Request(b"a secret", verb="filter", size=7000, seconds=0.00042, waited=0.0001, response=response)


REJECTED = responded(outcome=VerbOutcome.SHED, source="", error="shed: 100 questions wait")


def fields(record: logging.LogRecord, *names: str) -> list[object]:
    found = {**vars(record), **vars(record)[LATE]()}
    return [found.get(name) for name in names]


@pytest.mark.parametrize("outcome", VerbOutcome, ids=lambda outcome: outcome.value)
def test_problems_are_warnings_and_nothing_else_is_told(outcome: VerbOutcome, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log_request(responded(outcome=outcome))
    good = {VerbOutcome.FIT, VerbOutcome.NO_FIT, VerbOutcome.BYPASSED}
    assert [record.levelno for record in caplog.records] == ([] if outcome in good else [logging.WARNING])
    assert set(VerbOutcome) - good == PROBLEMS


def test_at_level_debug_there_is_a_line_for_every_question_with_problems_standing_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    for request in (responded(), responded(outcome=VerbOutcome.NO_FIT), *2 * 10 * [REJECTED]):
        log_request(request)
    assert [record.levelno for record in caplog.records] == [
        *2 * [logging.DEBUG],
        *2 * 10 * [logging.WARNING],
    ]


def test_a_line_has_what_is_known_of_the_question() -> None:
    assert question_fields(responded(), error=False) == {
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
    reported = question_fields(responded(source="none"), error=False)
    assert (reported["cache"], "class" in reported) == ("none", False)


def test_a_pods_name_that_is_none_is_a_short_line() -> None:
    reported = question_fields(responded(pod="a\n" + "b" * 5000, uid="u\x1b"), error=False)
    assert str(reported["pod"]).startswith("a\\nbbb")
    assert len(str(reported["pod"])) < 2100
    assert reported["uid"] == "u\\x1b"


@pytest.mark.parametrize("outcome", sorted(PROBLEMS, key=str), ids=lambda outcome: outcome.value)
def test_what_may_quote_the_request_is_told_at_level_debug_alone(
    outcome: VerbOutcome, caplog: pytest.LogCaptureFixture
) -> None:
    quotes = outcome in {VerbOutcome.BAD_REQUEST, VerbOutcome.RETRIED, VerbOutcome.REJECTED}
    request = responded(body=b"secret", outcome=outcome, error="Pod.spec: has a secret")
    caplog.set_level(logging.INFO)
    log_request(request)
    assert ("secret" in JsonLines().format(caplog.records[0])) is not quotes
    assert fields(caplog.records[0], "request", "response") == [None, None]
    caplog.set_level(logging.DEBUG)
    log_request(request)
    assert fields(caplog.records[1], "error") == ["Pod.spec: has a secret"]


def test_each_verb_and_outcome_has_its_own_limit_unless_every_request_is_wanted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for level in (logging.INFO, logging.DEBUG):
        caplog.set_level(level)
        log_request(REJECTED)
    limits = [vars(record)[LIMIT] for record in caplog.records]
    assert limits == [LineLimit(("verb", "outcome")), NO_LIMIT]
    assert fields(caplog.records[0], *limits[0].by) == ["filter", "shed"]
