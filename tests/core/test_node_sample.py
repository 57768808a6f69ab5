"""How many nodes are passed on to be scored, and which."""

from collections.abc import Sequence

import numpy as np
import pytest

from core.framework.evaluation import FreshEvaluation
from core.scheduling_cycle import ADAPTIVE, ALL, NodeSample, nodes_to_score
from tests.builders import PodBuilder, labelled, make_node, make_pod, term
from tests.core.decoded import mirror_of, pod_of
from tests.core.profile_parts import affinity_profile

HOSTNAME = "kubernetes.io/hostname"
NODES = 200
NAMES = [f"n{number}" for number in range(NODES)]


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [
        # schedule_one_test.go, Test_numFeasibleNodesToFind
        pytest.param(ADAPTIVE, 10, 100, id="few-nodes"),
        pytest.param(40, 10, 100, id="few-nodes-and-a-percentage"),
        pytest.param(ADAPTIVE, 1000, 420, id="adaptive"),
        pytest.param(40, 1000, 400, id="a-percentage"),
        pytest.param(ADAPTIVE, 6000, 300, id="adaptive-in-a-large-cluster"),
        pytest.param(40, 6000, 2400, id="a-percentage-of-a-large-cluster"),
        pytest.param(1, 5000, 100, id="never-fewer-than-a-hundred"),
        pytest.param(ALL, 5000, 5000, id="all"),
    ],
)
def test_as_many_as_kube_scheduler_wants(percentage: int, nodes: int, expected: int) -> None:
    assert nodes_to_score(percentage, nodes) == expected


class Sampling:
    """Samples of 200 nodes, of which two have a web pod."""

    def __init__(self, percentage: int) -> None:
        web = [make_pod(f"web-{name}").label("app", "web").on(name) for name in ("n150", "n3")]
        self._mirror = mirror_of(*(make_node(name).label(HOSTNAME, name) for name in NAMES), *web)
        self._sample = NodeSample(percentage)
        self._start = 0

    def names(self, pod: PodBuilder, fitting: Sequence[int] = range(NODES)) -> list[str]:
        """Return the names that are passed on, where those at some positions fit."""
        evaluation = FreshEvaluation(self._mirror, pod_of(pod))
        batch = self._mirror.batch(NAMES)
        found = np.array(fitting)
        positions = self._sample.of(affinity_profile(), evaluation, batch, found, nodes=NODES, start=self._start)
        self._start += len(positions)
        return [NAMES[position] for position in positions.tolist()]


def test_all_that_fit_are_passed_on_where_they_are_no_more_than_wanted() -> None:
    fitting = range(0, NODES, 2)
    assert Sampling(ADAPTIVE).names(make_pod("p"), fitting) == [NAMES[position] for position in fitting]


def test_with_a_hundred_percent_all_that_fit_are_passed_on() -> None:
    assert Sampling(ALL).names(make_pod("p")) == NAMES


def test_samples_of_equals_follow_one_another() -> None:
    sampling = Sampling(ADAPTIVE)
    assert sampling.names(make_pod("p")) == NAMES[:100]
    assert sampling.names(make_pod("p")) == NAMES[100:]
    assert sampling.names(make_pod("p"), range(150)) == NAMES[50:150]
    assert sampling.names(make_pod("p"), range(150)) == NAMES[:100]


def test_the_best_are_always_among_them_and_the_order_stays() -> None:
    near_web = make_pod("p").preferred_affinity(1, term(HOSTNAME, labelled(app="web")))
    sampling = Sampling(ADAPTIVE)
    assert sampling.names(near_web) == [*NAMES[:99], "n150"]
    assert sampling.names(near_web) == ["n3", *NAMES[100:199]]
