"""How many candidates are enough (upstream default_preemption.go, calculateNumCandidates)."""

import pytest

from core.objects.pod import Pod
from core.preemption import Victims, are_enough, candidates_wanted


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


@pytest.mark.parametrize(
    ("violations", "expected"),
    [
        pytest.param([], False, id="none"),
        pytest.param([0], False, id="too-few"),
        pytest.param([0, 0], True, id="as-many-as-wanted"),
        pytest.param([1, 1, 1], False, id="all-violate-a-budget"),
        pytest.param([1, 1, 0], True, id="one-does-not"),
    ],
)
def test_so_many_are_enough_if_one_of_them_violates_no_budget(violations: list[int], *, expected: bool) -> None:
    victims = (Pod("u", "default", "p"),)
    candidates = {str(number): Victims(victims, each) for number, each in enumerate(violations)}
    assert are_enough(candidates, 2) == expected
