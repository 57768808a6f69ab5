"""What a node offers, and what its pods ask for, guaranteed and best-effort apart."""

import pytest

from core.mirror.resource_figures import Figures, PlacedRequests
from core.objects.pod import Pod
from tests.core.mirror.values import pod


def requests_of(*pods: Pod) -> PlacedRequests:
    requests = PlacedRequests()
    for each in pods:
        requests.count(each, 1)
    return requests


def best_effort(uid: str, **requests: int) -> Pod:
    return Pod(uid, "default", uid, requests=requests, best_effort=True)


def test_what_pods_ask_for_is_added_up_with_each_pod_as_one_of_pods() -> None:
    requests = requests_of(pod("1", cpu=100, memory=5), pod("2", cpu=50), pod("3", memory=2))
    assert requests.guaranteed == {"cpu": 150, "memory": 7, "pods": 3}
    assert requests.best_effort == {}


def test_best_effort_pods_are_added_up_apart() -> None:
    requests = requests_of(best_effort("1"), best_effort("2", gpu=1), pod("3", cpu=100))
    assert requests.guaranteed == {"cpu": 100, "pods": 1}
    assert requests.best_effort == {"gpu": 1, "pods": 2}


def test_a_guaranteed_pod_that_asks_for_nothing_is_still_one_of_pods() -> None:
    assert requests_of(Pod("1", "default", "1", best_effort=False)).guaranteed == {"pods": 1}


def test_a_resource_that_nobody_asks_for_any_more_disappears() -> None:
    gone, stays, free = pod("1", cpu=100, gpu=1), pod("2", cpu=50), best_effort("3", gpu=2)
    requests = requests_of(gone, stays, free)
    requests.count(gone, -1)
    requests.count(free, -1)
    assert requests.guaranteed == {"cpu": 50, "pods": 1}
    assert requests.best_effort == {}
    requests.count(stays, -1)
    assert requests.guaranteed == {}


def test_a_request_for_none_of_a_resource_leaves_no_trace() -> None:
    requests = requests_of(pod("1", cpu=0, memory=1))
    assert requests.guaranteed == {"memory": 1, "pods": 1}
    requests.count(pod("1", cpu=0, memory=1), -1)
    assert requests.guaranteed == {}


def test_sums_are_exact_however_large() -> None:
    large = 2**70 + 1
    assert requests_of(pod("1", memory=large), pod("2", memory=large)).guaranteed["memory"] == 2**71 + 2


def test_requests_begin_with_a_copy_of_what_was_asked_for_already() -> None:
    asked, free = {"cpu": 1, "pods": 1}, {"pods": 1}
    requests = PlacedRequests(asked, free)
    requests.count(pod("1", cpu=2), 1)
    requests.count(best_effort("2"), 1)
    assert (requests.guaranteed, requests.best_effort) == ({"cpu": 3, "pods": 2}, {"pods": 2})
    assert (asked, free) == ({"cpu": 1, "pods": 1}, {"pods": 1})


@pytest.mark.parametrize(
    ("allocatable", "asked", "left"),
    [
        pytest.param({"cpu": 100, "pods": 10}, 30, {"cpu": 70, "pods": 9}, id="some-is-left"),
        pytest.param({"cpu": 100, "pods": 10}, 100, {"pods": 9}, id="nothing-is-left"),
        pytest.param({"cpu": 100, "pods": 10}, 101, {"pods": 9}, id="over-committed"),
        pytest.param({"pods": 10}, 30, {"pods": 9}, id="asked-for-and-not-offered"),
        pytest.param({"cpu": 100, "gpu": 2, "pods": 1}, 1, {"cpu": 99, "gpu": 2}, id="offered-and-not-asked-for"),
        pytest.param({}, 30, {}, id="an-unknown-node"),
    ],
)
def test_best_effort_pods_may_have_what_guaranteed_ones_leave(
    allocatable: dict[str, int], asked: int, left: dict[str, int]
) -> None:
    requests = requests_of(pod("1", cpu=asked), best_effort("2", gpu=1))
    expected = Figures(allocatable, {"cpu": asked, "pods": 1}, left, {"gpu": 1, "pods": 1})
    assert expected == requests.figures(allocatable)


def test_a_resource_of_which_a_node_offers_none_does_not_appear() -> None:
    assert PlacedRequests().figures({"cpu": 1, "gpu": 0}) == Figures({"cpu": 1}, {}, {"cpu": 1}, {})


def test_figures_do_not_change_any_more() -> None:
    requests = requests_of(pod("1", cpu=1))
    figures = requests.figures({"cpu": 5})
    requests.count(pod("2", cpu=1), 1)
    assert figures == Figures({"cpu": 5}, {"cpu": 1, "pods": 1}, {"cpu": 4}, {})
