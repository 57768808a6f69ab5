"""The scoring strategies of NodeResourcesFit: tables of upstream's own cases, and its arithmetic node by node.

Source: least_allocated_test.go, most_allocated_test.go and requested_to_capacity_ratio_test.go of k8s.io/kubernetes
v1.34.1, in which "example.com/foo" stands for an extended resource.
"""

from collections.abc import Sequence
from math import floor
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import (
    Allocation,
    NodeAllocation,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, mirror_of, offering, stranger

LEAST: Final = ScoringStrategy()
MAX: Final = ScoringStrategy("MostAllocated")
RISING: Final = ScoringStrategy(
    "RequestedToCapacityRatio", shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
)
FALLING: Final = ScoringStrategy(
    "RequestedToCapacityRatio", shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
)
NODES: Final[Sequence[Amounts]] = ({"cpu": 4000, "memory": 10000}, {"cpu": 6000, "memory": 10000})


def weighted(strategy: ScoringStrategy, **weights: int) -> ScoringStrategy:
    named = {"gpu": GPU, "disk": DISK}
    resources = tuple(ResourceSpec(named.get(name, name), weight) for name, weight in weights.items())
    return ScoringStrategy(strategy.type, resources, strategy.shape)


def scores(
    strategy: ScoringStrategy,
    incoming: Amounts,
    there: Sequence[tuple[Amounts, str]] = (),
    nodes: Sequence[Amounts] = NODES,
) -> list[int]:
    """Score the nodes n0, n1 ...; pods are told with the node that they are on."""
    offered = [offering(f"n{number}", amounts) for number, amounts in enumerate(nodes)]
    pods = [asking(f"p{number}", amounts, on) for number, (amounts, on) in enumerate(there)]
    mirror = mirror_of(*offered, *pods)
    plugin, batch = NodeResourcesFit(scoring_strategy=strategy), mirror.batch([node.name for node in offered])
    _, state = plugin.pre_score(mirror, asking("incoming", incoming), batch)
    raw = plugin.score(state, batch)
    assert plugin.normalize(raw).tolist() == raw.tolist(), "there is no NormalizeScore"
    found: list[int] = raw.tolist()
    return found


@pytest.mark.parametrize(
    ("strategy", "incoming", "there", "nodes", "expected"),
    [
        pytest.param(
            weighted(LEAST, cpu=0, memory=0),
            {"cpu": 3000, "memory": 5000},
            (),
            NODES,
            [37, 50],
            id="least-weight-0-is-1",
        ),
        pytest.param(
            ScoringStrategy(resources=()), {"cpu": 3000, "memory": 5000}, (), NODES, [37, 50], id="least-no-resources"
        ),
        pytest.param(
            weighted(LEAST, cpu=1, cpu2=1), {"cpu": 3000}, (), NODES, [25, 50], id="least-a-resource-that-nobody-has"
        ),
        pytest.param(MAX, {"cpu": 3000, "memory": 5000}, (), NODES, [62, 50], id="most-differently-sized-nodes"),
        pytest.param(RISING, {"cpu": 3000, "memory": 5000}, (), NODES, [63, 50], id="rising-is-rounded-not-cut"),
        pytest.param(
            FALLING, {"cpu": 4000, "memory": 5000}, (), NODES, [50, 42], id="a-score-of-0-does-not-lower-the-mean"
        ),
    ],
)
def test_a_strategy_scores_as_upstream_s(
    strategy: ScoringStrategy,
    incoming: Amounts,
    there: list[tuple[Amounts, str]],
    nodes: Sequence[Amounts],
    expected: list[int],
) -> None:
    assert expected == scores(strategy, incoming, there, nodes)


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        pytest.param({"cpu": 1000}, [75, 75], id="not-asked-for"),
        pytest.param({"cpu": 1000, GPU: 0}, [75, 75], id="asked-for-zero"),
        pytest.param({"cpu": 1000, GPU: 1}, [62, 75], id="asked-for"),
    ],
)
def test_an_extended_resource_is_scored_for_pods_that_ask_for_it_on_nodes_that_have_it(
    incoming: Amounts, expected: list[int]
) -> None:
    nodes = ({"cpu": 4000, GPU: 4}, {"cpu": 4000})
    there = [({GPU: 1}, "n0")]
    assert expected == scores(weighted(LEAST, cpu=1, gpu=1), incoming, there, nodes)


def test_ephemeral_storage_is_scored_for_pods_that_do_not_ask_for_it_too() -> None:
    nodes = ({"cpu": 4000, DISK: 10}, {"cpu": 4000})
    assert scores(weighted(LEAST, cpu=1, disk=1), {"cpu": 4000}, [({DISK: 4}, "n0")], nodes) == [30, 0]


def test_cpu_and_memory_are_scored_as_pods_are_taken_for() -> None:
    mirror = mirror_of(offering("n", {"cpu": 1000, "memory": 1000}), asking("p", {}, "n", (100, 200)))
    plugin, batch = NodeResourcesFit(), mirror.batch(["n"])
    _, state = plugin.pre_score(mirror, asking("incoming", {}, "", (100, 200)), batch)
    assert plugin.score(state, batch).tolist() == [(80 + 60) // 2]


def test_a_node_that_the_mirror_does_not_know_is_scored_without_pods() -> None:
    mirror, batch = stranger({"cpu": 4000, "memory": 100})
    plugin = NodeResourcesFit()
    _, state = plugin.pre_score(mirror, asking("p", {"cpu": 1000, "memory": 50}), batch)
    assert plugin.score(state, batch).tolist() == [(75 + 50) // 2]


def reference(strategy: ScoringStrategy, requested: Sequence[int], allocatable: Sequence[int]) -> int:
    """Score one node as the Go code does, in Python's exact integers."""
    total = weights = 0
    for spec, asked, capacity in zip(strategy.resources, requested, allocatable, strict=True):
        if capacity == 0:
            continue
        if strategy.type == "LeastAllocated":
            score = 0 if asked > capacity else (capacity - asked) * 100 // capacity
        elif strategy.type == "MostAllocated":
            score = min(asked, capacity) * 100 // capacity
        else:
            score = _on_shape(strategy.shape, 100 if asked > capacity else asked * 100 // capacity)
            if score == 0:
                continue
        total, weights = total + score * spec.weight, weights + spec.weight
    if not weights:
        return 0
    return floor(total / weights + 0.5) if strategy.shape else total // weights


def _on_shape(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    for index, point in enumerate(shape):
        if utilization <= point.utilization:
            if index == 0:
                return point.score * 10
            before = shape[index - 1]
            product = (point.score - before.score) * 10 * (utilization - before.utilization)
            part, width = abs(product) // (point.utilization - before.utilization), 1 if product >= 0 else -1
            return before.score * 10 + width * part
    return shape[-1].score * 10


AMOUNT: Final = st.sampled_from([0, 1, 2, 3, 7, 99, 100, 101, 4000, 2**40]) | st.integers(0, 2**50)
SHAPES: Final = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=5).map(
    lambda points: tuple(UtilizationShapePoint(*point) for point in sorted(points.items()))
)


@st.composite
def strategies(draw: st.DrawFn) -> ScoringStrategy:
    kind = draw(st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]))
    weights = draw(st.lists(st.integers(1, 100), min_size=1, max_size=4))
    resources = tuple(ResourceSpec(f"r{index}", weight) for index, weight in enumerate(weights))
    return ScoringStrategy(kind, resources, draw(SHAPES) if kind == "RequestedToCapacityRatio" else ())


@settings(deadline=None)
@given(strategies(), st.data())
def test_every_node_is_scored_as_alone(strategy: ScoringStrategy, data: st.DataObject) -> None:
    row = st.lists(AMOUNT, min_size=3, max_size=3)
    table = [(data.draw(row), data.draw(row)) for _ in strategy.resources]
    allocations = [
        Allocation(spec.weight, np.array(allocatable, np.int64), np.array(requested, np.int64), 0)
        for spec, (requested, allocatable) in zip(strategy.resources, table, strict=True)
    ]
    expected = [
        reference(strategy, [requested[node] for requested, _ in table], [each[node] for _, each in table])
        for node in range(3)
    ]
    scorer = strategy.scorer()
    assert expected == scorer.of_all(allocations, 3).tolist()
    for node, score in enumerate(expected):
        of_one = [
            NodeAllocation(spec.weight, allocatable[node], requested[node], 0)
            for spec, (requested, allocatable) in zip(strategy.resources, table, strict=True)
        ]
        assert scorer.of_one(of_one) in {score, None}
