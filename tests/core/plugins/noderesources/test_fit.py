"""NodeResourcesFit: its arguments, what it declares, and its Pre extension points."""

from collections.abc import Sequence

import pytest

from core.events import Kind
from core.framework.interface import SUCCESS, Operation, Scope
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from tests.core.plugins.noderesources.values import asking, mirror_of, offering


def ratio(*shape: tuple[int, int]) -> ScoringStrategy:
    return ScoringStrategy("RequestedToCapacityRatio", shape=tuple(UtilizationShapePoint(*point) for point in shape))


def weighing(weight: int) -> ScoringStrategy:
    return ScoringStrategy("MostAllocated", (ResourceSpec("memory"), ResourceSpec("cpu", weight)))


def test_the_plugin_says_what_it_is() -> None:
    plugin = NodeResourcesFit()
    assert (plugin.name, plugin.kinds, plugin.class_fields, plugin.scores_alone) == (
        "NodeResourcesFit",
        (Node, Pod, DeviceClass),
        ("requests", "scored_requests"),
        True,
    )


def test_neither_side_is_ever_skipped() -> None:
    mirror = mirror_of(offering("n", {}))
    plugin, pod = NodeResourcesFit(), asking("p", {})
    assert (plugin.pre_filter(mirror, pod)[0], plugin.pre_score(mirror, pod, mirror.batch(["n"]))[0]) == (
        SUCCESS,
        SUCCESS,
    )


# apis/config/validation/validation_pluginargs_test.go, TestValidateNodeResourcesFitArgs.
@pytest.mark.parametrize(
    ("names", "groups", "strategy", "message"),
    [
        pytest.param(
            ["longvalue" * 9],
            [],
            ScoringStrategy(),
            r"^ignoredResources\[0\]: name part must be no more than 63",
            id="ignored-resource-too-long",
        ),
        pytest.param(
            ["example.com/ok", "///"],
            [],
            ScoringStrategy(),
            r"^ignoredResources\[1\]: a qualified name must",
            id="ignored-resource-that-is-no-name",
        ),
        pytest.param(
            [],
            ["example.com/foo"],
            ScoringStrategy(),
            r"^ignoredResourceGroups\[0\]: resource group name can't contain '/', got example\.com/foo$",
            id="ignored-group-with-a-slash",
        ),
        pytest.param(
            [],
            ["~"],
            ScoringStrategy(),
            r"^ignoredResourceGroups\[0\]: name part must consist of",
            id="ignored-group-that-is-no-name",
        ),
        pytest.param(
            [],
            [],
            ScoringStrategy("Rarest"),
            r"^scoringStrategy\.type: must be one of LeastAllocated, MostAllocated, RequestedToCapacityRatio, "
            r"got Rarest$",
            id="unknown-strategy",
        ),
        pytest.param(
            [],
            [],
            weighing(-1),
            r"^scoringStrategy\.resources\[1\]\.weight: resource weight of cpu not in valid range \(0, 100\], "
            r"got -1$",
            id="negative-weight",
        ),
        pytest.param(
            [], [], weighing(101), r"weight of cpu not in valid range \(0, 100\], got 101$", id="large-weight"
        ),
        pytest.param([], [], ratio(), r"^scoringStrategy\.shape: at least one point must be specified$", id="no-shape"),
        pytest.param(
            [],
            [],
            ratio((10, 1), (10, 2)),
            r"^scoringStrategy\.shape\[1\]\.utilization: values must be sorted in increasing order, got 10$",
            id="utilization-not-increasing",
        ),
        pytest.param(
            [],
            [],
            ratio((-10, 3), (50, 3)),
            r"^scoringStrategy\.shape\[0\]\.utilization: not in valid range \[0, 100\], got -10$",
            id="utilization-below-0",
        ),
        pytest.param(
            [],
            [],
            ratio((50, 3), (101, 3)),
            r"shape\[1\]\.utilization: not in valid range \[0, 100\], got 101$",
            id="utilization-above-100",
        ),
        pytest.param(
            [],
            [],
            ratio((50, -1)),
            r"^scoringStrategy\.shape\[0\]\.score: not in valid range \[0, 10\], got -1$",
            id="score-below-0",
        ),
        pytest.param(
            [], [], ratio((50, 11)), r"shape\[0\]\.score: not in valid range \[0, 10\], got 11$", id="score-above-10"
        ),
    ],
)
def test_arguments_are_refused_by_their_upstream_names(
    names: Sequence[str], groups: Sequence[str], strategy: ScoringStrategy, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        NodeResourcesFit(ignored_resources=names, ignored_resource_groups=groups, scoring_strategy=strategy)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"^ignoredResources\[0\]: .*; scoringStrategy\.resources\[1\]\.weight: "):
        NodeResourcesFit(ignored_resources=["~"], scoring_strategy=weighing(101))


@pytest.mark.parametrize("strategy", [ScoringStrategy(), weighing(1), weighing(100), ratio((0, 0), (100, 10))])
def test_arguments_in_range_are_accepted(strategy: ScoringStrategy) -> None:
    NodeResourcesFit(
        ignored_resources=["example.com/gpu"], ignored_resource_groups=["example.com"], scoring_strategy=strategy
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        pytest.param(Node, offering("n", {"cpu": 1}), offering("n", {"cpu": 2}), True, id="node-allocatable"),
        pytest.param(Node, offering("n", {}), offering("n", {"pods": 9}), True, id="node-places-for-pods"),
        pytest.param(
            Node,
            offering("n", {}),
            Node("n", {"a": "b"}, {"pods": 110}, images={"i": 1}, conditions={"Ready": "False"}, unschedulable=True),
            False,
            id="node-anything-else",
        ),
        pytest.param(Pod, None, asking("p", {}), True, id="pod-that-asks-for-nothing-comes"),
        pytest.param(Pod, asking("p", {}), None, True, id="pod-that-asks-for-nothing-goes"),
        pytest.param(Pod, asking("p", {"cpu": 1}), asking("p", {"cpu": 2}), True, id="pod-resized"),
        pytest.param(Pod, asking("p", {}, "", (1, 1)), asking("p", {}, "", (1, 2)), True, id="pod-scored-otherwise"),
        pytest.param(
            Pod,
            asking("p", {"cpu": 1}),
            Pod("p", "x", "p", requests={"cpu": 1}, non_zero_requests=(1, 0), labels={"a": "b"}),
            False,
            id="pod-relabelled",
        ),
    ],
)
def test_an_answer_is_invalid_once_what_it_follows_from_differs(
    kind: Kind, before: Node | Pod | None, after: Node | Pod | None, *, expected: bool
) -> None:
    operation = Operation.of(before, after)
    rules = [rule for rule in NodeResourcesFit().invalidated_by if rule.kind is kind and operation in rule.operations]
    assert {rule.scope for rule in rules} == {Scope.NODE}
    assert any(rule.touches(before, after) for rule in rules) is expected
