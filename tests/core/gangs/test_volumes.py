"""Members whose claims wait for them: no two get the same volume, and nothing of what is reserved stays."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from core.events import ClusterEvent, Object
from core.gangs.attempts import Shortfall
from core.gangs.placing import Gang
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import ForkError
from core.objects.affinity import NodeSelector, NodeSelectorTerm
from core.objects.groups import SPREAD, Packing, PackingWay
from core.objects.labels import Operator, Requirement, Selector
from core.objects.volumes import (
    ClaimRef,
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tests.builders import NodeBuilder, PodBuilder
from tests.core.decoded import mirror_of, pod_of
from tests.core.gangs.gang_setting import HOSTNAME, GangSetting, member, node, place_gang, placer
from tests.core.mirror.audit import audit

STATIC = StorageClass(
    name="static", provisioner="kubernetes.io/no-provisioner", volume_binding_mode="WaitForFirstConsumer"
)


def local(name: str, *nodes: str) -> PersistentVolume:
    """Return a volume that some nodes can reach."""
    there = NodeSelector((NodeSelectorTerm((Requirement(HOSTNAME, Operator.IN, nodes),)),))
    return PersistentVolume(
        name=name, storage_class="static", capacity=1, phase="Available", node_affinity=there if nodes else None
    )


def claim(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(namespace="default", name=name, uid=name, storage_class="static", requested=1)


def claiming(name: str, group: str = "train") -> PodBuilder:
    """Return a member with a claim of its own name."""
    return member(name, group=group).volume({"name": "data", "persistentVolumeClaim": {"claimName": name}})


def apply(mirror: ClusterMirror, *objects: Object) -> None:
    for each in objects:
        mirror.apply(ClusterEvent("Add", each))


def cluster(nodes: Sequence[NodeBuilder], *objects: Object) -> ClusterMirror:
    mirror = mirror_of(*nodes)
    apply(mirror, STATIC, *objects)
    return mirror


def placed(mirror: ClusterMirror, *pods: PodBuilder, packing: Packing = SPREAD) -> dict[str, str] | Shortfall:
    """Place a gang; nothing but the pods stays of it."""
    kinds = PersistentVolume, PersistentVolumeClaim, CSIStorageCapacity
    before = [dict(mirror.objects(kind)) for kind in kinds]
    found = place_gang(placer(mirror), Gang([pod_of(pod) for pod in pods], max_steps=1000, packing=packing))
    assert [dict(mirror.objects(kind)) for kind in kinds] == before
    assert audit(mirror) == []
    return found if isinstance(found, Shortfall) else {uid.partition("/")[2]: name for uid, name in found.items()}


@pytest.mark.parametrize("way", [PackingWay.SPREAD, PackingWay.PACK])
def test_one_volume_is_not_enough_for_two_members(way: PackingWay) -> None:
    mirror = cluster([node("n0"), node("n1")], local("v"), claim("a"), claim("b"))
    found = placed(mirror, claiming("a"), claiming("b"), packing=Packing(way))
    assert isinstance(found, Shortfall)
    assert (found.placed, found.pod.name, found.is_proved) == (1, "b", False)
    assert found.verdicts.status(0).reasons == ("node(s) didn't find available persistent volumes to bind",)
    assert not mirror.assumed


@pytest.mark.parametrize("way", [PackingWay.SPREAD, PackingWay.PACK])
def test_each_member_goes_where_a_volume_is_left(way: PackingWay) -> None:
    volumes = local("v0", "n0"), local("v1", "n1")
    mirror = cluster([node("n0"), node("n1"), node("n2")], *volumes, claim("a"), claim("b"))
    found = placed(mirror, claiming("a"), claiming("b"), packing=Packing(way))
    assert not isinstance(found, Shortfall)
    assert {*found.values()} == {"n0", "n1"}


def test_the_search_back_gives_a_volume_to_another_member() -> None:
    """On n0 the first one takes the smaller volume, which n1 reaches, too, and the other one is not there."""
    large = replace(local("large", "n0"), capacity=2)
    mirror = cluster([node("n0", 1), node("n1", 1)], large, local("small", "n0", "n1"), claim("a"), claim("b"))
    found = placed(mirror, claiming("a"), claiming("b"))
    assert not isinstance(found, Shortfall)
    assert {*found.values()} == {"n0", "n1"}


def test_an_attempt_in_parts_reserves_volumes_again_in_each_of_them() -> None:
    mirror = cluster([node("n0"), node("n1")], local("v0", "n0"), local("v1", "n1"), *map(claim, "ab"))
    attempt = placer(mirror).begin(Gang([pod_of(claiming(name)) for name in "ab"], max_steps=1000))
    while (found := attempt.go_on(0.0, lambda: 0.0, 0.0)) is None:
        assert all(each.claim is None for each in mirror.objects(PersistentVolume).values())
        apply(mirror, claim("other"))
    assert not isinstance(found, Shortfall)
    assert {*found.values()} == {"n0", "n1"}


def test_an_attempt_ends_if_a_volume_that_it_reserved_is_another_one_meanwhile() -> None:
    mirror = cluster([node("n0"), node("n1")], local("v0", "n0"), local("v1", "n1"), *map(claim, "ab"))
    attempt = placer(mirror).begin(Gang([pod_of(claiming(name)) for name in "ab"], max_steps=1000))
    for _ in range(3):  # a look at each of the two classes, and a place for the first member
        assert attempt.go_on(0.0, lambda: 0.0, 0.0) is None
    apply(mirror, replace(local("v0", "n0"), claim=ClaimRef("default", "other", "other")))
    with pytest.raises(ForkError, match="v0 cannot be changed again"):
        attempt.go_on(0.0, lambda: 0.0, 0.0)
    assert audit(mirror) == []


def capacity(of: str, left: int) -> CSIStorageCapacity:
    """Return how much can be made on a node."""
    there = Selector((Requirement(HOSTNAME, Operator.IN, (of,)),))
    return CSIStorageCapacity(namespace="d", name=of, storage_class="late", topology=there, capacity=left, limit=left)


def with_capacity(**left: int) -> ClusterMirror:
    """Return two nodes, and claims of 2 whose volumes are made there."""
    late = replace(STATIC, name="late", provisioner="d")
    claims = [replace(claim(name), storage_class="late", requested=2) for name in "ab"]
    driver = CSIDriver(name="d", storage_capacity=True)
    return cluster([node("n0"), node("n1")], late, driver, *claims, *(capacity(*each) for each in left.items()))


def test_two_members_share_what_can_be_made_on_a_node() -> None:
    found = placed(with_capacity(n0=3), claiming("a"), claiming("b"))
    assert isinstance(found, Shortfall)
    assert (found.placed, found.is_proved) == (1, False)
    assert found.verdicts.status(0).reasons == ("node(s) did not have enough free storage",)
    for enough in ({"n0": 4}, {"n0": 3, "n1": 2}):
        assert not isinstance(placed(with_capacity(**enough), claiming("a"), claiming("b")), Shortfall)


def test_an_attempt_goes_on_with_what_a_driver_reports_meanwhile() -> None:
    mirror = with_capacity(n0=9)
    attempt = placer(mirror).begin(Gang([pod_of(claiming(name)) for name in "ab"], max_steps=1000))
    for _ in range(3):  # a look at each of the two classes, and a place for the first member
        assert attempt.go_on(0.0, lambda: 0.0, 0.0) is None
    apply(mirror, capacity("n0", 3), capacity("n1", 2))
    while (found := attempt.go_on(0.0, lambda: 0.0, 0.0)) is None:
        assert [each.capacity for each in mirror.objects(CSIStorageCapacity).values()] == [3, 2]
    assert not isinstance(found, Shortfall)
    assert {*found.values()} == {"n0", "n1"}
    assert audit(mirror) == []


def test_what_attempts_reserve_has_no_other_gang_tried_again() -> None:
    setting = GangSetting(node("n0"), node("n1"))
    gangs = [[claiming(f"{group}{at}", group) for at in range(2)] for group in "gh"]
    apply(setting.mirror, STATIC, local("v"), *(claim(each.name) for gang in gangs for each in gang))
    for gang in gangs:
        setting.see(*gang)
        assert "1 of 2 members fit" in setting.ask(gang[0])
    setting.work(2.0)
    assert [setting.status(f"default/{group}").attempts for group in "gh"] == [1, 1]
    apply(setting.mirror, local("w"))
    assert [setting.ask(each)[:3] for each in gangs[0]] == ["on ", "on "]
