"""On which node preemption does the least harm (upstream preemption.go, pickOneNodeForPreemption)."""

import pytest

from core.preemption import Victims, best_nodes
from tests.builders import make_pod
from tests.core.decoded import pod_of

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def victims(*priorities: int, violations: int = 0, time: str = EARLY) -> Victims:
    return Victims(tuple(pod_of(make_pod("p").priority(each).started(time)) for each in priorities), violations)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        pytest.param(victims(9, 9), victims(1, violations=1), id="violations-before-priorities"),
        pytest.param(victims(1, 1, 1), victims(2), id="most-important-victim-before-the-sum"),
        pytest.param(victims(2, 1), victims(2, 2), id="sum-of-priorities"),
        pytest.param(victims(-1), victims(-1, -1), id="sums-of-negative-priorities"),
        pytest.param(victims(2), victims(2, -(2**31)), id="number-of-victims"),
        pytest.param(victims(1, time=LATE), victims(1, time=EARLY), id="latest-start-time"),
    ],
)
def test_the_node_where_it_does_less_harm_is_chosen(better: Victims, worse: Victims) -> None:
    assert best_nodes({"worse": worse, "better": better}) == ["better"]
    assert best_nodes({"better": better, "worse": worse}) == ["better"]


def test_nodes_that_tie_are_all_returned_in_their_order() -> None:
    assert best_nodes({"n2": victims(1), "n0": victims(1), "n1": victims(2)}) == ["n2", "n0"]


def test_without_candidates_there_is_no_choice() -> None:
    assert best_nodes({}) == []


def test_the_start_times_of_less_important_victims_do_not_count() -> None:
    old = pod_of(make_pod("old").priority(1).started(EARLY))
    new = pod_of(make_pod("new").priority(2).started(LATE))
    first = Victims((new, old), 0)
    second = Victims((pod_of(make_pod("other").priority(2).started(EARLY)), old), 0)
    assert best_nodes({"second": second, "first": first}) == ["first"]
