"""The mirror held against a list."""

from collections.abc import Iterable, Mapping

import msgspec
import pytest

from core.events import ClusterEvent, Object
from core.mirror.cluster import ClusterMirror
from core.mirror.comparer import Comparer, Difference, Differences
from core.objects.kinds import ControllerRef, Namespace, PodDisruptionBudget, ReplicaSet, Service
from core.objects.labels import EVERYTHING
from core.objects.node import Node
from core.objects.pod import Pod
from core.objects.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

WEB = Pod("u1", "shop", "web", {"app": "web"}, "n1", resource_version="1")
BATCH = Pod("u2", "shop", "batch", {}, "n1", resource_version="1")
PENDING = Pod("u3", "shop", "pending", resource_version="1")

EACH_KIND: list[Object] = [
    Node("n1", {"zone": "a"}, {"cpu": 1000}, uid="u", resource_version="1"),
    WEB,
    Namespace("shop", {"team": "a"}, uid="u", resource_version="1"),
    PersistentVolume(name="pv", uid="u", resource_version="1"),
    PersistentVolumeClaim(namespace="shop", name="pvc", uid="u", resource_version="1"),
    StorageClass(name="fast", uid="u", resource_version="1"),
    CSINode(name="n1", uid="u", resource_version="1"),
    Service("shop", "web", uid="u", resource_version="1"),
    PodDisruptionBudget("shop", "web", EVERYTHING, 1, uid="u", resource_version="1"),
    ReplicaSet("shop", "web", {"app": "web"}, uid="u", resource_version="1"),
]
each_kind = pytest.mark.parametrize("thing", [pytest.param(thing, id=type(thing).__name__) for thing in EACH_KIND])


def mirror_of(*objects: Object) -> ClusterMirror:
    mirror = ClusterMirror()
    for thing in objects:
        mirror.apply(ClusterEvent("Add", thing))
    return mirror


def compared(mirror: ClusterMirror, kind: type[Object], listed: Iterable[Object]) -> Differences:
    comparer = Comparer(mirror, kind)
    for thing in listed:
        comparer.add(thing)
    for _ in comparer.finish():
        pass
    return comparer.differences()


def names(differences: Iterable[Difference]) -> list[str]:
    return [difference.name for difference in differences]


@each_kind
def test_what_the_mirror_was_told_is_what_it_holds(thing: Object) -> None:
    found = compared(mirror_of(thing), type(thing), [thing])
    assert found == Differences(listed=1)
    assert not found


@each_kind
def test_an_object_that_was_not_told_is_missed(thing: Object) -> None:
    found = compared(mirror_of(), type(thing), [thing])
    assert found == Differences(listed=1, missed=[Difference(thing.full_name, thing.uid)])
    assert found


@each_kind
def test_an_object_whose_deletion_was_not_told_is_redundant(thing: Object) -> None:
    found = compared(mirror_of(thing), type(thing), [])
    uid = "" if isinstance(thing, Namespace) else thing.uid  # of namespaces the mirror keeps the labels alone
    assert found == Differences(listed=0, redundant=[Difference(thing.full_name, uid)])
    assert found


@each_kind
def test_another_version_of_an_equal_object_is_told_but_no_difference(thing: Object) -> None:
    found = compared(mirror_of(thing), type(thing), [msgspec.structs.replace(thing, resource_version="2")])
    assert found == Differences(listed=1, other_versions=0 if isinstance(thing, Namespace) else 1)
    assert not found


@pytest.mark.parametrize(
    ("stored", "change", "fields"),
    [
        pytest.param(WEB, {"labels": {"app": "api"}}, ("labels",), id="labels-of-a-pod"),
        pytest.param(WEB, {"node_name": "n2"}, ("node_name",), id="node-of-a-pod"),
        pytest.param(WEB, {"requests": {"cpu": 1}, "best_effort": False}, ("requests", "best_effort"), id="requests"),
        pytest.param(WEB, {"controller": ControllerRef("ReplicaSet", "web", "r")}, ("controller",), id="controller"),
        pytest.param(
            WEB, {"labels": {}, "resource_version": "2"}, ("labels", "resource_version"), id="labels-and-version"
        ),
        pytest.param(EACH_KIND[0], {"labels": {}}, ("labels",), id="labels-of-a-node"),
        pytest.param(EACH_KIND[0], {"allocatable": {"cpu": 2000}}, ("allocatable",), id="allocatable-of-a-node"),
        pytest.param(EACH_KIND[0], {"uid": "v"}, ("uid",), id="node-made-again"),
        pytest.param(EACH_KIND[2], {"labels": {}}, ("labels",), id="labels-of-a-namespace"),
        pytest.param(EACH_KIND[8], {"disruptions_allowed": 0}, ("disruptions_allowed",), id="budget"),
    ],
)
def test_the_fields_that_differ_are_named(
    stored: Object, change: Mapping[str, object], fields: tuple[str, ...]
) -> None:
    found = compared(mirror_of(stored), type(stored), [msgspec.structs.replace(stored, **change)])
    uid = "" if isinstance(stored, Namespace) else stored.uid
    assert found == Differences(listed=1, differing=[Difference(stored.full_name, uid, fields)])
    assert found


# Pods.


def test_pods_that_have_ended_are_not_missed() -> None:
    done = msgspec.structs.replace(WEB, uid="u4", terminal=True)
    assert compared(mirror_of(BATCH), Pod, [BATCH, done]) == Differences(listed=1)


def test_pending_pods_are_compared_with_their_nominations() -> None:
    nominated = msgspec.structs.replace(PENDING, nominated_node_name="n1")
    assert compared(mirror_of(BATCH, PENDING), Pod, [BATCH, PENDING]) == Differences(listed=2)
    assert names(compared(mirror_of(BATCH), Pod, [BATCH, PENDING]).missed) == ["shop/pending"]
    assert names(compared(mirror_of(BATCH, PENDING), Pod, [BATCH]).redundant) == ["shop/pending"]
    assert compared(mirror_of(PENDING), Pod, [nominated]).differing == [
        Difference("shop/pending", "u3", ("nominated_node_name",))
    ]


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([], id="not-listed"),
        pytest.param([PENDING], id="listed-as-pending"),
        pytest.param([msgspec.structs.replace(PENDING, node_name="n1")], id="listed-there"),
        pytest.param([msgspec.structs.replace(PENDING, node_name="n2")], id="listed-elsewhere"),
    ],
)
def test_an_assumed_pod_is_told_apart_wherever_it_is_listed(listed: list[Pod]) -> None:
    mirror = mirror_of(BATCH)
    mirror.assume(PENDING, "n1", 0.0)
    found = compared(mirror, Pod, [BATCH, *listed])
    assert found == Differences(listed=1, assumed=[Difference("shop/pending", "u3")])
    assert not found


def test_an_assumed_pod_that_was_listed_and_is_confirmed_before_the_end_is_not_redundant() -> None:
    mirror = mirror_of()
    mirror.assume(PENDING, "n1", 0.0)
    comparer = Comparer(mirror, Pod)
    bound = msgspec.structs.replace(PENDING, node_name="n1")
    comparer.add(bound)
    mirror.apply(ClusterEvent("Update", bound))
    list(comparer.finish())
    assert comparer.differences() == Differences(listed=0)


# Nodes.


def test_a_node_that_only_pods_name_is_missed_when_listed_and_not_redundant_otherwise() -> None:
    node = Node("n1")
    assert names(compared(mirror_of(WEB), Node, [node]).missed) == ["n1"]
    assert not compared(mirror_of(WEB), Node, [])


# The course of a comparison.


def test_nothing_is_said_of_an_object_that_could_not_be_read() -> None:
    for stored, kind in ((WEB, Pod), (EACH_KIND[0], Node)):
        comparer = Comparer(mirror_of(stored), kind)
        comparer.pass_over(stored.full_name, stored.uid)
        comparer.pass_over("", "")
        list(comparer.finish())
        assert comparer.differences() == Differences(listed=0, unreadable=2)


def test_what_goes_while_the_end_is_looked_for_is_not_redundant() -> None:
    mirror = mirror_of(WEB, BATCH)
    comparer = Comparer(mirror, Pod)
    steps = comparer.finish()
    next(steps)
    mirror.apply(ClusterEvent("Delete", BATCH))
    mirror.apply(ClusterEvent("Add", msgspec.structs.replace(WEB, uid="u8", name="late")))
    list(steps)
    assert names(comparer.differences().redundant) == ["shop/web"]


# What persists.

A, B, A_AGAIN = Difference("a", "1"), Difference("b", "2"), Difference("a", "3")


def test_only_what_was_found_before_in_the_same_way_persists() -> None:
    earlier = Differences(listed=5, missed=[A], redundant=[B], differing=[Difference("a", "1", ("labels",))])
    now = Differences(
        listed=7,
        missed=[A, B],
        redundant=[A, B],
        differing=[Difference("a", "1", ("node_name",)), Difference("b", "2", ("labels",))],
        assumed=[B],
        unreadable=1,
        other_versions=2,
    )
    assert now.persisting(earlier) == Differences(
        listed=7,
        missed=[A],
        redundant=[B],
        differing=[Difference("a", "1", ("node_name",))],
        assumed=[B],
        unreadable=1,
        other_versions=2,
    )
