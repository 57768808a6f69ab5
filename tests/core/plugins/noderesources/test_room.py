"""The bound of how many pods a node can hold: never below what the filter lets in, and tight for alike pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.framework.evaluation import FreshEvaluation
from core.objects.kinds import DeviceClass
from core.plugins.noderesources.fit import NodeResourcesFit
from core.releases import Release, rules_of
from tests.core.plugins.noderesources.values import GPU, Amounts, asking, mirror_of, offering

AMOUNTS = st.dictionaries(st.sampled_from(("cpu", "memory", GPU)), st.integers(0, 4))


def most(node: Amounts, *pods: Amounts, plugin: NodeResourcesFit | None = None, there: Amounts | None = None) -> int:
    placed = [] if there is None else [asking("there", there, "n")]
    mirror = mirror_of(offering("n", node), *placed)
    asked = [asking(f"p{number}", each) for number, each in enumerate(pods)]
    return int((plugin or NodeResourcesFit()).room_for(mirror, asked, mirror.batch(["n"])).most[0])


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
    assert NodeResourcesFit().room_for(mirror, pods, mirror.batch(["n"])).most.tolist() == [1]


@given(AMOUNTS, st.lists(AMOUNTS, min_size=1, max_size=5))
def test_no_order_of_placing_exceeds_it(node: Amounts, pods: list[Amounts]) -> None:
    mirror = mirror_of(offering("n", {**node, "pods": 3}))
    asked = [asking(f"p{number}", each) for number, each in enumerate(pods)]
    bound = int(NodeResourcesFit().room_for(mirror, asked, mirror.batch(["n"])).most[0])
    placed = 0
    for pod in asked:
        verdicts = FreshEvaluation(mirror, pod).verdicts(NodeResourcesFit(), mirror.batch(["n"]))
        if verdicts is None or not verdicts.codes[0]:
            mirror.assume(pod, "n", 0.0)
            placed += 1
    assert placed <= bound


def test_the_scarcest_resource_tells_how_many_times_over_all_have_room() -> None:
    mirror = mirror_of(offering("n", {"cpu": 12, "memory": 3, "pods": 100}))
    room = NodeResourcesFit().room_for(
        mirror, [asking("a", {"cpu": 2, "memory": 2}), asking("b", {})], mirror.all_nodes()
    )
    assert (room.most.tolist(), room.times.tolist()) == ([2], [1.5])
    assert room.shares.tolist() == [[50], [6], [1.5]]  # of pods, cpu and memory
