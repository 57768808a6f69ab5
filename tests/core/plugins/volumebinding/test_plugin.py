"""VolumeBinding: claims that no node can help, volumes that are found, and what the search costs.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (FindPodVolumes) and
k8s.io/component-helpers storage/volume/pv_helpers.go (FindMatchingVolume).
"""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Final

import pytest

from core.events import Object
from core.framework.interface import SUCCESS, Code, Status
from core.mirror.cluster import ClusterMirror
from core.mirror.work import WorkLimitError
from core.objects.labels import NOTHING, parse_selector
from core.objects.node import Node
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from core.plugins.volumebinding.filtering import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE
from core.plugins.volumebinding.plugin import VolumeBinding
from core.releases.differences import rules_of
from core.releases.release import Release
from tests.core.plugins.values import filtered, mirror_of
from tests.core.plugins.volumebinding.values import (
    DRIVER,
    EBS,
    EBS_ZONE,
    ZONE,
    bound,
    ebs_volume,
    free_volume,
    node,
    pod_with,
    reserved_volume,
    room,
    unbound,
    waiting,
    within,
)

NODES: Final = (node("n1", zone="a", host="n1"), node("n2", zone="b", host="n2"), node("bare"))
ON_N1, ON_N2 = within("host", "n1"), within("host", "n2")
PROVISIONED: Final = waiting(provisioner=DRIVER)
NO_EBS_VOLUME: Final = "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume"
MIGRATED: Final = CSINode(name="n1", migrated_plugins=frozenset({EBS}))


statuses: Final = partial(filtered, VolumeBinding())


def verdict(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons) if reasons else SUCCESS


def passed(objects: Sequence[Object], *claims: str) -> list[str]:
    """Return the nodes of NODES that a pod with these claims can go to."""
    names = [each.name for each in NODES]
    found = statuses(mirror_of(*NODES, *objects), pod_with(*claims), *names)
    return [name for name, status in zip(names, found, strict=True) if status == SUCCESS]


# Bound claims.


@pytest.mark.parametrize(
    ("volume", "migrated", "labels", "expected"),
    [
        pytest.param(ebs_volume("pv", within(ZONE, "a")), False, {ZONE: "a"}, SUCCESS, id="as-it-is"),
        pytest.param(
            ebs_volume("pv", within(ZONE, "a")), True, {EBS_ZONE: "a"}, SUCCESS, id="by-the-key-of-the-driver"
        ),
        pytest.param(
            ebs_volume("pv", within(ZONE, "a")), True, {ZONE: "a"}, verdict(NODE_CONFLICT), id="not-by-its-own-key"
        ),
        pytest.param(ebs_volume("pv", zone="a"), False, {}, SUCCESS, id="a-zone-label-is-no-affinity"),
        pytest.param(
            ebs_volume("pv", zone="a"), True, {EBS_ZONE: "b"}, verdict(NODE_CONFLICT), id="but-where-migrated"
        ),
        pytest.param(
            ebs_volume("pv", volume="aws://z/x"),
            True,
            {},
            Status(Code.ERROR, (f"could not translate pv: {NO_EBS_VOLUME} (aws://z/x)",)),
            id="untranslatable-where-migrated",
        ),
        pytest.param(ebs_volume("pv", volume="aws://z/x"), False, {}, SUCCESS, id="untranslatable-as-it-is"),
    ],
)
def test_an_in_tree_volume_is_translated_where_its_plugin_is_migrated(
    volume: PersistentVolume,
    migrated: bool,  # noqa: FBT001 - a column of the table
    labels: dict[str, str],
    expected: Status,
) -> None:
    csi_node = MIGRATED if migrated else CSINode(name="n1")
    objects: tuple[Object, ...] = (csi_node, bound("a", "pv"), volume)
    there = Node(name="n1", labels=labels)
    assert statuses(mirror_of(there, *objects), pod_with("a"), "n1") == [expected]
    assert statuses(mirror_of(*objects), pod_with("a"), whole=[there]) == [expected]


def test_migration_is_a_matter_of_each_node() -> None:
    labels = {ZONE: "a"}
    nodes = [Node(name=name, labels=labels) for name in ("n1", "n2")]
    mirror = mirror_of(MIGRATED, bound("a", "pv"), ebs_volume("pv", within(ZONE, "a")), *nodes)
    unmirrored = [Node(name="n3", labels=labels)]
    expected = [SUCCESS, verdict(NODE_CONFLICT), SUCCESS]
    assert statuses(mirror, pod_with("a"), "n2", "n1", whole=unmirrored) == expected


# Free volumes for claims that wait.


def test_a_claim_that_two_volumes_of_a_pod_name_wants_two_volumes() -> None:
    assert passed([waiting(), unbound("a"), free_volume("pv")], "a", "a") == []
    assert passed([waiting(), unbound("a"), free_volume("pv"), free_volume("pv-2", ON_N1)], "a", "a") == ["n1"]
    assert passed([waiting(), unbound("a"), reserved_volume("pv", "a")], "a", "a") == []


def test_a_volume_attributes_class_is_an_error_without_its_gate() -> None:
    mirror = mirror_of(*NODES, waiting(), unbound("a", volume_attributes_class="gold"))
    assert statuses(mirror, pod_with("a"), "n1") == [verdict(BIND_CONFLICT)]
    mirror.change_rules(rules_of(Release(1, 35), {"VolumeAttributesClass": False}))
    unsupported = "unsupported volumeAttributesClassName is set on claim default/a when the feature-gate "
    expected = Status(Code.ERROR, (f"{unsupported}VolumeAttributesClass is disabled",))
    assert statuses(mirror, pod_with("a"), "n1") == [expected]


def test_an_invalid_selector_is_an_error() -> None:
    claim = unbound("a", selector=NOTHING, selector_error="broken")
    expected = Status(Code.ERROR, ("error creating internal label selector for claim: default/a: broken",))
    assert statuses(mirror_of(*NODES, waiting(), claim), pod_with("a"), "n1", "n2") == [expected] * 2
    other = unbound("b", selected_node="n1")
    found = statuses(mirror_of(*NODES, PROVISIONED, claim, other), pod_with("a", "b"), "n1", "n2")
    assert found == [expected, verdict(BIND_CONFLICT)]  # volumes are looked for on the selected node alone


# Volumes that have to be made.


@pytest.mark.parametrize("names", [("n1", "n2"), ("n1", "")], ids=["two-nodes", "a-node-and-none"])
def test_claims_that_are_being_provisioned_for_different_nodes_leave_none(names: Sequence[str]) -> None:
    claims = [unbound(f"c{at}", selected_node=name) for at, name in enumerate(names)]
    assert passed([PROVISIONED, *claims], "c0", "c1") == []


CLASSES = (waiting("local"), waiting("made", "x.csi"), waiting("measured", "y.csi"))


def verdicts(mirror: ClusterMirror, claims: Sequence[PersistentVolumeClaim], names: Sequence[str]) -> list[Status]:
    plugin = VolumeBinding()
    status, state = plugin.pre_filter(mirror, pod_with(*(claim.name for claim in claims)))
    assert status == SUCCESS
    assert state is not None
    found = plugin.filter(state, mirror.batch(names))
    return [found.status(position) for position in range(len(names))]


class Naive:
    """FindPodVolumes of binder.go, node by node and claim by claim."""

    def __init__(self, volumes: Sequence[PersistentVolume], rooms: Sequence[CSIStorageCapacity]) -> None:
        self._volumes = sorted(volumes, key=lambda volume: (volume.capacity, volume.name))
        self._rooms = rooms

    def reason(self, node: Node, claims: Sequence[PersistentVolumeClaim]) -> str:
        taken: set[str] = set()
        to_make = []
        for claim in sorted(claims, key=lambda claim: claim.requested or 0):
            volume = next((each for each in self._volumes if self._fits(each, claim, node, taken)), None)
            if volume is None:
                to_make.append(claim)
            else:
                taken.add(volume.name)
        return next((reason for reason in (self._conflict(claim, node) for claim in to_make) if reason), "")

    def _fits(self, volume: PersistentVolume, claim: PersistentVolumeClaim, node: Node, taken: set[str]) -> bool:
        return (
            volume.name not in taken
            and volume.storage_class == claim.storage_class
            and volume.capacity >= (claim.requested or 0)
            and claim.selector.matches(volume.labels)
            and (volume.node_affinity is None or volume.node_affinity.matches(node.labels))
        )

    def _conflict(self, claim: PersistentVolumeClaim, node: Node) -> str:
        if claim.storage_class == "local":
            return BIND_CONFLICT
        if claim.storage_class == "made" or claim.requested is None:
            return ""
        enough = [each for each in self._rooms if each.limit is not None and each.limit >= claim.requested]
        return "" if any(each.topology.matches(node.labels) for each in enough) else NOT_ENOUGH_SPACE


@pytest.mark.parametrize("seed", range(30))
def test_claims_get_what_each_would_find_on_each_node(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret; the same in every run
    zones = ("a", "b")
    nodes = [node(f"n{number}", host=f"n{number}", zone=random.choice(zones)) for number in range(6)]
    affinities = [
        None,
        *(within("host", f"n{number}") for number in range(6)),
        *(within("zone", zone) for zone in zones),
    ]
    volumes = [
        free_volume(
            f"pv-{number}",
            random.choice(affinities),
            random.randrange(1, 10),
            random.choice(("local", "local", "made")),
            labels={"tier": random.choice("xy")},
        )
        for number in range(25)
    ]
    rooms = [room(f"r{zone}", random.choice((None, 3, 8)), "measured", zone=zone) for zone in zones]
    selectors = (parse_selector({}, ()), parse_selector({}, ()), parse_selector({"tier": "x"}, ()))
    claims = [
        unbound(
            f"c{number}",
            random.choice(("local", "made", "measured")),
            random.choice((None, 1, 4, 9)),
            selector=random.choice(selectors),
        )
        for number in range(random.randrange(1, 8))
    ]
    mirror = mirror_of(*CLASSES, CSIDriver(name="y.csi", storage_capacity=True), *nodes, *volumes, *rooms, *claims)
    naive = Naive(volumes, rooms)
    reasons = [naive.reason(each, claims) for each in nodes]
    expected = [Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (each,)) if each else SUCCESS for each in reasons]
    assert verdicts(mirror, claims, [each.name for each in nodes]) == expected


def classes_with(*names: str) -> list[StorageClass]:
    return [each for each in CLASSES if each.name in names]


def test_claims_that_find_nothing_end_the_search_on_a_node() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(300)]
    volumes = [free_volume(f"pv-{each.name}", within("host", each.name), 1000, "local") for each in nodes]
    claims = [unbound(f"c{number}", "local", number) for number in range(300)]
    mirror = mirror_of(*classes_with("local"), *nodes, *volumes, *claims)
    mirror.work.spent = 0
    found = verdicts(mirror, claims, [each.name for each in nodes])
    assert set(found) == {Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (BIND_CONFLICT,))}
    looks_of_each_claim_on_each_node = 300 * 300 * 2
    assert mirror.work.spent / 700 < looks_of_each_claim_on_each_node  # one look at the claims, and two claims tried


def test_claims_for_which_alike_volumes_are_made_are_one_step() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(50)]
    claims = [unbound(f"c{number}", "made", number) for number in range(500)]
    mirror = mirror_of(*classes_with("made"), *nodes, *claims)
    mirror.work.spent = 0
    assert verdicts(mirror, claims, [each.name for each in nodes]) == [SUCCESS] * 50
    assert mirror.work.spent / 700 < 10


def test_a_search_over_too_many_volumes_names_the_pods_volumes() -> None:
    nodes = [node(f"n{number}", host=f"n{number}") for number in range(50)]
    volumes = [
        free_volume(f"pv-{number}", within("host", "n0", f"n{number % 50}"), 10, "local") for number in range(200)
    ]
    claims = [unbound(f"c{number}", "local", 1) for number in range(100)]
    mirror = mirror_of(*classes_with("local"), *nodes, *volumes, *claims)
    mirror.work.spent = 0
    mirror.work.limit = 1_000_000
    with pytest.raises(WorkLimitError) as caught:
        verdicts(mirror, claims, [each.name for each in nodes])
    assert caught.value.field == "Pod.spec.volumes"
