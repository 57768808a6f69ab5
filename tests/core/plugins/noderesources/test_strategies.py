"""The scoring strategies of NodeResourcesFit: tables of upstream's own cases, and its arithmetic node by node.

Source: least_allocated_test.go, most_allocated_test.go and requested_to_capacity_ratio_test.go of k8s.io/kubernetes
v1.34.1, in which "example.com/foo" stands for an extended resource.
"""

from collections.abc import Sequence
from math import floor, sqrt
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.framework.interface import SKIP, SUCCESS
from core.plugins.noderesources.arguments import (
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    with_default_weights,
)
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import (
    Allocation,
    NodeAllocation,
    NodeResourcesBalancedAllocation,
    quotient,
    scorer_of,
)
from tests.core.mirror.values import mirror_of
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, offering

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


def reference(strategy: ScoringStrategy, requests: Sequence[int], allocatable: Sequence[int]) -> int:
    """Score one node as the Go code does, in Python's exact integers."""
    total = weights = 0
    for spec, requested, capacity in zip(with_default_weights(strategy.resources), requests, allocatable, strict=True):
        if capacity == 0:
            continue
        if strategy.type == "LeastAllocated":
            score = 0 if requested > capacity else (capacity - requested) * 100 // capacity
        elif strategy.type == "MostAllocated":
            score = min(requested, capacity) * 100 // capacity
        else:
            score = _on_shape(strategy.shape, 100 if requested > capacity else requested * 100 // capacity)
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
        for spec, (requested, allocatable) in zip(with_default_weights(strategy.resources), table, strict=True)
    ]
    expected = [
        reference(strategy, [requested[node] for requested, _ in table], [each[node] for _, each in table])
        for node in range(3)
    ]
    scorer = scorer_of(strategy)
    assert expected == scorer.of_all(allocations, 3).tolist()
    for node, score in enumerate(expected):
        of_one = [
            NodeAllocation(spec.weight, allocatable[node], requested[node], 0)
            for spec, (requested, allocatable) in zip(with_default_weights(strategy.resources), table, strict=True)
        ]
        assert scorer.of_one(of_one) in {score, None}


# NodeResourcesBalancedAllocation: a score by the standard deviation of the shares, in upstream's float64 operations.
#
# Source: balanced_allocation.go and balanced_allocation_test.go of k8s.io/kubernetes v1.34.1.

THREE: Final = (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU))


def balances(
    incoming: Amounts,
    nodes: Sequence[Amounts],
    there: Sequence[tuple[Amounts, str]] = (),
    resources: Sequence[ResourceSpec] = (),
) -> list[int] | None:
    """Score the nodes n0, n1 ...; pods are told with the node that they are on. None: skipped."""
    offered = [offering(f"n{number}", amounts) for number, amounts in enumerate(nodes)]
    pods = [asking(f"p{number}", amounts, on, (10**9, 10**9)) for number, (amounts, on) in enumerate(there)]
    mirror = mirror_of(*offered, *pods)
    plugin, batch = NodeResourcesBalancedAllocation(resources=resources), mirror.batch([node.name for node in offered])
    status, state = plugin.pre_score(mirror, asking("incoming", incoming), batch)
    if state is None:
        assert status == SKIP
        return None
    assert status == SUCCESS
    raw = plugin.score(state, batch)
    assert plugin.normalize(raw).tolist() == raw.tolist(), "there is no NormalizeScore"
    found: list[int] = raw.tolist()
    return found


@pytest.mark.parametrize(
    ("incoming", "resources", "skipped"),
    [
        pytest.param({}, (), True, id="nothing"),
        pytest.param({"cpu": 0, GPU: 1}, (), True, id="only-what-is-not-scored"),
        pytest.param({GPU: 1}, THREE, False, id="an-extended-resource-that-is-scored"),
        pytest.param({"memory": 1}, (), False, id="memory"),
    ],
)
def test_a_pod_that_asks_for_nothing_scored_is_not_scored(
    incoming: Amounts, resources: Sequence[ResourceSpec], *, skipped: bool
) -> None:
    assert (balances(incoming, [{"cpu": 1}], (), resources) is None) is skipped


def test_sums_that_overflow_give_a_score_in_range() -> None:
    huge = {"cpu": 2**62, "memory": 2**62}
    mirror = mirror_of(
        offering("n", {"cpu": 1, "memory": 7, GPU: 3}), asking("p", huge, "n"), asking("q", {"cpu": 2**62}, "n")
    )
    plugin, batch = NodeResourcesBalancedAllocation(resources=THREE), mirror.batch(["n"])
    _, state = plugin.pre_score(mirror, asking("incoming", {"cpu": 1, GPU: 1}), batch)
    assert state is not None
    raw = plugin.score(state, batch)
    assert raw.tolist() == [-(2**63)], "as int64() of Go has it"
    assert plugin.normalize(raw).tolist() == [0]


def balance_reference(requested: Sequence[int], allocatable: Sequence[int]) -> int:
    """Score one node as balancedResourceScorer does, operation by operation."""
    shares = [min(each / most, 1.0) for each, most in zip(requested, allocatable, strict=True) if most]
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares = squares + (share - mean) * (share - mean)
        deviation = sqrt(squares / len(shares))
    return int((1 - deviation) * 100.0)


NAMES: Final = ("cpu", "memory", DISK, GPU, "example.com/a", "example.com/b", "example.com/c", "example.com/d", "e.f/g")
SHARED_AMOUNT: Final = st.sampled_from([0, 1, 2, 3, 4, 6, 7, 10, 100]) | st.integers(0, 2**40)


@settings(deadline=None)
@given(st.integers(1, len(NAMES)), st.data())
def test_every_node_is_balanced_as_alone(number: int, data: st.DataObject) -> None:
    row = st.lists(SHARED_AMOUNT, min_size=number, max_size=number)
    incoming = data.draw(st.lists(st.integers(1, 2**40), min_size=number, max_size=number))
    nodes = data.draw(st.lists(row, min_size=1, max_size=4))
    offered = [dict(zip(NAMES, amounts, strict=False)) for amounts in nodes]
    expected = [balance_reference(incoming, amounts) for amounts in nodes]
    resources = [ResourceSpec(name) for name in NAMES[:number]]
    assert expected == balances(dict(zip(NAMES, incoming, strict=False)), offered, (), resources)


def test_a_resource_named_twice_is_refused() -> None:
    resources = [ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec("cpu")]
    with pytest.raises(ValueError, match=r"^resources\[2\]\.name: duplicate value: cpu$"):
        NodeResourcesBalancedAllocation(resources=resources)


@pytest.mark.parametrize("weight", [-1, 2, 100])
def test_a_weight_other_than_1_is_refused(weight: int) -> None:
    with pytest.raises(ValueError, match=rf"^resources\[0\]\.weight: must be 1, got {weight}$"):
        NodeResourcesBalancedAllocation(resources=[ResourceSpec("cpu", weight)])


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
