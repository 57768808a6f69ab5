"""What measures: pods come and go at their pace, a watch shows their bindings, and a filled cluster is complete."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.e2e.api import NODES
from tests.e2e.cluster import PODS, Cluster
from tests.e2e.filled import Size, fill
from tests.e2e.pace import Made, Pace, paced, waits
from tests.e2e.programs import PATIENCE
from tests.e2e.scheduler import IN_TREE, configuration
from tests.e2e.shapes import pod

RATE, SECONDS, STOCK = 50.0, 4.0, 20


def test_pods_come_and_go_at_their_pace_and_each_is_seen_bound(cluster: Cluster) -> None:
    cluster.add_nodes(3)
    cluster.start_scheduler(configuration(IN_TREE, ""))
    with paced(cluster.plane, Pace(PODS, [pod("a"), pod("b")], RATE, SECONDS, STOCK, PATIENCE)) as creating:
        pass
    made = creating.result()
    assert [each.name for each in made[:3]] == ["a-0", "b-1", "a-2"]
    assert len(made) == RATE * SECONDS
    assert {round(later.due - each.due, 6) for each, later in pairwise(made)} == {1 / RATE}
    bound = {each.name: each.bound for each in made if each.bound is not None}
    assert len(bound) == len(made)
    assert min(waits(made, 0.0)) > 0
    remaining = cluster.bound_names()
    gone = bound.keys() - remaining
    assert len(remaining) >= STOCK
    assert least_gone(made) <= len(gone)
    assert max((bound[name] for name in gone), default=0.0) <= min(bound[name] for name in remaining)


def least_gone(made: Sequence[Made]) -> int:
    """Return how many pods are deleted if each was created when it was due: one that is later sees no fewer bound."""
    bound, gone = [each.bound for each in made if each.bound is not None], 0
    for each in made:
        gone += sum(time <= each.due for time in bound) - gone > STOCK
    return gone


def test_a_pod_without_a_scheduler_waits_until_the_end(cluster: Cluster) -> None:
    with paced(cluster.plane, Pace(PODS, [pod("a")], RATE, 0.1)) as creating:
        pass
    made = creating.result()
    assert [each.bound for each in made] == [None] * 5
    assert waits(made, made[0].due + 60)[0] == pytest.approx(60)


def test_whoever_lists_a_filled_cluster_gets_all_of_it(cluster: Cluster) -> None:
    size = Size(nodes=300, scale=1, plain=700)
    assert fill(cluster, size) == 1640 + 700
    nodes, pods = cluster.api.items(NODES), cluster.api.items("/api/v1/pods")
    assert len(nodes) == len({each["metadata"]["uid"] for each in nodes}) == 300
    assert len(pods) == len({each["metadata"]["uid"] for each in pods}) == 1640 + 700
    assert {each["spec"]["nodeName"] for each in pods} == {each["metadata"]["name"] for each in nodes}
