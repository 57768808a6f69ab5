"""Which nodes VolumeBinding keeps a pod from.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go (FindPodVolumes) and
k8s.io/component-helpers storage/volume/pv_helpers.go (FindMatchingVolume).
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.interface import SKIP, SUCCESS, Code, Status
from core.objects.labels import NOTHING, parse_selector
from core.objects.node import Node
from core.objects.pod import InlineDisk, Pod
from core.objects.volumes import CSINode, PersistentVolume, VolumeSource
from core.plugins.volumebinding.filtering import BIND_CONFLICT, NODE_CONFLICT
from core.plugins.volumebinding.plugin import VolumeBinding
from tests.core.plugins.told import filtered, mirror_of
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
    unbound,
    waiting,
    within,
)

NODES: Final = (node("n1", zone="a", host="n1"), node("n2", zone="b", host="n2"), node("bare"))
IN_A: Final = within("zone", "a")
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


@pytest.mark.parametrize(
    "pod",
    [pod_with(), pod_with(InlineDisk("v", VolumeSource(EBS, "vol-1", in_tree=True)))],
    ids=["no-volumes", "disk-without-a-claim"],
)
def test_a_pod_without_claims_is_skipped(pod: Pod) -> None:
    assert VolumeBinding().pre_filter(mirror_of(*NODES), pod) == (SKIP, None)


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
    strangers = [Node(name="n3", labels=labels)]
    expected = [SUCCESS, verdict(NODE_CONFLICT), SUCCESS]
    assert statuses(mirror, pod_with("a"), "n2", "n1", whole=strangers) == expected


# Free volumes for claims that wait.


@pytest.mark.parametrize(
    ("claim", "volume", "expected"),
    [
        pytest.param(unbound("a"), free_volume("pv", ON_N1), ["n1"], id="fits"),
        pytest.param(unbound("a"), free_volume("pv"), ["n1", "n2", "bare"], id="reached-from-everywhere"),
        pytest.param(unbound("a", requested=11), free_volume("pv"), [], id="too-small"),
        pytest.param(unbound("a", requested=None), free_volume("pv", capacity=0), ["n1", "n2", "bare"], id="no-size"),
        pytest.param(unbound("a"), free_volume("pv", storage_class="other"), [], id="of-another-class"),
        pytest.param(unbound("a"), free_volume("pv", volume_mode="Block"), [], id="of-another-mode"),
        pytest.param(unbound("a"), free_volume("pv", access_modes=frozenset()), [], id="without-the-access-mode"),
        pytest.param(unbound("a"), free_volume("pv", phase="Released"), [], id="not-available"),
        pytest.param(unbound("a"), free_volume("pv", deleting=True), [], id="being-deleted"),
        pytest.param(
            unbound("a"), free_volume("pv", volume_attributes_class="gold"), [], id="of-another-attributes-class"
        ),
        pytest.param(unbound("a", selector=parse_selector({"x": "y"}, ())), free_volume("pv"), [], id="not-selected"),
        pytest.param(
            unbound("a", selector=parse_selector({"x": "y"}, ())),
            free_volume("pv", ON_N1, labels={"x": "y"}),
            ["n1"],
            id="selected",
        ),
        pytest.param(unbound("a"), reserved_volume("pv", "a", ON_N2), ["n2"], id="reserved-for-it"),
        pytest.param(unbound("a"), reserved_volume("pv", "a", uid="a"), ["n1", "n2", "bare"], id="reserved-by-uid"),
        pytest.param(unbound("a"), reserved_volume("pv", "a", uid="older"), [], id="reserved-for-an-older-claim"),
        pytest.param(unbound("a"), reserved_volume("pv", "b"), [], id="reserved-for-another"),
        pytest.param(unbound("a"), reserved_volume("pv", "a", capacity=1), [], id="reserved-but-too-small"),
        pytest.param(
            unbound("a"), replace(reserved_volume("pv", "a"), storage_class="other"), [], id="reserved-in-another-class"
        ),
    ],
)
def test_a_waiting_claim_takes_a_volume_that_fits(claim: Object, volume: Object, expected: list[str]) -> None:
    assert passed([waiting(), claim, volume], "a") == expected


def test_a_claim_that_two_volumes_of_a_pod_name_wants_two_volumes() -> None:
    assert passed([waiting(), unbound("a"), free_volume("pv")], "a", "a") == []
    assert passed([waiting(), unbound("a"), free_volume("pv"), free_volume("pv-2", ON_N1)], "a", "a") == ["n1"]
    assert passed([waiting(), unbound("a"), reserved_volume("pv", "a")], "a", "a") == []


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


# Strangers.


def test_strangers_are_judged_by_their_labels_and_names() -> None:
    strangers = [node("s1", zone="a"), node("s2", zone="b"), node("s3")]
    far = PersistentVolume(name="pv", node_affinity=IN_A)
    expected = [SUCCESS, verdict(NODE_CONFLICT), verdict(NODE_CONFLICT)]
    for known in ((), NODES):
        mirror = mirror_of(*known, bound("a", "pv"), far)
        assert statuses(mirror, pod_with("a"), *(each.name for each in known[:1]), whole=strangers)[-3:] == expected
    mirror = mirror_of(PROVISIONED, unbound("a", selected_node="s2"))
    expected = [verdict(BIND_CONFLICT), SUCCESS, verdict(BIND_CONFLICT)]
    assert statuses(mirror, pod_with("a"), whole=strangers) == expected


def test_no_counters_are_read() -> None:
    _, state = VolumeBinding().pre_filter(mirror_of(bound("a", "pv")), pod_with("a"))
    assert state is not None
    assert VolumeBinding().filter_versions(state) == ()
