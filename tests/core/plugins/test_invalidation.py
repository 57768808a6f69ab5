"""Which changes make answers of a plugin invalid, and which do not: what it reads of an object, and nothing else.

That no rule is missing is a matter of tests/core/equivalence/test_planted_faults.py and of tests/properties.
"""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from core.equivalence.validity import operation_of
from core.events import Object
from core.framework.interface import Plugin
from core.framework.invalidation import Scope
from core.objects.affinity import parse_node_selector
from core.objects.kinds import ControllerRef
from core.objects.labels import NOTHING, parse_selector
from core.objects.node import Node
from core.objects.pod import Demand, HostPort, InlineDisk, Pod, PodClaim, PodVolume, RBDImage, Taint
from core.objects.volumes import (
    ClaimRef,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeSource,
)
from core.plugins import PLUGINS
from core.plugins.serviceaffinity import ServiceAffinity
from tests.core.decoded import demanding

NODE: Final = Node("n", {"topology.kubernetes.io/zone": "a"}, {"cpu": 1}, taints=(Taint("a"), Taint("b")))
POD: Final = Pod("p", "default", "p", {"app": "web"}, requests={"cpu": 1})
PORT: Final = HostPort(80)
WITH_PORT: Final = demanding(POD, host_ports=frozenset({PORT}))
OWNER: Final = ControllerRef("Pod", "p", "u")
CLAIM: Final = PersistentVolumeClaim(namespace="default", name="c", storage_class="fast", requested=5)
EBS, DRIVER = "kubernetes.io/aws-ebs", "csi.example.com"
CSI_VOLUME: Final = PersistentVolume(name="pv", source=VolumeSource(DRIVER, "h"), claim=ClaimRef("default", "c", ""))
FREE_VOLUME: Final = PersistentVolume(name="pv", phase="Available", storage_class="fast")
EBS_VOLUME: Final = PersistentVolume(name="pv", source=VolumeSource(EBS, "vol-1", in_tree=True))
CLASS: Final = StorageClass(name="fast", provisioner=DRIVER, volume_binding_mode="WaitForFirstConsumer")
CSI_NODE: Final = CSINode(name="n", volume_limits={DRIVER: 3})
PUBLISHING: Final = CSIDriver(name=DRIVER, storage_capacity=True)
ROOM: Final = CSIStorageCapacity(
    namespace="a", name="r", storage_class="fast", topology=parse_selector({"zone": "a"}, ()), limit=5
)
PLACED: Final = VolumeAttachment(name="a", attacher=DRIVER, node="n", volume="pv")
IN_A: Final = parse_node_selector([([("zone", "In", ["a"])], [])])


def disk(plugin: str, *, read_only: bool = False) -> InlineDisk:
    return InlineDisk("v", VolumeSource(f"kubernetes.io/{plugin}", "d", in_tree=True), read_only=read_only)


def using(*volumes: PodVolume) -> Pod:
    return replace(POD, volumes=volumes)


def made(name: str) -> Plugin:
    return ServiceAffinity(affinity_labels=["region"]) if name == "ServiceAffinity" else PLUGINS[name]()


def touched(plugin: Plugin, before: Object | None, after: Object | None) -> bool:
    kind, operation = type(after if before is None else before), operation_of(before, after)
    return any(
        rule.touches(before, after)
        for rule in plugin.invalidated_by
        if rule.kind is kind and operation in rule.operations and rule.scope is not Scope.COUNTERS
    )


def changed(plugin: str, base: Object, **members: Any) -> list[Any]:  # noqa: ANN401 - of every type
    """Return a row for each member that is another one."""
    return [
        pytest.param(plugin, base, replace(base, **{name: value}), id=f"{plugin}-{type(base).__name__}-{name}")
        for name, value in members.items()
    ]


def come(plugin: str, *objects: Object) -> list[Any]:
    """Return a row for each object that comes."""
    return [pytest.param(plugin, None, each, id=f"{plugin}-{type(each).__name__}-comes") for each in objects]


@pytest.mark.parametrize(
    ("plugin", "one", "other"),
    [
        *changed("ImageLocality", NODE, images={"i": 1}),
        *changed("ImageLocality", replace(NODE, images={"i": 1}), images={"i": 2}),
        *come("ImageLocality", NODE),
        *changed("NodeAffinity", NODE, labels={}),
        *changed("InterPodAffinity", NODE, labels={}),
        *come("PodTopologySpread", NODE),
        *changed("PodTopologySpread", NODE, labels={}, taints=()),
        *changed("TaintToleration", NODE, taints=NODE.taints[::-1]),
        *changed("TaintToleration", NODE, taints=(Taint("a", effect="PreferNoSchedule"), Taint("b"))),
        *changed("NodeUnschedulable", NODE, unschedulable=True),
        *changed("NodeDeclaredFeatures", NODE, declared_features=frozenset({"x"})),
        *changed("ServiceAffinity", NODE, labels={**NODE.labels, "region": "r"}),
        *changed("CheckNodeCondition", NODE, unschedulable=True, conditions={"Ready": "Unknown"}),
        *changed("CheckNodeCondition", NODE, conditions={"NetworkUnavailable": "True"}),
        pytest.param(
            "CheckNodeCondition",
            replace(NODE, conditions={"Ready": "False", "NetworkUnavailable": "True"}),
            replace(NODE, conditions={"NetworkUnavailable": "True", "Ready": "False"}),
            id="CheckNodeCondition-order-of-the-reasons",
        ),
        *changed("CheckNodeMemoryPressure", NODE, conditions={"MemoryPressure": "True"}),
        *changed("CheckNodeDiskPressure", NODE, conditions={"DiskPressure": "True"}),
        *changed("CheckNodePIDPressure", NODE, conditions={"PIDPressure": "True"}),
        *changed("NodePorts", POD, demand=WITH_PORT.demand),
        *changed("NodePorts", WITH_PORT, demand=Demand(host_ports=frozenset({PORT, HostPort(81)}))),
        *come("NodePorts", WITH_PORT),
        *changed("NodeResourcesFit", NODE, allocatable={"cpu": 2}),
        *changed("NodeResourcesFit", POD, requests={}, demand=Demand(non_zero_requests=(1, 2))),
        *come("NodeResourcesFit", POD, replace(POD, requests={})),
        *changed("NodeResourcesBalancedAllocation", NODE, allocatable={"cpu": 2}),
        *changed("NodeResourcesBalancedAllocation", POD, requests={}),
        *come("NodeResourcesBalancedAllocation", POD),
        *come("VolumeRestrictions", using(disk("gce-pd")), using(RBDImage(frozenset({"m"}), "p", "i"))),
        *changed("VolumeRestrictions", using(disk("iscsi")), volumes=(disk("iscsi", read_only=True),)),
        *come("VolumeRestrictions", CLAIM),
        *changed("VolumeRestrictions", CLAIM, access_modes=frozenset({"ReadWriteOncePod"})),
        *changed("VolumeZone", NODE, labels={}),
        *come("VolumeZone", CSI_VOLUME, CLAIM, CLASS),
        *changed("VolumeZone", CSI_VOLUME, labels=NODE.labels),
        *changed("VolumeZone", CLAIM, volume="pv", storage_class="slow"),
        *changed("VolumeZone", replace(CLAIM, volume="pv"), volume="other"),
        *changed("VolumeZone", CLASS, volume_binding_mode="Immediate"),
        *come("NodeVolumeLimits", CSI_NODE, CSINode(name="n"), CSIDriver(name=DRIVER)),
        *changed("NodeVolumeLimits", CSI_NODE, volume_limits={}, drivers=frozenset({DRIVER})),
        *changed("NodeVolumeLimits", CSI_NODE, migrated_plugins=frozenset({"kubernetes.io/portworx-volume"})),
        *changed("NodeVolumeLimits", PUBLISHING, prevents_scheduling_if_missing=True),
        *come("NodeVolumeLimits", using(PodClaim("c")), using(disk("cinder"))),
        *come("NodeVolumeLimits", CLAIM, CSI_VOLUME, CLASS, PLACED),
        *changed("NodeVolumeLimits", CLAIM, volume="pv", storage_class="slow", controller=OWNER),
        *changed("NodeVolumeLimits", CSI_VOLUME, source=VolumeSource(DRIVER, "other")),
        *changed("NodeVolumeLimits", EBS_VOLUME, labels=NODE.labels),
        *changed("NodeVolumeLimits", CLASS, provisioner="other"),
        *changed("NodeVolumeLimits", PLACED, attacher="other", node="m", volume="other"),
        *changed("VolumeBinding", NODE, labels={}),
        *come("VolumeBinding", CSINode(name="n", migrated_plugins=frozenset({EBS}))),
        *changed("VolumeBinding", CSI_NODE, migrated_plugins=frozenset({EBS})),
        *come("VolumeBinding", CLAIM, CSI_VOLUME, CLASS, PUBLISHING, ROOM),
        *changed("VolumeBinding", CLAIM, volume="pv", bind_completed=True, storage_class="slow", selected_node="n"),
        *changed("VolumeBinding", CLAIM, requested=6, access_modes=frozenset({"x"}), volume_mode="Block", uid="new"),
        *changed("VolumeBinding", CLAIM, volume_attributes_class="gold", selector=NOTHING, selector_error="broken"),
        *changed("VolumeBinding", CLAIM, phase="Lost", deleting=True, controller=OWNER),
        *changed("VolumeBinding", CSI_VOLUME, node_affinity=IN_A, claim=None),
        *changed("VolumeBinding", FREE_VOLUME, capacity=11, access_modes=frozenset({"x"}), volume_mode="Block"),
        *changed("VolumeBinding", FREE_VOLUME, storage_class="slow", volume_attributes_class="gold", phase="Released"),
        *changed("VolumeBinding", FREE_VOLUME, deleting=True, labels={"x": "y"}),
        *changed("VolumeBinding", EBS_VOLUME, labels=NODE.labels, source=VolumeSource(EBS, "aws://z/x", in_tree=True)),
        *changed("VolumeBinding", CLASS, provisioner="other", volume_binding_mode="Immediate", allowed_topologies=IN_A),
        *changed("VolumeBinding", PUBLISHING, storage_capacity=False),
        *changed("VolumeBinding", ROOM, limit=4, storage_class="slow", topology=NOTHING),
        *changed("VolumeBinding", ROOM, limit=None),
    ],
)  # fmt: skip
def test_what_is_read_touches_whichever_way_it_changes(plugin: str, one: Object | None, other: Object | None) -> None:
    assert touched(made(plugin), one, other)
    assert touched(made(plugin), other, one)


HEARTBEAT: Final[dict[str, Any]] = {"resource_version": "9", "conditions": {"Ready": "True", "MemoryPressure": "False"}}
OF_NODES: Final = ("labels", "taints", "images", "allocatable", "unschedulable")


def other_node(*but: str) -> dict[str, Any]:
    """Return other members of a node, but for some."""
    values = {"labels": {"rack": "r"}, "taints": (), "images": {"i": 1}, "allocatable": {}, "unschedulable": True}
    return HEARTBEAT | {name: values[name] for name in OF_NODES if name not in but}


@pytest.mark.parametrize(
    ("plugin", "one", "other"),
    [
        *changed("ImageLocality", NODE, **other_node("images")),
        *changed("NodeAffinity", NODE, **other_node("labels")),
        *changed("InterPodAffinity", NODE, **other_node("labels")),
        *changed("PodTopologySpread", NODE, **other_node("labels", "taints")),
        *changed("TaintToleration", NODE, **other_node("taints")),
        *changed("NodeUnschedulable", NODE, **other_node("unschedulable")),
        *changed("NodeDeclaredFeatures", NODE, **other_node()),
        *changed("NodeName", NODE, **other_node()),
        *changed("ServiceAffinity", NODE, **other_node()),
        *changed("CheckNodeCondition", NODE, **other_node("unschedulable")),
        *changed("CheckNodeCondition", replace(NODE, conditions={"Ready": "False"}), conditions={"Ready": "Unknown"}),
        *changed("CheckNodePIDPressure", NODE, conditions={"PIDPressure": "Unknown", "Ready": "False"}),
        *changed("NodePorts", POD, name="q", labels={}),
        *come("NodePorts", POD),
        *changed("NodeResourcesFit", NODE, **other_node("allocatable")),
        *changed("NodeResourcesFit", POD, labels={}),
        *changed("NodeResourcesBalancedAllocation", NODE, **other_node("allocatable")),
        *changed("NodeResourcesBalancedAllocation", POD, labels={}, demand=Demand(non_zero_requests=(1, 2))),
        *come("NodeResourcesBalancedAllocation", replace(POD, requests={})),
        *come("VolumeRestrictions", using(PodClaim("c"), disk("azure-disk"))),
        *changed("VolumeRestrictions", using(disk("gce-pd")), labels={}),
        *changed("VolumeRestrictions", CLAIM, access_modes=frozenset({"ReadWriteMany"}), phase="Bound"),
        pytest.param(
            "VolumeZone",
            replace(CSI_VOLUME, labels={"topology.kubernetes.io/zone": "a__b"}),
            replace(CSI_VOLUME, labels={"topology.kubernetes.io/zone": "b__a", "rack": "r"}),
            id="VolumeZone-the-same-zones",
        ),
        *changed("VolumeZone", replace(CLAIM, volume="pv"), storage_class="slow", uid="2"),
        *changed("VolumeZone", CLASS, provisioner="other"),
        *changed("NodeVolumeLimits", CSI_NODE, migrated_plugins=frozenset({EBS}), resource_version="9"),
        *come("NodeVolumeLimits", POD, using(disk("iscsi"))),
        *changed("NodeVolumeLimits", using(PodClaim("c")), labels={}, resource_version="9"),
        *changed("NodeVolumeLimits", CLAIM, phase="Bound", requested=6, resource_version="9"),
        *changed("NodeVolumeLimits", CSI_VOLUME, phase="Released", labels=NODE.labels, resource_version="9"),
        *changed("NodeVolumeLimits", CLASS, volume_binding_mode="Immediate", resource_version="9"),
        *changed("NodeVolumeLimits", PLACED, resource_version="9"),
        *changed("VolumeBinding", NODE, **other_node("labels")),
        *come("VolumeBinding", CSI_NODE, CSIDriver(name=DRIVER), replace(ROOM, limit=None)),
        *changed("VolumeBinding", CSI_NODE, volume_limits={}, resource_version="9"),
        *changed("VolumeBinding", CLAIM, phase="Pending", resource_version="9"),
        *changed("VolumeBinding", CSI_VOLUME, phase="Released", labels=NODE.labels, resource_version="9"),
        *changed("VolumeBinding", CSI_VOLUME, source=VolumeSource(DRIVER, "another")),
        *changed("VolumeBinding", CLASS, resource_version="9"),
        *changed("VolumeBinding", PUBLISHING, resource_version="9"),
        *changed("VolumeBinding", replace(ROOM, limit=None), topology=NOTHING),
        *changed("VolumeBinding", ROOM, resource_version="9"),
    ],
)
def test_what_is_not_read_does_not_touch(plugin: str, one: Object | None, other: Object | None) -> None:
    assert not touched(made(plugin), one, other)
