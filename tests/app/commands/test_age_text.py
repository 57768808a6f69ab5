"""How long something has lasted, held against kubectl's rules."""

import pytest

from app.commands.output import age_text

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # The cases of k8s.io/apimachinery pkg/util/duration/duration_test.go, TestHumanDuration.
        (1, "1s"),
        (70, "70s"),
        (190, "3m10s"),
        (70 * MINUTE, "70m"),
        (47 * HOUR, "47h"),
        (49 * HOUR, "2d1h"),
        (8 * DAY + 2 * HOUR, "8d"),
        (367 * DAY, "367d"),
        (2 * YEAR + 25 * DAY, "2y25d"),
        (8 * YEAR + 2 * DAY, "8y"),
        # The bounds between two forms.
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY, "2d"),
        (8 * DAY - 1, "7d23h"),
        (2 * YEAR, "2y"),
        (8 * YEAR - 1, "7y364d"),
    ],
)
def test_an_age_has_the_form_that_kubectl_gives_it(seconds: float, expected: str) -> None:
    assert age_text(seconds) == expected


def test_clocks_may_differ_by_less_than_two_seconds() -> None:
    assert [age_text(seconds) for seconds in (-1.9, -2)] == ["0s", "<invalid>"]


def test_a_time_that_is_not_known_is_said_as_kubectl_says_it() -> None:
    assert age_text(None) == "<unknown>"
