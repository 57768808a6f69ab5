"""One node alone gets what it gets among others: numbers and arrays are two ways to the same scores and verdicts."""

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.framework.interface import AnyScore
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from core.plugins.noderesources.columns import LARGEST_AMOUNT
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from core.releases import nearest, rules_of
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, offering, tell

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
        held = [asking(f"p{number}-{index}", each, f"n{number}", (7, 9)) for index, each in enumerate(pods)]
        tell(mirror, "Add", *held)
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


@given(nodes, requests)
def test_a_node_alone_has_the_verdict_that_it_has_among_others(
    given_nodes: list[tuple[Amounts, list[Amounts]]], incoming: Amounts
) -> None:
    mirror, pod, plugin = mirror_with("1.36", given_nodes), asking("incoming", incoming), NodeResourcesFit()
    names = [f"n{number}" for number in range(len(given_nodes))]
    _, state = plugin.pre_filter(mirror, pod)
    among_others = plugin.filter(state, mirror.batch(names))
    alone = [plugin.filter(state, mirror.batch([name])).status(0) for name in names]
    assert [among_others.status(position) for position in range(len(names))] == alone
