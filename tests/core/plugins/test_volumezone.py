"""Which nodes VolumeZone keeps a pod from, and what changes that.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumezone/volume_zone.go.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pytest

from core.framework.interface import SUCCESS, Code, Scope, Status
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from core.plugins.volumezone import VolumeZone
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh, random_events
from tests.core.plugins.told import filtered, mirror_of, tell

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
CONFLICT: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had no available volume zone",))


statuses: Final = partial(filtered, VolumeZone(), may_skip=True)


def pod_with(*claims: str | PodClaim) -> Pod:
    volumes = tuple(PodClaim(each) if isinstance(each, str) else each for each in claims)
    return Pod(uid="incoming", namespace="default", name="incoming", volumes=volumes)


def volume(name: str = "pv", **labels: str) -> PersistentVolume:
    return PersistentVolume(name=name, labels=labels)


def claim(name: str = "c", *, volume: str = "pv", storage_class: str = "", uid: str = "1") -> PersistentVolumeClaim:
    return PersistentVolumeClaim(namespace="default", name=name, volume=volume, storage_class=storage_class, uid=uid)


@pytest.mark.parametrize(
    ("of_volume", "of_node", "expected"),
    [
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, SUCCESS, id="one-of-its-zones"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, CONFLICT, id="a-node-with-a-region-alone"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="beta-zone-of-the-volume-ga-zone-of-the-node"),
    ],
)
def test_the_zones_and_regions_of_a_volume_are_held_against_those_of_the_node(
    of_volume: Mapping[str, str], of_node: Mapping[str, str], expected: Status
) -> None:
    node = Node(name="n", labels=of_node)
    mirror = mirror_of(node, volume(**of_volume), claim())
    stranger = Node(name="stranger", labels=of_node)
    assert statuses(mirror, pod_with("c"), "n", whole=(stranger,)) == [expected, expected]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param([""], "PersistentVolumeClaim had no name", id="claim-without-a-name"),
        pytest.param(["gone"], 'persistentvolumeclaim "gone" not found', id="missing-claim"),
        pytest.param(["lost"], 'persistentvolume "nowhere" not found', id="missing-volume"),
        pytest.param(["plain"], "PersistentVolumeClaim had no pv name and storageClass name", id="no-class"),
        pytest.param(["classless"], 'storageclass.storage.k8s.io "nope" not found', id="missing-class"),
        pytest.param(["modeless"], 'VolumeBindingMode not set for StorageClass "modeless"', id="class-without-a-mode"),
        pytest.param(["immediate"], "PersistentVolume had no name", id="unbound-though-immediate"),
        pytest.param(["near", "lost", "gone"], 'persistentvolume "nowhere" not found', id="the-first-one-is-told"),
    ],
)
def test_a_claim_that_is_in_the_way_fails_all_nodes(claims: list[str], reason: str) -> None:
    mirror = mirror_of(
        Node(name="n"),
        volume(**{ZONE: "a"}),
        claim("near"),
        claim("lost", volume="nowhere"),
        claim("plain", volume=""),
        claim("classless", volume="", storage_class="nope"),
        claim("modeless", volume="", storage_class="modeless"),
        StorageClass(name="modeless"),
        claim("immediate", volume="", storage_class="immediate"),
        StorageClass(name="immediate", volume_binding_mode="Immediate"),
    )
    expected = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))
    assert VolumeZone().pre_filter(mirror, pod_with(*claims)) == (expected, None)


def test_a_claim_of_another_namespace_is_not_the_pod_s() -> None:
    mirror = mirror_of(PersistentVolumeClaim(namespace="another", name="c", volume="pv"), volume())
    assert statuses(mirror, pod_with("c"), "n")[0].reasons == ('persistentvolumeclaim "c" not found',)


def test_pods_whose_claims_of_one_name_are_others_are_of_different_classes() -> None:
    mirror = mirror_of(claim("c", uid="1"))
    before = VolumeZone().references(mirror, pod_with("c", "gone"))
    tell(mirror, claim("c", uid="2"))
    assert [before, VolumeZone().references(mirror, pod_with("c", "gone"))] == [("1", None), ("2", None)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(Node(name="n"), Node(name="n", labels={BETA_REGION: "r"}), True, id="node-label-came"),
        pytest.param(Node(name="n", labels={ZONE: "a"}), Node(name="n"), True, id="node-label-went"),
        pytest.param(Node(name="n"), Node(name="n", labels={"rack": "r"}, unschedulable=True), False, id="other-label"),
        pytest.param(None, volume(), True, id="volume-came"),
        pytest.param(volume(), None, True, id="volume-went"),
        pytest.param(volume(), volume(**{ZONE: "a"}), True, id="volume-label-came"),
        # Hole 5: upstream's version looked at the new labels only.
        pytest.param(volume(**{ZONE: "a"}), volume(), True, id="volume-label-went"),
        pytest.param(
            volume(**{ZONE: "a__b"}), volume(**{ZONE: "b__a", "rack": "r"}), False, id="volume-zones-the-same"
        ),
        pytest.param(None, claim(), True, id="claim-came"),
        pytest.param(claim(), None, True, id="claim-went"),
        pytest.param(claim(volume=""), claim(), True, id="claim-got-its-volume"),
        pytest.param(claim(volume="", storage_class="a"), claim(volume="", storage_class="b"), True, id="claim-class"),
        pytest.param(claim(storage_class="a"), claim(storage_class="b", uid="2"), False, id="class-of-a-bound-claim"),
        pytest.param(None, StorageClass(name="s"), True, id="class-came"),
        pytest.param(StorageClass(name="s"), None, True, id="class-went"),
        pytest.param(
            StorageClass(name="s"), StorageClass(name="s", volume_binding_mode="Immediate"), True, id="binding-mode"
        ),
        pytest.param(StorageClass(name="s"), StorageClass(name="s", provisioner="p"), False, id="provisioner"),
    ],
)
def test_a_change_touches_where_it_is_of_what_is_read(before: Any, after: Any, expected: bool) -> None:  # noqa: ANN401, FBT001 - columns of the table
    kind = type(after if before is None else before)
    (rule,) = [rule for rule in VolumeZone().invalidated_by if rule.kind is kind]
    assert rule.scope is (Scope.NODE if kind is Node else Scope.ALL)
    assert rule.touches(before, after) is expected


def test_cached_verdicts_are_fresh_ones() -> None:
    modes = (None, "Immediate", "WaitForFirstConsumer")
    pool: list[Any] = [
        *(
            Node(name=f"n{at % 3}", labels=labels)
            for at, labels in enumerate(({}, {ZONE: "a"}, {ZONE: "b"}, {REGION: "a"}))
        ),
        *(Node(name="n0", labels={ZONE: zone}) for zone in "ab"),
        *(volume(name, **labels) for name in ("pv", "other") for labels in ({}, {ZONE: "a"}, {BETA_ZONE: "a__b"})),
        *(claim("c", volume=name, storage_class="s") for name in ("pv", "pv", "other", "")),
        *(claim("d", volume=name, storage_class="s") for name in ("pv", "")),
        *(StorageClass(name="s", volume_binding_mode=mode) for mode in modes),
    ]
    asked = [pod_with("c"), pod_with("c", "d"), pod_with()]
    assert_cached_verdicts_are_fresh(VolumeZone(), random_events(5, pool, 600), asked)
