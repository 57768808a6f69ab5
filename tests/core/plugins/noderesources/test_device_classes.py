"""Extended resources that a DeviceClass stands for, which NodeResourcesFit leaves to DynamicResources."""

import pytest

from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.device_class import DeviceClass
from core.plugins.noderesources.fit import NodeResourcesFit
from core.releases import Release, rules_of
from tests.core.plugins.noderesources.values import asking, mirror_of, offering

GPU = "example.com/gpu"
NAMED = DeviceClass(name="gpu", extended_resource=GPU)
BY_ITS_NAME = "deviceclass.resource.kubernetes.io/gpu"
NODES = (
    offering("without", {}),
    offering("with-none", {GPU: 0}),
    offering("with-one", {GPU: 1}),
)
ON = {"DRAExtendedResource": True}


def refused(mirror: ClusterMirror, **requests: int) -> list[str]:
    """Return the nodes that the pod does not fit."""
    names = ["without", "with-none", "with-one"]
    pod = asking("p", requests)
    verdicts = FreshEvaluation(mirror, pod).verdicts(NodeResourcesFit(), mirror.batch(names))
    assert verdicts is not None
    return [name for name, code in zip(names, verdicts.codes.tolist(), strict=True) if code]


def mirror_with(release: Release, *classes: DeviceClass, gates: dict[str, bool] | None = None) -> ClusterMirror:
    mirror = mirror_of(*NODES)
    mirror.change_rules(rules_of(release, gates))
    for each in classes:
        mirror.apply(ClusterEvent("Add", each))
    return mirror


@pytest.mark.parametrize(
    ("release", "gates", "expected"),
    [
        pytest.param(Release(1, 34), {}, ["without", "with-none", "with-one"], id="1.34"),
        pytest.param(Release(1, 34), ON, ["with-none", "with-one"], id="1.34-with-the-gate"),
        pytest.param(Release(1, 35), ON, ["with-one"], id="1.35-with-the-gate"),
        pytest.param(Release(1, 36), {}, ["with-one"], id="1.36"),
        pytest.param(Release(1, 37), {}, ["with-one"], id="1.37"),
    ],
)
def test_it_is_left_where_the_node_has_none_of_its_own(
    release: Release, gates: dict[str, bool], expected: list[str]
) -> None:
    assert refused(mirror_with(release, NAMED, gates=gates), **{GPU: 2}) == expected


def test_every_class_stands_for_a_resource_of_its_name() -> None:
    mirror = mirror_with(Release(1, 37), DeviceClass(name="gpu"))
    assert refused(mirror, **{BY_ITS_NAME: 1}) == []
    assert refused(mirror, **{BY_ITS_NAME + "s": 1}) == ["without", "with-none", "with-one"]


def test_a_class_that_goes_leaves_its_resource_to_the_nodes_again() -> None:
    mirror = mirror_with(Release(1, 37), NAMED)
    assert refused(mirror, **{GPU: 2}) == ["with-one"]
    mirror.apply(ClusterEvent("Delete", NAMED))
    assert refused(mirror, **{GPU: 2}) == ["without", "with-none", "with-one"]


def test_other_resources_are_checked_all_the_same() -> None:
    mirror = mirror_with(Release(1, 37), NAMED)
    assert refused(mirror, **{GPU: 1, "example.com/disk": 1}) == ["without", "with-none", "with-one"]


def test_1_34_leaves_what_is_not_listed_of_a_pod_without_extended_resources() -> None:
    mirror = mirror_with(Release(1, 34), gates=ON)
    assert refused(mirror, **{"hugepages-2Mi": 1}) == []
    assert refused(mirror, **{"hugepages-2Mi": 1, GPU: 1}) == ["without", "with-none", "with-one"]
