"""How long kube-scheduler waits, against how long Kindred may take."""

import pytest

from app.scheduler_configuration.finding import Severity
from tests.app.commands.doctor.registrations import (
    FULL_OFFLOAD,
    Case,
    assert_told_apart,
    error,
    found,
    registration,
    warning,
)

TIMEOUT = "extenders[0].httpTimeout"
CASES = {
    "a-timeout-below-the-deadline": warning(
        "timeout-below-deadline",
        TIMEOUT,
        registration(httpTimeout="4s", settings={"deadline": 4}),
        registration(httpTimeout="4s", settings={"deadline": 3.9}),
    ),
    "the-default-timeout-below-the-deadline": warning(
        "timeout-below-deadline",
        TIMEOUT,
        registration(httpTimeout=None, settings={"deadline": 5}),
        registration(httpTimeout=None),
    ),
    "a-timeout-below-the-timeout-of-bind": error(
        "timeout-below-bind-timeout",
        TIMEOUT,
        registration(FULL_OFFLOAD, httpTimeout="1m30s", settings={"bind_timeout": 90}),
        registration(FULL_OFFLOAD, httpTimeout="1m31s", settings={"bind_timeout": 90}),
    ),
    "a-timeout-below-that-of-bind-where-kindred-does-not-bind": error(
        "timeout-below-bind-timeout",
        TIMEOUT,
        registration(bindVerb="bind", httpTimeout="1s"),
        registration(httpTimeout="1s"),
    ),
    "a-timeout-that-is-over-before-it-begins": error(
        "timeout-length", TIMEOUT, registration(httpTimeout="-1s"), registration(httpTimeout="0s")
    ),
    "a-long-timeout-of-filter": warning(
        "timeout-length",
        TIMEOUT,
        registration(FULL_OFFLOAD, httpTimeout="30s"),
        registration(FULL_OFFLOAD, httpTimeout="10s"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_found_where_it_is_wrong_and_nowhere_else(case: Case) -> None:
    assert_told_apart(case)


def test_the_mending_of_a_short_timeout_is_right() -> None:
    (finding,) = found(registration(httpTimeout="500ms", settings={"deadline": 2.5}), "timeout-below-deadline")
    assert finding.fix == "httpTimeout: 3500ms, or deadline: 0.4 (KINDRED_DEADLINE)"
    assert finding.message.startswith("500ms: ")
    assert found(registration(httpTimeout="3500ms", settings={"deadline": 2.5}), "timeout-below-deadline") == []
    assert found(registration(httpTimeout="500ms", settings={"deadline": 0.4}), "timeout-below-deadline") == []


def test_the_default_timeout_is_named() -> None:
    (finding,) = found(registration(httpTimeout=None, settings={"deadline": 7}), "timeout-below-deadline")
    assert finding.message.startswith("not set, which means 5 s: ")


def test_what_follows_from_settings_that_were_not_given_is_no_error_yet() -> None:
    (finding,) = found(registration(FULL_OFFLOAD, httpTimeout="1s", assumed=True), "timeout-below-bind-timeout")
    assert finding.severity is Severity.WARNING
    assert "its bindTimeout (the default)" in finding.message
