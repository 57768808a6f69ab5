"""What makes answers of VolumeBinding invalid, one rule at a time, and that nothing else does."""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.events import Object
from core.framework.interface import InvalidationRule, Operation, Scope
from core.objects.kinds import ControllerRef
from core.objects.labels import NOTHING, parse_selector
from core.objects.node import Node
from core.objects.pod import PodClaim
from core.objects.volumes import CSIDriver, CSINode, PersistentVolume, VolumeSource
from core.plugins.volumebinding.plugin import VolumeBinding
from tests.core.plugins.cached_answers import assert_cached_verdicts_are_fresh, random_events
from tests.core.plugins.told import mirror_of
from tests.core.plugins.volumebinding.values import (
    DRIVER,
    EBS,
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

RULES: Final = {rule.kind: rule for rule in VolumeBinding.invalidated_by}
CLASSES: Final = ("wait", "made", "")
CLAIMS: Final = tuple(unbound(name) for name in "abc")
IN_A: Final = within("zone", "a")
CSI_BOUND: Final = PersistentVolume(
    name="pv", source=VolumeSource(DRIVER, "h"), claim=reserved_volume("pv", "a").claim, phase="Bound"
)
PUBLISHING: Final = CSIDriver(name=DRIVER, storage_capacity=True)
ROOM: Final = room("c1", 5, zone="a")

POOL: Final[tuple[Object, ...]] = (
    *(node(name, **labels) for name in ("n1", "n2") for labels in ({}, {"zone": "a"}, {"zone": "b"})),
    *(Node(name="n1", labels={key: "a"}) for key in (ZONE, "topology.ebs.csi.aws.com/zone")),
    *(CSINode(name=name, migrated_plugins=frozenset(plugins)) for name in ("n1", "n2") for plugins in ((), (EBS,))),
    *(unbound(name, storage_class) for name in "abc" for storage_class in ("wait", "made")),
    *(bound(name, volume) for name in "ab" for volume in ("pv-1", "pv-2")),
    *(replace(bound("b", "pv-1"), phase=phase, deleting=gone) for phase in ("", "Lost") for gone in (True, False)),
    *(unbound("e", controller=ControllerRef("Pod", "p", uid)) for uid in ("p1", "p2")),
    unbound("a", selected_node="n1"),
    unbound("c", "made", selector=parse_selector({"x": "y"}, ())),
    *(free_volume("pv-1", affinity) for affinity in (None, IN_A, within("zone", "b"))),
    *(free_volume("pv-2", IN_A, labels=labels) for labels in ({}, {"x": "y"})),
    free_volume("pv-2", IN_A, phase="Released"),
    *(reserved_volume("pv-2", name, IN_A) for name in "ab"),
    ebs_volume("pv-1", within(ZONE, "a")),
    ebs_volume("pv-1", zone="a"),
    waiting("wait"),
    *(waiting("made", DRIVER, topologies) for topologies in (None, IN_A)),
    replace(waiting("wait"), volume_binding_mode=None),
    *(CSIDriver(name=DRIVER, storage_capacity=publishes) for publishes in (True, False)),
    *(room("c1", limit, "made", **labels) for limit in (1, 9) for labels in ({}, {"zone": "a"})),
)  # fmt: skip
ASKING: Final = (
    *(pod_with(*names) for names in ("a", "b", "c", "ac", "ab", "")),
    *(pod_with(PodClaim("e", ephemeral=True), uid=uid) for uid in ("p1", "p2")),
)


@pytest.mark.parametrize("seed", range(4))
def test_cached_verdicts_are_fresh_ones(seed: int) -> None:
    assert_cached_verdicts_are_fresh(VolumeBinding(), random_events(seed, POOL, 400), ASKING)


def test_every_kind_that_is_read_has_a_rule_for_all_that_can_happen_to_it() -> None:
    assert RULES.keys() == set(VolumeBinding.kinds)
    operations = {kind: rule.operations for kind, rule in RULES.items()}
    assert operations.pop(Node) == (Operation.UPDATE,)  # the rest is NODE_LIFE
    assert set(operations.values()) == {tuple(Operation)}


@pytest.mark.parametrize("rule", [pytest.param(rule, id=rule.kind.__name__) for rule in RULES.values()])
def test_what_is_of_one_node_makes_answers_for_this_node_invalid(rule: InvalidationRule) -> None:
    assert rule.scope is (Scope.NODE if rule.kind in (Node, CSINode) else Scope.ALL)


def _changed(base: Object, **members: Any) -> Any:  # noqa: ANN401 - a parameter set of the kind's own members
    (name,) = members
    return pytest.param(base, replace(base, **members), id=f"{type(base).__name__}-{name}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(node("n1"), node("n1", zone="a"), id="node-label-added"),
        pytest.param(node("n1", zone="a"), node("n1"), id="node-label-removed"),
        pytest.param(None, CSINode(name="n1", migrated_plugins=frozenset({EBS})), id="csi-node-comes"),
        pytest.param(CSINode(name="n1", migrated_plugins=frozenset({EBS})), None, id="csi-node-goes"),
        _changed(CSINode(name="n1"), migrated_plugins=frozenset({EBS})),
        pytest.param(None, unbound("a"), id="claim-comes"),
        pytest.param(unbound("a"), None, id="claim-goes"),
        _changed(unbound("a"), volume="pv"),
        _changed(unbound("a"), bind_completed=True),
        _changed(unbound("a"), storage_class="made"),
        _changed(unbound("a"), selected_node="n1"),
        _changed(unbound("a"), requested=6),
        _changed(unbound("a"), access_modes=frozenset()),
        _changed(unbound("a"), volume_mode="Block"),
        _changed(unbound("a"), volume_attributes_class="gold"),
        _changed(unbound("a"), selector=NOTHING),
        _changed(unbound("a"), selector_error="broken"),
        _changed(unbound("a"), phase="Lost"),
        _changed(unbound("a"), deleting=True),
        _changed(unbound("a"), controller=ControllerRef("Pod", "p", "u")),
        _changed(unbound("a"), uid="another"),
        pytest.param(None, CSI_BOUND, id="volume-comes"),
        pytest.param(CSI_BOUND, None, id="volume-goes"),
        _changed(CSI_BOUND, node_affinity=IN_A),
        _changed(CSI_BOUND, claim=None),
        _changed(free_volume("pv"), capacity=11),
        _changed(free_volume("pv"), access_modes=frozenset()),
        _changed(free_volume("pv"), volume_mode="Block"),
        _changed(free_volume("pv"), storage_class="made"),
        _changed(free_volume("pv"), volume_attributes_class="gold"),
        _changed(free_volume("pv"), phase="Released"),
        _changed(free_volume("pv"), deleting=True),
        _changed(free_volume("pv"), labels={"x": "y"}),
        pytest.param(ebs_volume("pv", zone="a"), ebs_volume("pv"), id="zone-label-of-an-in-tree-volume-removed"),
        pytest.param(ebs_volume("pv"), ebs_volume("pv", zone="a"), id="zone-label-of-an-in-tree-volume-added"),
        pytest.param(ebs_volume("pv"), ebs_volume("pv", volume="aws://z/x"), id="id-of-an-in-tree-volume"),
        pytest.param(None, waiting(), id="class-comes"),
        pytest.param(waiting(), None, id="class-goes"),
        _changed(waiting(), provisioner=DRIVER),
        _changed(waiting(), volume_binding_mode="Immediate"),
        _changed(waiting(), allowed_topologies=IN_A),
        pytest.param(None, PUBLISHING, id="publishing-driver-comes"),
        pytest.param(PUBLISHING, None, id="publishing-driver-goes"),
        _changed(PUBLISHING, storage_capacity=False),
        pytest.param(None, ROOM, id="capacity-comes"),
        pytest.param(ROOM, None, id="capacity-goes"),
        _changed(ROOM, limit=4),
        _changed(ROOM, limit=None),
        _changed(ROOM, storage_class="made"),
        _changed(ROOM, topology=NOTHING),
    ],
)
def test_what_is_read_touches(before: Object | None, after: Object | None) -> None:
    assert RULES[type(before or after)].touches(before, after)  # type: ignore[index]  # one of them is an object


@pytest.mark.parametrize(
    ("before", "after"),
    [
        _changed(node("n1"), allocatable={"cpu": 1}),
        _changed(node("n1"), conditions={"Ready": "True"}),
        pytest.param(None, CSINode(name="n1", volume_limits={DRIVER: 1}), id="csi-node-without-migration-comes"),
        _changed(CSINode(name="n1"), volume_limits={DRIVER: 1}),
        _changed(unbound("a"), phase="Pending"),
        _changed(CSI_BOUND, phase="Released"),
        _changed(CSI_BOUND, labels={ZONE: "a"}),
        _changed(CSI_BOUND, source=VolumeSource(DRIVER, "another")),
        pytest.param(None, CSIDriver(name=DRIVER), id="driver-that-does-not-publish-comes"),
        pytest.param(None, room("c1", None), id="capacity-of-no-size-comes"),
        pytest.param(room("c1", None), room("c1", None, zone="a"), id="topology-of-a-capacity-of-no-size"),
        *(
            _changed(each, resource_version="9")
            for each in (node("n1"), CSINode(name="n1"), unbound("a"), CSI_BOUND, waiting(), PUBLISHING, ROOM)
        ),
    ],
)
def test_what_is_not_read_does_not_touch(before: Object | None, after: Object) -> None:
    assert not RULES[type(after)].touches(before, after)


def test_claims_of_one_name_are_told_apart_by_their_uids() -> None:
    plugin = VolumeBinding()
    pod = pod_with("a", PodClaim("missing", ephemeral=True))
    assert plugin.references(mirror_of(unbound("a", uid="u-1")), pod) == ("u-1", None)
    assert plugin.references(mirror_of(unbound("a", uid="u-2")), pod) == ("u-2", None)
    assert plugin.references(mirror_of(), pod_with()) is None
