"""NodeResourcesBalancedAllocation: a score by the standard deviation of the shares, in upstream's float64 operations.

Source: balanced_allocation.go and balanced_allocation_test.go of k8s.io/kubernetes v1.34.1.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events import Kind
from core.framework.interface import SKIP, SUCCESS, Operation, Scope
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from core.plugins.noderesources.strategies import ResourceSpec
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, mirror_of, offering, stranger

THREE: Final = (ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU))


def scores(
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


# balanced_allocation_test.go: "Include scalar resource on a node for balanced resource allocation" and the like.
@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        pytest.param({"cpu": 3000, "memory": 5000}, [87, 87], id="not-asked-for"),
        pytest.param({"cpu": 3000, "memory": 5000, GPU: 3}, [81, 87], id="asked-for-and-offered-by-one"),
    ],
)
def test_an_extended_resource_is_a_share_for_pods_that_ask_for_it_on_nodes_that_have_it(
    incoming: Amounts, expected: list[int]
) -> None:
    nodes = [{"cpu": 4000, "memory": 10000, GPU: 10}, {"cpu": 4000, "memory": 10000}]
    assert expected == scores(incoming, nodes, (), THREE)


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
    assert (scores(incoming, [{"cpu": 1}], (), resources) is None) is skipped


def test_a_node_that_the_mirror_does_not_know_is_scored_without_pods() -> None:
    mirror, batch = stranger({"cpu": 4000, "memory": 10000})
    plugin = NodeResourcesBalancedAllocation()
    _, state = plugin.pre_score(mirror, asking("p", {"cpu": 3000, "memory": 5000}), batch)
    assert state is not None
    assert plugin.score(state, batch).tolist() == [87]


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


def reference(asked: Sequence[int], allocatable: Sequence[int]) -> int:
    """Score one node as balancedResourceScorer does, operation by operation."""
    shares = [min(each / most, 1.0) for each, most in zip(asked, allocatable, strict=True) if most]
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
AMOUNT: Final = st.sampled_from([0, 1, 2, 3, 4, 6, 7, 10, 100]) | st.integers(0, 2**40)


@settings(deadline=None)
@given(st.integers(1, len(NAMES)), st.data())
def test_every_node_is_scored_as_alone(number: int, data: st.DataObject) -> None:
    row = st.lists(AMOUNT, min_size=number, max_size=number)
    incoming = data.draw(st.lists(st.integers(1, 2**40), min_size=number, max_size=number))
    nodes = data.draw(st.lists(row, min_size=1, max_size=4))
    offered = [dict(zip(NAMES, amounts, strict=False)) for amounts in nodes]
    expected = [reference(incoming, amounts) for amounts in nodes]
    resources = [ResourceSpec(name) for name in NAMES[:number]]
    assert expected == scores(dict(zip(NAMES, incoming, strict=False)), offered, (), resources)


def test_a_resource_named_twice_is_refused() -> None:
    resources = [ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec("cpu")]
    with pytest.raises(ValueError, match=r"^resources\[2\]\.name: duplicate value: cpu$"):
        NodeResourcesBalancedAllocation(resources=resources)


@pytest.mark.parametrize("weight", [-1, 2, 100])
def test_a_weight_other_than_1_is_refused(weight: int) -> None:
    with pytest.raises(ValueError, match=rf"^resources\[0\]\.weight: must be 1, got {weight}$"):
        NodeResourcesBalancedAllocation(resources=[ResourceSpec("cpu", weight)])


def test_a_weight_of_0_is_1_as_upstream_s_defaults_have_it() -> None:
    NodeResourcesBalancedAllocation(resources=[ResourceSpec("cpu", 0)])


def test_the_plugin_says_what_it_is() -> None:
    plugin = NodeResourcesBalancedAllocation()
    assert (plugin.name, plugin.kinds, plugin.class_fields, plugin.scores_alone) == (
        "NodeResourcesBalancedAllocation",
        (Node, Pod),
        ("requests",),
        True,
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        pytest.param(Node, offering("n", {"cpu": 1}), offering("n", {"cpu": 2}), True, id="node-allocatable"),
        pytest.param(
            Node,
            offering("n", {}),
            Node("n", {"a": "b"}, {"pods": 110}, unschedulable=True),
            False,
            id="node-anything-else",
        ),
        pytest.param(Pod, None, asking("p", {"cpu": 1}), True, id="pod-that-asks-comes"),
        pytest.param(Pod, asking("p", {"cpu": 1}), None, True, id="pod-that-asks-goes"),
        pytest.param(Pod, None, asking("p", {}, "", (100, 200)), False, id="pod-that-asks-for-nothing-comes"),
        pytest.param(Pod, asking("p", {"cpu": 1}), asking("p", {"cpu": 2}), True, id="pod-resized"),
        pytest.param(
            Pod,
            asking("p", {"cpu": 1}),
            Pod("p", "x", "p", requests={"cpu": 1}, labels={"a": "b"}),
            False,
            id="pod-relabelled",
        ),
    ],
)
def test_a_score_is_invalid_once_what_it_follows_from_differs(
    kind: Kind, before: Node | Pod | None, after: Node | Pod | None, *, expected: bool
) -> None:
    operation = Operation.of(before, after)
    rules = [
        rule
        for rule in NodeResourcesBalancedAllocation().invalidated_by
        if rule.kind is kind and operation in rule.operations
    ]
    assert {rule.scope for rule in rules} == {Scope.NODE}
    assert any(rule.touches(before, after) for rule in rules) is expected
