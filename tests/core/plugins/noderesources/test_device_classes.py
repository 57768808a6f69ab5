"""Extended resources that a DeviceClass stands for, which NodeResourcesFit leaves to DynamicResources."""

import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.plugins.noderesources.columns import EVERY_SCHEDULER, DeviceSchedulers, classes_of
from core.plugins.noderesources.fit import NodeResourcesFit
from core.releases import RELEASES, Release, rules_of
from tests.core.plugins.noderesources.values import Amounts, asking, mirror_of, offering

GPU = "example.com/gpu"
NAMED = DeviceClass(name="gpu", extended_resource=GPU)
BY_ITS_NAME = "deviceclass.resource.kubernetes.io/gpu"
NODES = (
    offering("without", {}),
    offering("with-none", {GPU: 0}),
    offering("with-one", {GPU: 1}),
)
ON = {"DRAExtendedResource": True}


NAMES = ["without", "with-none", "with-one"]
CLAIMS = DeviceSchedulers(frozenset({"claims"}), others=False)
OTHERS = DeviceSchedulers(frozenset({"plain"}))


def refused(mirror: ClusterMirror, **requests: int) -> list[str]:
    """Return the nodes that the pod does not fit, with a scheduler that allocates devices."""
    return refused_by(mirror, "", EVERY_SCHEDULER, requests)


def refused_by(mirror: ClusterMirror, scheduler: str, devices: DeviceSchedulers, requests: Amounts) -> list[str]:
    """Return the nodes that a pod of a scheduler does not fit."""
    pod = replace(asking("p", requests), scheduler_name=scheduler)
    fit = NodeResourcesFit(device_schedulers=devices)
    verdicts = FreshEvaluation(mirror, pod).verdicts(fit, mirror.batch(NAMES))
    assert verdicts is not None
    return [name for name, code in zip(NAMES, verdicts.codes.tolist(), strict=True) if code]


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


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_left_for_a_scheduler_that_allocates_no_device(release: Release) -> None:
    gates = ON if release < Release(1, 37) else {}
    mirror = mirror_with(release, NAMED, gates=gates)
    for devices, with_none, with_it in ((CLAIMS, "plain", "claims"), (OTHERS, "plain", "any")):
        assert refused_by(mirror, with_none, devices, {GPU: 1}) == ["without", "with-none"]
        assert refused_by(mirror, with_none, devices, {GPU: 2}) == NAMES
        assert refused_by(mirror, with_none, devices, {BY_ITS_NAME: 1}) == NAMES
        assert refused_by(mirror, with_it, devices, {GPU: 2}) == refused(mirror, **{GPU: 2}) != NAMES


def test_1_34_leaves_no_unlisted_resource_for_a_scheduler_that_allocates_no_device() -> None:
    mirror = mirror_with(Release(1, 34), gates=ON)
    assert refused_by(mirror, "plain", CLAIMS, {"hugepages-2Mi": 1}) == NAMES
    assert refused_by(mirror, "claims", CLAIMS, {"hugepages-2Mi": 1}) == []


def test_a_class_that_comes_or_goes_changes_nothing_for_a_scheduler_that_allocates_no_device() -> None:
    mirror = mirror_with(Release(1, 37))
    expected = ["without", "with-none"]
    assert refused_by(mirror, "plain", CLAIMS, {GPU: 1}) == expected
    for action in ("Add", "Delete"):
        mirror.apply(ClusterEvent(action, NAMED))
        assert refused_by(mirror, "plain", CLAIMS, {GPU: 1}) == expected


def test_pods_that_differ_in_the_scheduler_alone_are_two_classes_where_only_one_gets_devices() -> None:
    mirror, fit = mirror_with(Release(1, 37), NAMED), NodeResourcesFit(device_schedulers=CLAIMS)
    cache = EquivalenceCache(mirror, [fit], CacheOptions(mode="spec"))
    batch = mirror.batch(NAMES)
    for scheduler, failing in (("claims", 0), ("plain", 3), ("claims", 0), ("plain", 3)):
        pod = replace(asking(scheduler, {BY_ITS_NAME: 1}), scheduler_name=scheduler)
        evaluation = cache.evaluation(pod)
        verdicts = evaluation.verdicts(fit, batch)
        assert verdicts is not None
        cache.finish(evaluation)
        assert sum(map(bool, verdicts.codes.tolist())) == failing
    assert "scheduler_name" not in NodeResourcesFit().class_fields


@pytest.mark.parametrize("scheduler", ["plain", "claims"])
def test_a_resource_bounds_how_many_pods_a_node_holds_unless_devices_back_it(scheduler: str) -> None:
    mirror, fit = mirror_with(Release(1, 37), NAMED), NodeResourcesFit(device_schedulers=CLAIMS)
    pods = [replace(asking(name, {GPU: 1}), scheduler_name=scheduler) for name in "pqr"]
    expected = {"plain": [0, 0, 1], "claims": [3, 3, 3]}
    assert fit.room_for(mirror, pods, mirror.batch(NAMES)).most.tolist() == expected[scheduler]


def test_the_first_class_by_name_is_the_one_that_is_named() -> None:
    second = DeviceClass(name="newer", extended_resource=GPU)
    pod = asking("p", {GPU: 1, BY_ITS_NAME: 1, "cpu": 1, "example.com/disk": 1, "hugepages-2Mi": 0})
    for classes in ((NAMED, second), (second, NAMED)):
        assert classes_of(mirror_with(Release(1, 37), *classes), pod) == {GPU: "gpu", BY_ITS_NAME: "gpu"}
    assert classes_of(mirror_with(Release(1, 35), NAMED), pod) == {}
