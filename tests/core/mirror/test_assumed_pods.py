"""How long a pod stays assumed: bindings that are finished, never finished, and finished again."""

from math import inf, nan

import pytest

from core.mirror.placement import AssumedPod, AssumedPods
from tests.core.mirror.values import pod

ONE = pod("1", "n")
TWO = pod("2", "n")


def assumed(*, ttl: float = 30.0, finished_at: float | None = 0.0) -> AssumedPods:
    pods = AssumedPods(ttl)
    pods.add(ONE, -5.0)
    if finished_at is not None:
        pods.finish_binding("1", finished_at)
    return pods


def test_an_assumed_pod_has_the_time_of_its_assumption_and_no_deadline_at_first() -> None:
    assert assumed(finished_at=None).by_uid == {"1": AssumedPod(ONE, -5.0, None)}
    assert assumed(finished_at=2.0).by_uid == {"1": AssumedPod(ONE, -5.0, 32.0)}


@pytest.mark.parametrize(
    ("now", "overdue"),
    [
        pytest.param(-1.0, False, id="before"),
        pytest.param(29.9, False, id="within-the-ttl"),
        pytest.param(30.0, False, id="at-the-deadline"),
        pytest.param(30.1, True, id="after-it"),
        pytest.param(inf, True, id="long-after-it"),
    ],
)
def test_a_pod_is_overdue_after_its_deadline_and_not_at_it(
    now: float,
    overdue: bool,  # noqa: FBT001 - a table's column
) -> None:
    pods = assumed()
    assert pods.take_overdue(now) == ([ONE] if overdue else [])
    assert ("1" in pods) is not overdue


def test_a_pod_whose_binding_is_not_finished_is_never_overdue() -> None:
    pods = assumed(finished_at=None)
    pods.add(TWO, 0.0)
    pods.finish_binding("2", 0.0)
    assert pods.take_overdue(1e9) == [TWO]
    assert pods.take_overdue(1e9) == []
    assert set(pods.by_uid) == {"1"}


def test_finishing_again_begins_anew() -> None:
    pods = assumed()
    pods.finish_binding("1", 20.0)
    assert pods.take_overdue(45.0) == []
    assert pods.by_uid["1"].deadline == 50.0
    assert pods.take_overdue(50.5) == [ONE]


def test_finishing_again_at_an_earlier_time_brings_the_deadline_forward() -> None:
    pods = assumed(finished_at=100.0)
    assert pods.take_overdue(40.0) == []
    pods.finish_binding("1", 0.0)
    assert pods.take_overdue(40.0) == [ONE]


def test_finishing_the_binding_of_a_pod_that_is_not_assumed_does_nothing() -> None:
    pods = assumed()
    pods.finish_binding("2", 0.0)
    pods.remove("1")
    pods.finish_binding("1", 0.0)
    assert (pods.by_uid, pods.take_overdue(inf)) == ({}, [])


def test_a_pod_that_was_taken_out_is_not_overdue_later() -> None:
    pods = assumed()
    assert pods.remove("1") == AssumedPod(ONE, -5.0, 30.0)
    pods.add(ONE, 1.0)
    assert pods.take_overdue(100.0) == []
    assert "1" in pods


def test_pods_are_overdue_each_at_its_own_time() -> None:
    pods = AssumedPods(10.0)
    each = [pod(str(number), "n") for number in range(4)]
    for number in (2, 0, 3, 1):
        pods.add(each[number], 0.0)
        pods.finish_binding(str(number), float(number))
    taken = [pods.take_overdue(now) for now in (10.0, 10.5, 11.5, 11.9, 20.0)]
    assert taken == [[], [each[0]], [each[1]], [], [each[2], each[3]]]


def test_a_pod_at_its_deadline_stays_though_another_is_overdue() -> None:
    pods = assumed()
    pods.add(TWO, 0.0)
    pods.finish_binding("2", 1.0)
    assert pods.take_overdue(31.0) == [ONE]
    assert pods.take_overdue(31.1) == [TWO]


def test_nothing_is_looked_through_while_nothing_can_be_due() -> None:
    class Refusing(dict[str, AssumedPod]):
        def values(self) -> None:  # type: ignore[override]  # it ends the test
            pytest.fail("looked through all pods")

    pods = assumed()
    pods.by_uid = Refusing(pods.by_uid)
    for now in range(31):
        assert pods.take_overdue(float(now)) == []


def test_a_ttl_of_0_lets_a_pod_stay_for_ever() -> None:
    pods = assumed(ttl=0.0)
    assert pods.take_overdue(inf) == []
    assert pods.by_uid["1"].deadline is None


@pytest.mark.parametrize("ttl", [-0.1, -inf, nan])
def test_a_ttl_that_is_no_length_of_time_is_refused(ttl: float) -> None:
    with pytest.raises(ValueError, match="TTL of an assumed pod"):
        AssumedPods(ttl)
