"""Objects with every member that is read are reduced to what scheduling reads; test_decode_pod.py has pods."""

import json
from typing import Final

import pytest

from app.objects.resources import RESOURCES
from core.events import Object
from core.objects.affinity import parse_node_selector
from core.objects.groups import GroupCondition, PodGroup, SchedulingGroup
from core.objects.kinds import (
    ControllerRef,
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from core.objects.labels import parse_selector
from core.objects.node import Node
from core.objects.pod import Taint
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
from tests.app.objects.full_objects import FULL_OBJECTS

WEB_A: Final = parse_selector({"app": "web", "tier": "a"}, ())
EXPECTED: Final[tuple[Object, ...]] = (
    Node(
        name="n1",
        labels={"app": "web"},
        allocatable={"cpu": 4000, "memory": 2**34, "pods": 110},
        uid="uid-n1",
        resource_version="42",
        taints=(Taint("gpu", "a100", "NoSchedule"),),
        unschedulable=True,
        images={"app:1": 5, "app@sha256:12": 5},
        conditions={"Ready": "True"},
        capacity={"cpu": 4100, "memory": 2**34},
    ),
    PersistentVolumeClaim(
        namespace="shop",
        name="data",
        volume="pv-1",
        bind_completed=True,
        storage_class="fast",
        selected_node="n1",
        requested=10 * 2**30,
        access_modes=frozenset({"ReadWriteOnce"}),
        volume_mode="Block",
        volume_attributes_class="gold",
        selector=parse_selector({"app": "db"}, [("tier", "In", ["a", "b"])]),
        phase="Bound",
        deleting=True,
        controller=ControllerRef("Owner", "c", "uid-c", "v1"),
        uid="uid-data",
        resource_version="42",
    ),
    Namespace("shop", {"app": "web"}, "uid-shop", "42"),
    PersistentVolume(
        name="pv-1",
        labels={"app": "web"},
        source=VolumeSource("csi.example.com", "h-1"),
        capacity=10 * 2**30,
        access_modes=frozenset({"ReadWriteOnce"}),
        volume_mode="Block",
        storage_class="fast",
        volume_attributes_class="gold",
        claim=ClaimRef("shop", "data", "uid-data"),
        node_affinity=parse_node_selector([([("zone", "In", ["a"])], [("metadata.name", "In", ["n1"])])]),
        phase="Bound",
        deleting=True,
        uid="uid-pv-1",
        resource_version="42",
    ),
    StorageClass(
        name="fast",
        provisioner="csi.example.com",
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=parse_node_selector([([("zone", "In", ["a", "b"])], [])]),
        uid="uid-fast",
        resource_version="42",
    ),
    CSINode(
        name="n1",
        drivers=frozenset({"csi.example.com"}),
        volume_limits={"csi.example.com": 8},
        migrated_plugins=frozenset({"x", "y"}),
        uid="uid-n1",
        resource_version="42",
    ),
    CSIDriver(
        name="csi.example.com",
        storage_capacity=True,
        prevents_scheduling_if_missing=True,
        uid="uid-csi.example.com",
        resource_version="42",
    ),
    DeviceClass(name="gpu", extended_resource="example.com/gpu", uid="uid-gpu", resource_version="42"),
    SchedulingGroup(
        namespace="shop",
        name="train",
        minimum=4,
        disrupted_whole=True,
        unsupported="spec.schedulingConstraints",
        conditions=(
            GroupCondition(
                "PodGroupInitiallyScheduled",
                "False",
                "Unschedulable",
                "minCount (4) cannot be satisfied",
                "2026-01-01T00:00:00Z",
            ),
        ),
        uid="uid-train",
        resource_version="42",
    ),
    PodGroup(namespace="shop", name="train", minimum=8, timeout=30, uid="uid-train", resource_version="42"),
    CSIStorageCapacity(
        namespace="shop",
        name="csisc-1",
        storage_class="fast",
        topology=parse_selector({"zone": "a"}, [("disk", "In", ["ssd"])]),
        limit=10 * 2**30,
        capacity=100 * 2**30,
        uid="uid-csisc-1",
        resource_version="42",
    ),
    VolumeAttachment(
        name="csi-1", attacher="csi.example.com", node="n1", volume="pv-1", uid="uid-csi-1", resource_version="42"
    ),
    Service("shop", "web", WEB_A, "uid-web", "42"),
    PodDisruptionBudget(
        namespace="shop",
        name="web",
        selector=parse_selector({"app": "web"}, [("tier", "NotIn", ["a"])]),
        disruptions_allowed=2,
        disrupted_pods=frozenset({"web-1", "web-2"}),
        uid="uid-web",
        resource_version="42",
    ),
    ReplicaSet(
        namespace="shop",
        name="web-abc",
        labels={"app": "web"},
        controller=ControllerRef("Owner", "c", "uid-c", "v1"),
        selector=WEB_A,
        uid="uid-web-abc",
        resource_version="42",
    ),
    StatefulSet("shop", "db", parse_selector({"app": "db"}, [("tier", "Exists", [])]), "uid-db", "42"),
    ReplicationController("shop", "old", parse_selector({"app": "old", "tier": "a"}, ()), "uid-old", "42"),
)


@pytest.mark.parametrize("expected", [pytest.param(each, id=RESOURCES[type(each)].plural) for each in EXPECTED])
def test_an_object_is_reduced_to_what_scheduling_reads(expected: Object) -> None:
    text = json.dumps(FULL_OBJECTS[type(expected)]).encode()
    assert expected == RESOURCES[type(expected)].decode(text)
