"""The waits after failures."""

import pytest

from app.watch.backoff import Backoff


def waits(backoff: Backoff, *times: float) -> list[float]:
    """Give the waits after failures at these times."""
    return [backoff.delay(time) for time in times]


def test_the_wait_doubles_up_to_the_longest() -> None:
    backoff = Backoff(0.8, 30.0, 120.0, lambda: 0.0)
    assert waits(backoff, *range(8)) == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


@pytest.mark.parametrize(
    ("random", "expected"),
    [
        pytest.param(0.0, [1.0, 2.0, 3.0], id="none"),
        pytest.param(0.5, [1.5, 3.0, 4.5], id="half"),
        pytest.param(0.999, [1.999, 3.998, 5.997], id="most"),
    ],
)
def test_jitter_adds_up_to_as_much_again_and_does_not_grow(random: float, expected: list[float]) -> None:
    assert waits(Backoff(1.0, 3.0, 120.0, lambda: random), 0, 1, 2) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("quiet", "expected"), [pytest.param(120.0, 4.0, id="not-yet"), pytest.param(120.1, 1.0, id="long-enough")]
)
def test_it_starts_anew_after_a_time_without_a_failure(quiet: float, expected: float) -> None:
    backoff = Backoff(1.0, 30.0, 120.0, lambda: 0.0)
    waits(backoff, 0.0, 10.0)
    assert backoff.delay(10.0 + quiet) == expected


def test_it_starts_anew_with_each_failure_that_comes_late() -> None:
    backoff = Backoff(1.0, 30.0, 120.0, lambda: 0.0)
    assert waits(backoff, 0.0, 200.0, 400.0, 401.0) == [1.0, 1.0, 1.0, 2.0]
