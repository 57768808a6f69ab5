"""The waits after failures."""

import pytest

from app.watch.backoff import Backoff


def waits(backoff: Backoff, *successes: float) -> list[float]:
    """Return the waits after failures, each after so many seconds that went well."""
    return [backoff.delay(success) for success in successes]


def test_the_wait_doubles_up_to_the_longest() -> None:
    backoff = Backoff(0.8, 30.0, lambda: 0.0)
    assert waits(backoff, *[0.0] * 8) == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


@pytest.mark.parametrize(
    ("random", "expected"),
    [
        pytest.param(0.0, [1.0, 2.0, 3.0], id="none"),
        pytest.param(0.5, [1.5, 3.0, 4.5], id="half"),
        pytest.param(0.999, [1.999, 3.998, 5.997], id="most"),
    ],
)
def test_jitter_adds_up_to_as_much_again_and_does_not_grow(random: float, expected: list[float]) -> None:
    assert waits(Backoff(1.0, 3.0, lambda: random), 0.0, 0.0, 0.0) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("well", "expected"),
    [pytest.param(29.9, [1.0, 8.0], id="not-yet"), pytest.param(30.0, [1.0, 2.0], id="long-enough")],
)
def test_it_starts_anew_after_a_success_as_long_as_the_longest_wait(well: float, expected: list[float]) -> None:
    backoff = Backoff(1.0, 30.0, lambda: 0.0)
    waits(backoff, 0.0, 0.0)
    assert waits(backoff, well, 0.0) == expected


def test_the_time_that_went_well_is_a_part_of_the_wait_but_for_the_first_second() -> None:
    backoff = Backoff(1.0, 30.0, lambda: 0.5)
    assert waits(backoff, 0.0, 0.0, 0.0, 5.0, 15.5, 25.0) == [1.5, 3.0, 6.0, 4.5, 1.5, 7.5]


def test_a_failure_that_is_not_the_resources_own_does_not_lengthen_the_wait() -> None:
    backoff = Backoff(1.0, 30.0, lambda: 0.5)
    assert [backoff.same_delay(), backoff.same_delay()] == [1.5, 1.5]
    assert waits(backoff, 0.0, 0.0) == [3.0, 6.0]
    assert backoff.same_delay() == 6.0


def test_after_a_reset_the_next_wait_is_the_first() -> None:
    backoff = Backoff(1.0, 30.0, lambda: 0.0)
    waits(backoff, 0.0, 0.0, 0.0)
    backoff.reset()
    assert waits(backoff, 0.0, 0.0) == [1.0, 2.0]


def test_it_starts_anew_with_each_failure_that_comes_late() -> None:
    backoff = Backoff(1.0, 30.0, lambda: 0.0)
    assert waits(backoff, 0.0, 200.0, 200.0, 0.0) == [1.0, 1.0, 1.0, 2.0]
