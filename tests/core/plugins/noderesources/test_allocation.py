"""Go's division, which the scores are made of."""

import numpy as np
import pytest

from core.plugins.noderesources.strategies import quotient


@pytest.mark.parametrize(
    ("dividend", "divisor", "expected"),
    [
        pytest.param(7, 2, 3, id="cut"),
        pytest.param(-7, 2, -3, id="towards-zero-from-below"),
        pytest.param(7, -2, -3, id="by-a-negative"),
        pytest.param(-7, -2, 3, id="of-two-negatives"),
        pytest.param(-8, 2, -4, id="exact"),
        pytest.param(2**63 - 1, 1, 2**63 - 1, id="the-largest-number"),
    ],
)
def test_division_cuts_towards_zero(dividend: int, divisor: int, expected: int) -> None:
    assert quotient(np.array([dividend, 1]), np.array([divisor, 1])).tolist() == [expected, 1]


def test_nothing_divided_is_nothing() -> None:
    assert quotient(np.zeros(0, np.int64), np.ones(0, np.int64)).tolist() == []
