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
        registration(httpTimeout="4s", settings={"http_timeout": 5}),
        registration(httpTimeout="4s", settings={"http_timeout": 4.9}),
    ),
    "the-default-timeout-below-the-deadline": warning(
        "timeout-below-deadline",
        TIMEOUT,
        registration(httpTimeout=None, settings={"http_timeout": 6.25}),
        registration(httpTimeout=None),
    ),
    "a-timeout-below-the-timeout-of-bind": error(
        "timeout-below-deadline",
        TIMEOUT,
        registration(FULL_OFFLOAD, httpTimeout="1m20s", settings={"http_timeout": 100}),
        registration(FULL_OFFLOAD, httpTimeout="1m21s", settings={"http_timeout": 100}),
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
    (finding,) = found(registration(httpTimeout="500ms", settings={"http_timeout": 2.5}), "timeout-below-deadline")
    assert finding.fix == "httpTimeout: 2500ms, or httpTimeout: 0.5 (KINDRED_HTTP_TIMEOUT)"
    assert finding.message.startswith("500ms, and Kindred's httpTimeout is 2.5 s: ")
    assert found(registration(httpTimeout="2500ms", settings={"http_timeout": 2.5}), "timeout-below-deadline") == []
    assert found(registration(httpTimeout="500ms", settings={"http_timeout": 0.5}), "timeout-below-deadline") == []


def test_the_default_timeout_is_named() -> None:
    (finding,) = found(registration(httpTimeout=None, settings={"http_timeout": 7}), "timeout-below-deadline")
    assert finding.message.startswith("not set, which means 5 s, and ")


def test_what_follows_from_settings_that_were_not_given_is_no_error_yet() -> None:
    (finding,) = found(registration(FULL_OFFLOAD, httpTimeout="1s", assumed=True), "timeout-below-deadline")
    assert finding.severity is Severity.WARNING
    assert "httpTimeout is 5 s (the default)" in finding.message
