"""How many candidates are enough (upstream default_preemption.go, calculateNumCandidates)."""

import pytest

from core.preemption.candidates import candidates_wanted


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(0, 0, id="none"),
        pytest.param(99, 99, id="fewer-than-the-least"),
        pytest.param(100, 100, id="the-least"),
        pytest.param(1_009, 100, id="rounded-down"),
        pytest.param(5_000, 500, id="a-tenth"),
    ],
)
def test_a_tenth_of_the_nodes_but_at_least_a_hundred_if_there_are_so_many(nodes: int, expected: int) -> None:
    assert candidates_wanted(nodes) == expected
