"""NodeResourcesFit: its arguments, its filter, the room of nodes, and one node alone as among others."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import SUCCESS, AnyScore, Code, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array
from core.objects.kinds import DeviceClass
from core.objects.pod import Pod
from core.plugins.noderesources.arguments import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from core.plugins.noderesources.columns import LARGEST_AMOUNT, Offered, ResourceColumns
from core.plugins.noderesources.filtering import MAX_REPORTED
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import NodeResourcesBalancedAllocation
from core.releases.differences import rules_of
from core.releases.release import Release, nearest
from tests.core.mirror.values import mirror_of, tell
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, offering


def ratio(*shape: tuple[int, int]) -> ScoringStrategy:
    return ScoringStrategy("RequestedToCapacityRatio", shape=tuple(UtilizationShapePoint(*point) for point in shape))


def weighing(weight: int) -> ScoringStrategy:
    return ScoringStrategy("MostAllocated", (ResourceSpec("memory"), ResourceSpec("cpu", weight)))


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


# The filter: which resources a node has too little of, in which order they are told, and what preemption can do.
#
# Source of the rules: fit.go (fitsRequest, Filter) and fit_test.go of k8s.io/kubernetes v1.34.1.

NODE: Final = {"cpu": 4000, "memory": 100, DISK: 50, GPU: 2}
ISSUES: Final = "kubernetes.io/batch"
"""A name that is scalar, but no extended resource."""


def resolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def verdicts(mirror: ClusterMirror, pod: Pod, batch: NodeBatch, plugin: NodeResourcesFit | None = None) -> Verdicts:
    plugin = plugin or NodeResourcesFit()
    status, state = plugin.pre_filter(mirror, pod)
    assert status == SUCCESS
    return plugin.filter(state, batch)


def verdict(
    node: Amounts, there: Sequence[Amounts], incoming: Amounts, plugin: NodeResourcesFit | None = None
) -> Status:
    pods = [asking(f"p{number}", amounts, "n") for number, amounts in enumerate(there)]
    mirror = mirror_of(offering("n", node), *pods)
    return verdicts(mirror, asking("incoming", incoming), mirror.batch(["n"]), plugin).status(0)


@pytest.mark.parametrize(
    ("names", "groups", "incoming", "expected"),
    [
        pytest.param([GPU], [], {GPU: 9}, SUCCESS, id="by-name"),
        pytest.param([], ["example.com"], {GPU: 9}, SUCCESS, id="by-group"),
        pytest.param(["example.com/x"], ["example"], {GPU: 9}, unresolvable(f"Insufficient {GPU}"), id="others"),
        pytest.param([GPU], [], {GPU: 9, "cpu": 9000}, unresolvable("Insufficient cpu"), id="but-not-the-rest"),
        pytest.param(["cpu"], ["cpu"], {"cpu": 9000}, unresolvable("Insufficient cpu"), id="cpu-cannot-be-ignored"),
        pytest.param(
            ["hugepages-2Mi"],
            ["hugepages-2Mi"],
            {"hugepages-2Mi": 1},
            unresolvable("Insufficient hugepages-2Mi"),
            id="huge-pages-cannot-be-ignored",
        ),
        pytest.param(
            [ISSUES], ["kubernetes.io"], {ISSUES: 1}, unresolvable(f"Insufficient {ISSUES}"), id="nor-what-is-native"
        ),
    ],
)
def test_ignored_extended_resources_are_not_looked_at(
    names: list[str], groups: list[str], incoming: Amounts, expected: Status
) -> None:
    plugin = NodeResourcesFit(ignored_resources=names, ignored_resource_groups=groups)
    assert expected == verdict(NODE, [], incoming, plugin)


def test_nodes_that_lack_the_same_share_a_status() -> None:
    kinds = [*product((1000, 3000), (10, 30), (1, 2))]
    nodes = [
        offering(f"n{number}", dict(zip(("cpu", "memory", GPU), kinds[number % 8], strict=True)))
        for number in range(400)
    ]
    mirror = mirror_of(*nodes)
    found = verdicts(mirror, asking("p", {"cpu": 2000, "memory": 20, GPU: 2}), mirror.batch([n.name for n in nodes]))
    assert found.statuses[0] == SUCCESS
    assert len(set(found.statuses)) == len(found.statuses) == 8
    for number, (cpu, memory, gpu) in enumerate(kinds):
        lacking = [("cpu", cpu < 2000), ("memory", memory < 20), (GPU, gpu < 2)]
        reasons = [f"Insufficient {resource}" for resource, lacks in lacking if lacks]
        assert found.status(number) == (unresolvable(*reasons) if reasons else SUCCESS)
        assert len(np.unique(found.codes[number::8])) == 1


def test_more_resources_than_an_int64_has_bits_are_told_apart() -> None:
    names = [f"example.com/{number:03}" for number in range(90)]
    mirror = mirror_of(offering("none", {}), offering("all", dict.fromkeys(names, 1)), offering("last", {names[-1]: 1}))
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), mirror.batch(["none", "all", "last"]))
    reasons = [f"Insufficient {name}" for name in names]
    assert found.status(0) == unresolvable(*reasons)
    assert found.status(1) == SUCCESS
    assert found.status(2) == unresolvable(*reasons[:-1])
    assert len(found.statuses) == 3


def test_of_very_many_resources_the_first_are_told_by_name() -> None:
    names = [f"example.com/{number:04}" for number in range(1000)]
    mirror = mirror_of(offering("none", {}), offering("all", dict.fromkeys(names, 1)), offering("last", {names[-1]: 1}))
    batch = mirror.batch(["none", "all", "last"])
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), batch)
    reasons = [f"Insufficient {name}" for name in names[:MAX_REPORTED]]
    assert found.status(0) == unresolvable(*reasons, "Insufficient other resources")
    assert found.status(1) == SUCCESS
    assert found.status(2) == unresolvable(*reasons, "Insufficient other resources")
    assert len(found.statuses) == 2
    mirror.apply(ClusterEvent("Add", asking("there", dict.fromkeys(names, 1), "all")))
    assert verdicts(mirror, asking("p", dict.fromkeys(names, 1)), batch).status(1) == resolvable(
        *reasons, "Insufficient other resources"
    )


def test_a_resource_that_no_node_offers_is_short_without_a_look_at_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"example.com/{number:04}" for number in range(1000)]
    mirror = mirror_of(offering("n", {"cpu": 1}), asking("there", dict.fromkeys(names[:500], 1), "n"))
    looks: list[str] = []
    whole = ResourceColumns.allocatable_of

    def allocatable_of(columns: ResourceColumns, resource: str, batch: NodeBatch, unmirrored: Offered) -> Int64Array:
        looks.append(resource)
        return whole(columns, resource, batch, unmirrored)

    monkeypatch.setattr(ResourceColumns, "allocatable_of", allocatable_of)
    found = verdicts(mirror, asking("p", dict.fromkeys(names, 1)), mirror.batch(["n"]))
    assert looks == ["pods"]
    assert found.status(0).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_sum_that_has_overflowed_leaves_something_of_a_resource_that_no_node_offers() -> None:
    # As in Go: 2^63-1 and 2^63-1 are -2, and 0 less -2 is enough for 1, but not for 3.
    there = [asking(name, {GPU: 2**63 - 1}, "n") for name in "ab"]
    mirror = mirror_of(offering("n", {}), *there)
    found = [verdicts(mirror, asking("p", {GPU: amount}), mirror.batch(["n"])).status(0) for amount in (1, 3)]
    assert found == [SUCCESS, unresolvable(f"Insufficient {GPU}")]


AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory", GPU)), st.integers(0, 4))


def most(node: Amounts, *pods: Amounts, plugin: NodeResourcesFit | None = None, there: Amounts | None = None) -> int:
    placed = [] if there is None else [asking("there", there, "n")]
    mirror = mirror_of(offering("n", node), *placed)
    requested = [asking(f"p{number}", each) for number, each in enumerate(pods)]
    return int((plugin or NodeResourcesFit()).capacity_for(mirror, requested, mirror.batch(["n"])).most[0])


@pytest.mark.parametrize(
    ("node", "pods", "expected"),
    [
        pytest.param({"cpu": 5}, [{"cpu": 2}] * 4, 2, id="alike"),
        pytest.param({"cpu": 5}, [{"cpu": 4}, {"cpu": 1}, {"cpu": 3}], 2, id="the-smallest-first"),
        pytest.param({"cpu": 9, "memory": 1}, [{"cpu": 1, "memory": 1}] * 4, 1, id="the-scarcest-resource"),
        pytest.param({"cpu": 1}, [{"cpu": 2}, {}, {}], 2, id="pods-that-ask-for-nothing"),
        pytest.param({"pods": 2, "cpu": 9}, [{"cpu": 1}] * 4, 2, id="number-of-pods"),
        pytest.param({"cpu": 9}, [{GPU: 1}], 0, id="a-resource-that-no-node-has"),
    ],
)
def test_each_resource_bounds_the_number(node: Amounts, pods: list[Amounts], expected: int) -> None:
    assert most(node, *pods) == expected


def test_pods_that_are_there_take_room_also_more_than_there_is() -> None:
    assert most({"cpu": 5}, {"cpu": 2}, {"cpu": 2}, there={"cpu": 3}) == 1
    assert most({"cpu": 5}, {"cpu": 2}, {}, there={"cpu": 7}) == 1


def test_what_the_filter_does_not_look_at_is_no_bound() -> None:
    assert most({}, {GPU: 1}, {GPU: 1}, plugin=NodeResourcesFit(ignored_resources=[GPU])) == 2
    mirror = mirror_of(offering("n", {}), DeviceClass(name="gpu", extended_resource=GPU))
    mirror.change_rules(rules_of(Release(1, 37)))
    pods = [asking("p", {GPU: 1})]
    fits = FreshEvaluation(mirror, pods[0]).verdicts(NodeResourcesFit(), mirror.batch(["n"]))
    assert fits is not None
    assert not fits.codes.any()
    assert NodeResourcesFit().capacity_for(mirror, pods, mirror.batch(["n"])).most.tolist() == [1]


@given(AMOUNTS, st.lists(AMOUNTS, min_size=1, max_size=5))
def test_no_order_of_placing_exceeds_it(node: Amounts, pods: list[Amounts]) -> None:
    mirror = mirror_of(offering("n", {**node, "pods": 3}))
    requested = [asking(f"p{number}", each) for number, each in enumerate(pods)]
    bound = int(NodeResourcesFit().capacity_for(mirror, requested, mirror.batch(["n"])).most[0])
    placed = 0
    for pod in requested:
        verdicts = FreshEvaluation(mirror, pod).verdicts(NodeResourcesFit(), mirror.batch(["n"]))
        if verdicts is None or not verdicts.codes[0]:
            mirror.assume(pod, "n", 0.0)
            placed += 1
    assert placed <= bound


def test_the_scarcest_resource_tells_how_many_times_over_all_have_room() -> None:
    mirror = mirror_of(offering("n", {"cpu": 12, "memory": 3, "pods": 100}))
    room = NodeResourcesFit().capacity_for(
        mirror, [asking("a", {"cpu": 2, "memory": 2}), asking("b", {})], mirror.all_nodes()
    )
    assert (room.most.tolist(), room.times.tolist()) == ([2], [1.5])
    assert room.shares.tolist() == [[50], [6], [1.5]]  # of pods, cpu and memory


RESOURCES: Final = (ResourceSpec("cpu", 2), ResourceSpec("memory"), ResourceSpec(GPU, 3))
SHAPE: Final = (UtilizationShapePoint(0, 10), UtilizationShapePoint(70, 3), UtilizationShapePoint(100, 0))
SCORES: Final[tuple[AnyScore, ...]] = (
    NodeResourcesFit(),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("LeastAllocated", RESOURCES)),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("MostAllocated", RESOURCES)),
    NodeResourcesFit(scoring_strategy=ScoringStrategy("RequestedToCapacityRatio", RESOURCES, SHAPE)),
    NodeResourcesBalancedAllocation(),
    NodeResourcesBalancedAllocation(resources=[ResourceSpec(each.name) for each in RESOURCES]),
)
amounts = st.integers(0, 12) | st.integers(0, 2**40) | st.sampled_from([LARGEST_AMOUNT - 1, 2**62, 2**63 - 1])
requests = st.fixed_dictionaries({}, optional=dict.fromkeys(("cpu", "memory", DISK, GPU), amounts))
nodes = st.lists(st.tuples(requests, st.lists(requests, max_size=3)), min_size=2, max_size=5)


def mirror_with(release: str, given_nodes: list[tuple[Amounts, list[Amounts]]]) -> ClusterMirror:
    """Give a mirror of the nodes n0, n1 ..., each with the pods that it is given with."""
    mirror = ClusterMirror(rules=rules_of(nearest(release).release))
    for number, (offered, pods) in enumerate(given_nodes):
        tell(mirror, "Add", offering(f"n{number}", {"pods": 3, **offered}))
        stored = [asking(f"p{number}-{index}", each, f"n{number}", (7, 9)) for index, each in enumerate(pods)]
        tell(mirror, "Add", *stored)
    return mirror


def scored(plugin: AnyScore, mirror: ClusterMirror, pod: Pod, names: list[str]) -> list[int] | None:
    """Score nodes in one request; None: the plugin scores no node."""
    batch = mirror.batch(names)
    _, state = plugin.pre_score(mirror, pod, batch)
    if state is None:
        return None
    found: list[int] = plugin.score(state, batch).tolist()
    return found


@pytest.mark.parametrize("plugin", SCORES)
@pytest.mark.parametrize("release", ["1.34", "1.36"])
@example([({"cpu": 4, "memory": 8}, [{"cpu": 1}]), ({"cpu": 3}, [])], {"cpu": 1, "memory": 7})
@given(nodes, requests)
def test_a_node_alone_has_the_score_that_it_has_among_others(
    plugin: AnyScore, release: str, given_nodes: list[tuple[Amounts, list[Amounts]]], incoming: Amounts
) -> None:
    mirror, pod = mirror_with(release, given_nodes), asking("incoming", incoming)
    names = [f"n{number}" for number in range(len(given_nodes))]
    alone = [scored(plugin, mirror, pod, [name]) for name in names]
    among_others = scored(plugin, mirror, pod, names)
    assert ([None] * len(names) if among_others is None else [[score] for score in among_others]) == alone
    _, state = plugin.pre_score(mirror, pod, mirror.batch(names))
    for name, score in zip(names, among_others or (), strict=False):
        assert plugin.score_on(state, mirror.nodes.slots[name]) in {None, score}


@given(nodes, requests)
def test_a_node_alone_has_the_verdict_that_it_has_among_others(
    given_nodes: list[tuple[Amounts, list[Amounts]]], incoming: Amounts
) -> None:
    mirror, pod, plugin = mirror_with("1.36", given_nodes), asking("incoming", incoming), NodeResourcesFit()
    names = [f"n{number}" for number in range(len(given_nodes))]
    _, state = plugin.pre_filter(mirror, pod)
    among_others = plugin.filter(state, mirror.batch(names))
    expected = [among_others.status(position) for position in range(len(names))]
    assert [plugin.filter(state, mirror.batch([name])).status(0) for name in names] == expected
    for name, status in zip(names, expected, strict=True):
        assert plugin.status_on(state, mirror.nodes.slots[name]) in {None, status}
