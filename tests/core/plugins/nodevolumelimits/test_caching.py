"""What makes answers of NodeVolumeLimits invalid, one rule at a time, and that nothing else does."""

from typing import Final

import msgspec
import pytest

from core.events import Object
from core.framework.interface import InvalidationRule, Operation, Scope
from core.objects.node import Node
from core.objects.pod import Pod, PodClaim
from core.objects.volumes import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh, random_events
from tests.core.plugins.nodevolumelimits.values import (
    DRIVER,
    EBS_DRIVER,
    attachment,
    claim,
    csi_node,
    csi_volume,
    disk,
    in_tree_volume,
    pod_with,
    storage_class,
)
from tests.core.plugins.told import mirror_of

RULES: Final = {rule.kind: rule for rule in NodeVolumeLimits.invalidated_by}
LIMITED: Final = csi_node("n1", 3)
BOUND: Final = claim("a", "pv-a")
GCE: Final = in_tree_volume("pv-a", "gce-pd", "d", zone="us-a1-x")
RUNNING: Final = pod_with("a", name="p", on="n1")
PLACED: Final = attachment("att", "pv-a", "n1")

POOL: Final[tuple[Object, ...]] = (
    *(Node(name=name, labels=labels) for name in ("n1", "n2") for labels in ({}, {"a": "b"})),
    *(csi_node(name, limit, DRIVER, *more) for name in ("n1", "n2") for limit in (None, 1, 2) for more in ((), ("x",))),
    *(csi_node("n1", 1, EBS_DRIVER),),
    *(claim(name, volume, storage_class="fast") for name in ("a", "b", "c") for volume in ("", "pv-a", "pv-b")),
    *(claim("e", owner=owner, storage_class="fast") for owner in ("p1", "p9")),
    *(csi_volume(name, handle) for name in ("pv-a", "pv-b") for handle in ("h1", "h2")),
    in_tree_volume("pv-a", "aws-ebs", "vol-1"),
    *(in_tree_volume("pv-b", "gce-pd", "d", zone=zone) for zone in ("us-a1-x", "bad__zone")),
    *(storage_class("fast", provisioner) for provisioner in (DRIVER, EBS_DRIVER, "kubernetes.io/aws-ebs")),
    *(attachment("att", volume, node) for volume in ("pv-a", "pv-b") for node in ("n1", "n2")),
    *(pod_with(*names, name="-".join(("p", *names)), on=on) for names in ("a", "bc", "ac", "") for on in ("n1", "n2")),
    *(pod_with(PodClaim("e", ephemeral=True), name="p1", on=on) for on in ("n1", "n2")),
    pod_with(disk("aws-ebs", "vol-1"), name="p4", on="n1"),
    pod_with(disk("azure-disk", "d", kind="Dedicated"), name="p5", on="n2"),
)  # fmt: skip
ASKING: Final = (
    pod_with("a"),
    pod_with("b", "c"),
    pod_with(disk("aws-ebs", "vol-2")),
    pod_with("a", disk("aws-ebs", "vol-1")),
    pod_with(PodClaim("e", ephemeral=True), name="p1"),
    pod_with(PodClaim("e", ephemeral=True), name="p2"),
    pod_with(),
)


@pytest.mark.parametrize("seed", range(4))
def test_cached_verdicts_are_fresh_ones(seed: int) -> None:
    assert_cached_verdicts_are_fresh(NodeVolumeLimits(), random_events(seed, POOL, 400), ASKING)


def test_every_kind_that_is_read_has_a_rule_for_all_that_can_happen_to_it() -> None:
    assert RULES.keys() | {Node} == set(NodeVolumeLimits.kinds)  # of nodes, nothing but their names is read
    assert all(rule.operations == tuple(Operation) for rule in RULES.values())


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.kind.__name__) for rule in RULES.values()])
def test_what_lies_on_one_node_makes_answers_for_this_node_invalid(rule: InvalidationRule) -> None:
    assert rule.scope is (Scope.NODE if rule.kind in (CSINode, Pod) else Scope.ALL)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, LIMITED, id="csi-node-comes"),
        pytest.param(LIMITED, None, id="csi-node-goes"),
        pytest.param(LIMITED, csi_node("n1", 4), id="limit"),
        pytest.param(LIMITED, csi_node("n1"), id="limit-goes"),
        pytest.param(None, csi_node("n1"), id="csi-node-without-limits-comes"),
        pytest.param(LIMITED, csi_node("n1", 3, DRIVER, "kubernetes.io/portworx-volume"), id="portworx-migrates"),
        pytest.param(None, RUNNING, id="pod-with-a-claim-comes"),
        pytest.param(RUNNING, None, id="pod-with-a-claim-goes"),
        pytest.param(None, pod_with(disk("cinder", "c")), id="pod-with-a-migrated-disk-comes"),
        pytest.param(None, BOUND, id="claim-comes"),
        pytest.param(BOUND, None, id="claim-goes"),
        pytest.param(claim("a"), BOUND, id="claim-gets-a-volume"),
        pytest.param(claim("a"), claim("a", storage_class="fast"), id="class-of-a-claim"),
        pytest.param(claim("a", owner="p"), claim("a", owner="q"), id="owner-of-a-claim"),
        pytest.param(None, csi_volume("pv-a"), id="volume-comes"),
        pytest.param(csi_volume("pv-a"), None, id="volume-goes"),
        pytest.param(csi_volume("pv-a"), csi_volume("pv-a", "other"), id="handle"),
        pytest.param(GCE, msgspec.structs.replace(GCE, labels={}), id="zone-label-of-an-in-tree-volume-removed"),
        pytest.param(msgspec.structs.replace(GCE, labels={}), GCE, id="zone-label-of-an-in-tree-volume-added"),
        pytest.param(None, storage_class("fast", DRIVER), id="class-comes"),
        pytest.param(storage_class("fast", DRIVER), None, id="class-goes"),
        pytest.param(storage_class("fast", DRIVER), storage_class("fast", "other"), id="provisioner"),
        pytest.param(None, PLACED, id="attachment-comes"),
        pytest.param(PLACED, None, id="attachment-goes"),
        pytest.param(PLACED, attachment("att", "pv-a", "n2"), id="attachment-to-another-node"),
    ],
)
def test_what_is_read_touches(before: Object | None, after: Object | None) -> None:
    assert RULES[type(before or after)].touches(before, after)  # type: ignore[index]  # one of them is an object


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(LIMITED, csi_node("n1", 3, DRIVER, "kubernetes.io/aws-ebs"), id="ebs-is-migrated-anyway"),
        pytest.param(None, pod_with(), id="pod-without-volumes"),
        pytest.param(None, pod_with(disk("iscsi", "iqn")), id="pod-with-a-disk-that-does-not-count"),
        pytest.param(RUNNING, msgspec.structs.replace(RUNNING, labels={"a": "b"}), id="label-of-a-pod"),
        pytest.param(BOUND, msgspec.structs.replace(BOUND, phase="Bound", requested=5), id="phase-and-size-of-a-claim"),
        pytest.param(
            csi_volume("pv-a"),
            msgspec.structs.replace(csi_volume("pv-a"), phase="Released", labels=GCE.labels),
            id="phase-and-zone-label-of-a-csi-volume",
        ),
        pytest.param(
            storage_class("fast", DRIVER),
            msgspec.structs.replace(storage_class("fast", DRIVER), volume_binding_mode="Immediate"),
            id="binding-mode",
        ),
        pytest.param(PLACED, msgspec.structs.replace(PLACED, resource_version="2"), id="status-of-an-attachment"),
    ],
)
def test_what_is_not_read_does_not_touch(before: Object | None, after: Object) -> None:
    assert not RULES[type(after)].touches(before, after)


@pytest.mark.parametrize(
    "kind", [PersistentVolume, PersistentVolumeClaim, StorageClass, CSINode, VolumeAttachment, Pod]
)
def test_a_new_version_alone_does_not_touch(kind: type[Object]) -> None:
    known: dict[type[Object], Object] = {
        PersistentVolume: GCE,
        PersistentVolumeClaim: BOUND,
        StorageClass: storage_class("fast", DRIVER),
        CSINode: LIMITED,
        VolumeAttachment: PLACED,
        Pod: RUNNING,
    }
    assert not RULES[kind].touches(known[kind], msgspec.structs.replace(known[kind], resource_version="9"))


def test_claims_of_one_name_are_told_apart_by_their_uids() -> None:
    plugin = NodeVolumeLimits()
    pod = pod_with("a", "missing")
    assert plugin.references(mirror_of(claim("a", uid="u-1")), pod) == ("u-1", None)
    assert plugin.references(mirror_of(claim("a", uid="u-2")), pod) == ("u-2", None)
    assert plugin.references(mirror_of(), pod_with(disk("aws-ebs", "v"))) is None
