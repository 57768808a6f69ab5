"""One object of every kind that can be followed, with every member that is read, and some that are not.

Below: what scheduling reads of it. test_decode_pod.py has that of the pod.
"""

from collections.abc import Mapping
from typing import Final

from core.events import Kind
from core.events import Object as Value
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
from core.objects.pod import Pod, Taint
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
from tests.app.objects.full_devices import EXPECTED_DEVICES, FULL_DEVICES
from tests.builders import Object, expressed, labelled, make_pod, term


def full_metadata(name: str, **members: object) -> Object:
    """Make metadata with all that any kind reads."""
    return {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "resourceVersion": "42",
        "labels": {"app": "web"},
        "annotations": {"example.com/a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "uid-o"},
            {"apiVersion": "v1", "kind": "Owner", "name": "c", "uid": "uid-c", "controller": True},
        ],
        **members,
    }


_RESOURCES: Final = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": 1.5, "memory": "1e8"}}
_NODE_SELECTOR: Final = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
    ]
}
_NEAR: Final = term("zone", labelled(app="web"), namespaces=["x"], namespace_selector=expressed("team", "Exists"))

FULL_OBJECTS: Final[Mapping[Kind, Object]] = {
    Node: {
        "metadata": full_metadata("n1"),
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}],
            "unschedulable": True,
        },
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "capacity": {"cpu": "4100m", "memory": "16Gi", "pods": "broken"},
            "images": [{"names": ["app:1", "app@sha256:12"], "sizeBytes": 5}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    },
    Pod: {
        "metadata": full_metadata("web-1", generateName="web-"),
        "spec": {
            "nodeName": "n1",
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "ports": [{"containerPort": 8080}, {"containerPort": 80, "hostPort": 80}],
                    "resources": _RESOURCES,
                }
            ],
            "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": _RESOURCES}],
            "resources": _RESOURCES,
            "overhead": {"cpu": "10m"},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "t", "emptyDir": {}}],
            "priority": 0,
            "affinity": make_pod("p")
            .required_affinity(_NEAR)
            .preferred_anti_affinity(10, _NEAR)
            .obj()["spec"]["affinity"],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Burstable",
            "conditions": [{"type": "PodResizePending", "reason": "Deferred"}],
            "containerStatuses": [{"name": "c", "resources": _RESOURCES, "allocatedResources": {"cpu": "1"}}],
            "initContainerStatuses": [{"name": "s", "resources": _RESOURCES, "allocatedResources": {"cpu": "1"}}],
        },
    },
    Namespace: {"metadata": full_metadata("shop"), "spec": {"finalizers": ["kubernetes"]}},
    PersistentVolume: {
        "metadata": full_metadata("pv-1", deletionTimestamp="2026-01-01T00:00:00Z"),
        "spec": {
            "csi": {"driver": "csi.example.com", "volumeHandle": "h-1"},
            "awsElasticBlockStore": {"volumeID": "vol-1"},
            "gcePersistentDisk": {"pdName": "disk-1"},
            "azureDisk": {"diskURI": "/disks/1"},
            "cinder": {"volumeID": "c-1"},
            "portworxVolume": {"volumeID": "p-1"},
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Block",
            "storageClassName": "fast",
            "volumeAttributesClassName": "gold",
            "claimRef": {"namespace": "shop", "name": "data", "uid": "uid-data"},
            "nodeAffinity": {"required": _NODE_SELECTOR},
        },
        "status": {"phase": "Bound"},
    },
    PersistentVolumeClaim: {
        "metadata": full_metadata(
            "data",
            annotations={"pv.kubernetes.io/bind-completed": "", "volume.kubernetes.io/selected-node": "n1"},
            deletionTimestamp="2026-01-01T00:00:00Z",
        ),
        "spec": {
            "volumeName": "pv-1",
            "resources": {"requests": {"storage": "10Gi"}, "limits": {"storage": "20Gi"}},
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": "Block",
            "storageClassName": "fast",
            "volumeAttributesClassName": "gold",
            "selector": {**labelled(app="db"), **expressed("tier", "In", "a", "b")},
        },
        "status": {"phase": "Bound"},
    },
    StorageClass: {
        "metadata": full_metadata(
            "fast",
            annotations={"storageclass.kubernetes.io/is-default-class": "true"},
            creationTimestamp="2026-01-02T03:04:05Z",
        ),
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    },
    CSINode: {
        "metadata": full_metadata("n1", annotations={"storage.alpha.kubernetes.io/migrated-plugins": "x,y"}),
        "spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n", "allocatable": {"count": 8}}]},
    },
    CSIDriver: {
        "metadata": full_metadata("csi.example.com"),
        "spec": {"storageCapacity": True, "attachRequired": True, "preventPodSchedulingIfMissing": True},
    },
    CSIStorageCapacity: {
        "metadata": full_metadata("csisc-1"),
        "storageClassName": "fast",
        "nodeTopology": {**labelled(zone="a"), **expressed("disk", "In", "ssd")},
        "capacity": "100Gi",
        "maximumVolumeSize": "10Gi",
    },
    VolumeAttachment: {
        "metadata": full_metadata("csi-1"),
        "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        "status": {"attached": True},
    },
    DeviceClass: {
        "metadata": full_metadata("gpu"),
        "spec": {"extendedResourceName": "example.com/gpu", "selectors": [{"cel": {"expression": "true"}}]},
    },
    **FULL_DEVICES,
    PodGroup: {
        "metadata": full_metadata("train"),
        "spec": {"minMember": 8, "scheduleTimeoutSeconds": 30, "minResources": {"cpu": "8"}},
        "status": {"phase": "Pending"},
    },
    SchedulingGroup: {
        "metadata": full_metadata("train"),
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": {"all": {}},
        },
        "status": {
            "conditions": [
                {
                    "type": "PodGroupInitiallyScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "minCount (4) cannot be satisfied",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "observedGeneration": 2,
                }
            ]
        },
    },
    Service: {
        "metadata": full_metadata("web"),
        "spec": {"selector": {"app": "web", "tier": "a"}, "clusterIP": "None"},
    },
    PodDisruptionBudget: {
        "metadata": full_metadata("web"),
        "spec": {"selector": {**labelled(app="web"), **expressed("tier", "NotIn", "a")}, "maxUnavailable": "10%"},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"web-1": "2026-01-01T00:00:00Z", "web-2": None}},
    },
    ReplicaSet: {
        "metadata": full_metadata("web-abc"),
        "spec": {"replicas": 3, "selector": {**labelled(app="web"), **expressed("tier", "In", "a")}},
    },
    StatefulSet: {
        "metadata": full_metadata("db"),
        "spec": {"replicas": 3, "selector": {**labelled(app="db"), **expressed("tier", "Exists")}},
    },
    ReplicationController: {
        "metadata": full_metadata("old"),
        "spec": {"replicas": 3, "selector": {"app": "old", "tier": "a"}},
    },
}

WEB_A: Final = parse_selector({"app": "web", "tier": "a"}, ())
EXPECTED: Final[tuple[Value, ...]] = (
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
    Namespace("shop", {"app": "web"}, uid="uid-shop", resource_version="42"),
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
        default_since="2026-01-02T03:04:05Z",
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
    DeviceClass(
        name="gpu",
        extended_resource="example.com/gpu",
        selectors=("true",),
        created="2026-01-01T00:00:00Z",
        uid="uid-gpu",
        resource_version="42",
    ),
    *EXPECTED_DEVICES,
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
    Service("shop", "web", WEB_A, uid="uid-web", resource_version="42"),
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
    StatefulSet(
        "shop", "db", parse_selector({"app": "db"}, [("tier", "Exists", [])]), uid="uid-db", resource_version="42"
    ),
    ReplicationController(
        "shop", "old", parse_selector({"app": "old", "tier": "a"}, ()), uid="uid-old", resource_version="42"
    ),
)
