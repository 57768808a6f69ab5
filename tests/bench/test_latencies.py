"""Times of responses: percentiles, and which responses overlap others."""

import pytest

from tests.bench.latencies import Latencies, Span, percentile


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        pytest.param([3.0], 0.5, 3.0, id="one-value"),
        pytest.param([4.0, 1.0, 3.0, 2.0], 0.5, 2.0, id="lower-middle-of-four"),
        pytest.param([float(value) for value in range(1, 101)], 0.99, 99.0, id="p99-of-a-hundred"),
        pytest.param([1.0, 2.0, 9.0], 0.99, 9.0, id="p99-of-few-is-the-longest"),
    ],
)
def test_a_percentile_is_the_smallest_value_that_such_a_share_does_not_exceed(
    values: list[float], share: float, expected: float
) -> None:
    assert expected == percentile(values, share)


def test_answers_during_others_are_those_that_overlap_with_any_of_them() -> None:
    answers = Latencies([Span(0, 1), Span(1, 2), Span(2, 3), Span(5, 6)])
    assert [Span(1, 2), Span(2, 3)] == answers.during([Span(1.5, 2.5), Span(3, 4)]).spans
