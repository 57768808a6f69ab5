"""Which pods matter more (upstream pkg/scheduler/util/utils_test.go has the same rules)."""

import pytest

from core.objects.pod import Pod
from core.preemption import earliest_start_time, most_important_first, start_time
from tests.builders import make_pod
from tests.core.decoded import pod_of

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def started(name: str, priority: int, time: str = "") -> Pod:
    builder = make_pod(name).priority(priority)
    return pod_of(builder.started(time) if time else builder)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        pytest.param(started("a", 2, LATE), started("b", 1, EARLY), id="priority-before-start-time"),
        pytest.param(started("a", 1, EARLY), started("b", 1, LATE), id="the-older-of-equal-priority"),
        pytest.param(started("a", 1, LATE), started("b", 1), id="one-that-has-started"),
        pytest.param(started("a", 0), started("b", -1), id="a-negative-priority-is-under-none"),
    ],
)
def test_the_more_important_pod_comes_first(more: Pod, less: Pod) -> None:
    assert most_important_first([more, less]) == [more, less]
    assert most_important_first([less, more]) == [more, less]


def test_equally_important_pods_stay_in_their_order() -> None:
    pods = [started(name, 1, EARLY) for name in "cab"]
    assert most_important_first(pods) == pods


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([started("a", 1, LATE), started("b", 1, EARLY)], (False, EARLY), id="the-earliest"),
        pytest.param([started("a", 2, LATE), started("b", 1, EARLY)], (False, LATE), id="of-the-highest-priority"),
        pytest.param([started("a", 1, EARLY), started("b", 2, LATE)], (False, LATE), id="wherever-it-stands"),
        pytest.param([started("a", 1), started("b", 1, LATE)], (False, LATE), id="not-started-is-latest"),
        pytest.param([started("a", 1)], (True, ""), id="none-started"),
    ],
)
def test_the_earliest_start_time_is_that_of_the_most_important(pods: list[Pod], expected: tuple[bool, str]) -> None:
    assert earliest_start_time(pods) == expected


def test_a_pod_that_has_not_started_is_later_than_all_that_have() -> None:
    assert start_time(started("a", 0)) > start_time(started("b", 0, "9999-12-31T23:59:59Z"))
