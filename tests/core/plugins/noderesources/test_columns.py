"""The columns of amounts, and the resources that are left to devices."""

from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import Action, ClusterEvent
from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.kinds import DeviceClass
from core.objects.node import Node
from core.plugins.in_tree import EVERY_SCHEDULER, DeviceSchedulers
from core.plugins.noderesources.columns import ResourceColumns, classes_of
from core.plugins.noderesources.fit import NodeResourcesFit
from core.releases.differences import rules_of
from core.releases.release import RELEASES, Release
from tests.core.mirror.values import mirror_of, tell
from tests.core.plugins.noderesources.values import DISK, GPU, Amounts, asking, offering

MAX_INT64: Final = 2**63 - 1

ACTIONS: Final[tuple[Action, ...]] = ("Add", "Add", "Add", "Update", "Delete")
RESOURCES: Final = ("cpu", "memory", DISK, GPU, "example.com/rare")


def columns_of(mirror: ClusterMirror) -> ResourceColumns:
    return mirror.derived(ResourceColumns)


def amounts_of(columns: ResourceColumns, mirror: ClusterMirror, names: list[str]) -> dict[str, list[int]]:
    batch = mirror.batch(names)
    return {
        **{f"allocatable {each}": columns.allocatable_of(each, batch).tolist() for each in (*RESOURCES, "pods")},
        **{f"requested {each}": columns.requested.at(each, batch).tolist() for each in (*RESOURCES, "pods")},
        **{
            f"one by one {each}": [columns.requested.on(each, slot) for slot in batch.slots.tolist()]
            for each in RESOURCES
        },
        **{f"non-zero {each}": columns.non_zero_requested.at(each, batch).tolist() for each in ("cpu", "memory")},
    }


def test_a_resource_has_a_column_only_while_anything_of_it_is_there() -> None:
    mirror = mirror_of(
        offering("a", {}), asking("p", {"example.com/x": 1}, "a"), asking("q", {"example.com/y": 0}, "a")
    )
    columns = columns_of(mirror)
    assert set(columns.requested.of) == {"pods", "example.com/x"}
    tell(mirror, "Add", asking("r", {"example.com/y": 0, "example.com/z": 1}, "a"))
    assert set(columns.requested.of) == {"pods", "example.com/x", "example.com/z"}
    tell(mirror, "Delete", *(asking(name, {}, "a") for name in "pqr"))
    tell(mirror, "Delete", offering("a", {}))
    assert (columns.requested.of, columns.allocatable.of) == ({}, {})


def test_a_sum_overflows_as_in_go() -> None:
    mirror = mirror_of(offering("a", {}), asking("p", {"memory": MAX_INT64}, "a"))
    retained = columns_of(mirror)
    tell(mirror, "Add", asking("q", {"memory": MAX_INT64}, "a"))
    for columns in (retained, ResourceColumns(mirror)):
        assert columns.requested.at("memory", mirror.batch(["a"])).tolist() == [-2]
    tell(mirror, "Delete", asking("q", {}, "a"))
    assert retained.requested.at("memory", mirror.batch(["a"])).tolist() == [MAX_INT64]


def test_an_answer_is_the_asker_s_own() -> None:
    mirror = mirror_of(offering("a", {"cpu": 4000}))
    columns, batch = columns_of(mirror), mirror.batch(["a"])
    columns.allocatable_of("cpu", batch)[0] = 1
    assert columns.allocatable_of("cpu", batch).tolist() == [4000]


class Cluster:
    """Random events over few names, so that everything happens to everyone."""

    def __init__(self, seed: int, nodes: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a test that can be repeated
        self._nodes = [f"n{number}" for number in range(nodes)]
        self.mirror = ClusterMirror()

    @property
    def known(self) -> list[str]:
        return sorted(self.mirror.nodes.slots)

    def step(self) -> None:
        action = self._random.choice(ACTIONS)
        name = self._random.choice(self._nodes)
        if self._random.random() < 0.3:
            tell(self.mirror, action, Node(name, allocatable=self._amounts()))
            return
        uid = f"p{self._random.randrange(3 * len(self._nodes))}"
        amounts = self._amounts()
        pod = asking(uid, amounts, name, (amounts.get("cpu", 100), amounts.get("memory", 200)))
        if action == "Add" and not self.mirror.is_mirrored(uid) and self._random.random() < 0.5:
            self.mirror.assume(pod, name, 0.0)
        elif self.mirror.is_assumed(uid) and self._random.random() < 0.5:
            self.mirror.forget(uid)
        else:
            tell(self.mirror, action, pod)

    def _amounts(self) -> dict[str, int]:
        chosen = self._random.sample(RESOURCES, self._random.randrange(len(RESOURCES)))
        return {resource: self._random.choice((0, 1, 7, 2**62)) for resource in chosen}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nodes", [5, 200], ids=["few-nodes", "many-nodes"])
def test_columns_kept_by_any_events_are_as_those_made_anew(seed: int, nodes: int) -> None:
    cluster = Cluster(seed, nodes)
    retained = columns_of(cluster.mirror)
    for number in range(1200):
        cluster.step()
        if number % 100 == 99:
            fresh = ResourceColumns(cluster.mirror)
            assert amounts_of(fresh, cluster.mirror, cluster.known) == amounts_of(
                retained, cluster.mirror, cluster.known
            )
            for one, other in ((fresh.requested, retained.requested), (fresh.allocatable, retained.allocatable)):
                assert {name: (column.nonzero, column.lowest) for name, column in one.of.items()} == {
                    name: (column.nonzero, column.lowest) for name, column in other.of.items()
                }


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


def rejected(mirror: ClusterMirror, **requests: int) -> list[str]:
    """Return the nodes that the pod does not fit, with a scheduler that allocates devices."""
    return rejected_by(mirror, "", EVERY_SCHEDULER, requests)


def rejected_by(mirror: ClusterMirror, scheduler: str, devices: DeviceSchedulers, requests: Amounts) -> list[str]:
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
    assert rejected(mirror_with(release, NAMED, gates=gates), **{GPU: 2}) == expected


def test_every_class_stands_for_a_resource_of_its_name() -> None:
    mirror = mirror_with(Release(1, 37), DeviceClass(name="gpu"))
    assert rejected(mirror, **{BY_ITS_NAME: 1}) == []
    assert rejected(mirror, **{BY_ITS_NAME + "s": 1}) == ["without", "with-none", "with-one"]


def test_1_34_leaves_what_is_not_listed_of_a_pod_without_extended_resources() -> None:
    mirror = mirror_with(Release(1, 34), gates=ON)
    assert rejected(mirror, **{"hugepages-2Mi": 1}) == []
    assert rejected(mirror, **{"hugepages-2Mi": 1, GPU: 1}) == ["without", "with-none", "with-one"]


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_left_for_a_scheduler_that_allocates_no_device(release: Release) -> None:
    gates = ON if release < Release(1, 37) else {}
    mirror = mirror_with(release, NAMED, gates=gates)
    for devices, with_none, with_it in ((CLAIMS, "plain", "claims"), (OTHERS, "plain", "any")):
        assert rejected_by(mirror, with_none, devices, {GPU: 1}) == ["without", "with-none"]
        assert rejected_by(mirror, with_none, devices, {GPU: 2}) == NAMES
        assert rejected_by(mirror, with_none, devices, {BY_ITS_NAME: 1}) == NAMES
        assert rejected_by(mirror, with_it, devices, {GPU: 2}) == rejected(mirror, **{GPU: 2}) != NAMES


def test_1_34_leaves_no_unlisted_resource_for_a_scheduler_that_allocates_no_device() -> None:
    mirror = mirror_with(Release(1, 34), gates=ON)
    assert rejected_by(mirror, "plain", CLAIMS, {"hugepages-2Mi": 1}) == NAMES
    assert rejected_by(mirror, "claims", CLAIMS, {"hugepages-2Mi": 1}) == []


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
    assert fit.capacity_for(mirror, pods, mirror.batch(NAMES)).most.tolist() == expected[scheduler]


def test_the_first_class_by_name_is_the_one_that_is_named() -> None:
    second = DeviceClass(name="newer", extended_resource=GPU)
    pod = asking("p", {GPU: 1, BY_ITS_NAME: 1, "cpu": 1, "example.com/disk": 1, "hugepages-2Mi": 0})
    for classes in ((NAMED, second), (second, NAMED)):
        assert classes_of(mirror_with(Release(1, 37), *classes), pod) == {GPU: "gpu", BY_ITS_NAME: "gpu"}
    assert classes_of(mirror_with(Release(1, 35), NAMED), pod) == {}
