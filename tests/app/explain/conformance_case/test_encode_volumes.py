"""What is said of volumes comes back; what is broken is refused."""

import pytest

from app.explain.conformance_case.encode import NotExpressibleError
from core.events import Kind
from core.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.app.explain.conformance_case.encoded import again, decoded
from tests.builders import Object

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BOUND = "pv.kubernetes.io/bind-completed"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
NEAR = {"key": "a", "operator": "Near"}
SOURCES: list[Object] = [
    {"csi": {}},
    {"awsElasticBlockStore": {"volumeID": "v"}},
    {"gcePersistentDisk": {"pdName": "v"}},
    {"azureDisk": {"diskURI": "v"}},
    {"cinder": {}},
    {"portworxVolume": {"volumeID": "v"}},
    {"nfs": {}},
]


def named(annotations: Object | None = None, **metadata: object) -> Object:
    return {"metadata": {"name": "o", "uid": "u", "annotations": annotations or {}, **metadata}}


def volume(**spec: object) -> Object:
    return {**named(), "spec": spec}


def claim(annotations: Object | None = None, **spec: object) -> Object:
    return {**named(annotations, namespace="n"), "spec": spec}


@pytest.mark.parametrize(
    ("kind", "v1_object"),
    [
        *(pytest.param(PersistentVolume, volume(**each), id=f"source-{next(iter(each))}") for each in SOURCES),
        pytest.param(PersistentVolume, volume(capacity={"storage": "1.5"}, volumeMode=""), id="volume-mode"),
        pytest.param(PersistentVolume, volume(claimRef={}, accessModes=["b", "a"]), id="volume-claim"),
        pytest.param(PersistentVolume, volume(nodeAffinity={"required": {}}), id="volume-for-no-node"),
        pytest.param(PersistentVolume, {**named({BETA_CLASS: "b"}, deletionTimestamp="t")}, id="volume-deleted"),
        pytest.param(PersistentVolumeClaim, claim({BOUND: "", SELECTED_NODE: ""}), id="claim-annotations"),
        pytest.param(PersistentVolumeClaim, claim(selector={}, resources={"requests": {"storage": 0}}), id="claim-0"),
        pytest.param(PersistentVolumeClaim, claim(selector={"matchLabels": {"a": "b"}}), id="claim-selector"),
        pytest.param(PersistentVolumeClaim, claim(volumeMode="Block", volumeName="v"), id="claim-of-a-volume"),
        pytest.param(StorageClass, named(), id="class"),
        pytest.param(StorageClass, {**named(), "volumeBindingMode": "", "allowedTopologies": []}, id="class-mode"),
        pytest.param(StorageClass, {**named(), "allowedTopologies": [{}]}, id="class-for-no-node"),
        pytest.param(
            StorageClass,
            {**named(), "allowedTopologies": [{"matchLabelExpressions": [{"key": "a", "values": ["c", "b"]}]}, {}]},
            id="class-topologies",
        ),
        pytest.param(CSINode, named({MIGRATED: "b,,a"}), id="csi-node-migrated"),
        pytest.param(CSINode, named({MIGRATED: ","}), id="csi-node-migrated-nothing"),
        pytest.param(
            CSINode,
            {**named(), "spec": {"drivers": [{"name": "d", "allocatable": {"count": 0}}, {"name": "e"}]}},
            id="csi-node-limits",
        ),
        pytest.param(CSIDriver, named(), id="csi-driver"),
        pytest.param(CSIStorageCapacity, named(), id="capacity-none"),
        pytest.param(CSIStorageCapacity, {**named(), "nodeTopology": {}, "capacity": 0}, id="capacity-everywhere"),
        pytest.param(
            CSIStorageCapacity,
            {**named(), "nodeTopology": {"matchExpressions": [NEAR]}, "capacity": 5, "maximumVolumeSize": "3"},
            id="capacity-broken-is-nowhere",
        ),
        pytest.param(VolumeAttachment, {**named(), "spec": {"source": {}}}, id="attachment"),
    ],
)
def test_an_object_comes_back(kind: Kind, v1_object: Object) -> None:
    found = decoded(kind, v1_object)
    assert again(found) == found


@pytest.mark.parametrize(
    ("kind", "v1_object", "why"),
    [
        pytest.param(
            PersistentVolume,
            volume(nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [NEAR]}]}}),
            "persistent volume o: a broken node selector term cannot be written again: nodeSelectorTerms[0].match",
            id="volume",
        ),
        pytest.param(
            PersistentVolumeClaim,
            claim(selector={"matchExpressions": [NEAR]}),
            "persistent volume claim n/o: a broken selector cannot be written again: ",
            id="claim",
        ),
        pytest.param(
            StorageClass,
            {**named(), "allowedTopologies": [{"matchLabelExpressions": [{"key": "a"}]}]},
            "storage class o: a broken topology cannot be written again: nodeSelectorTerms[0].matchExpressions[0]",
            id="class",
        ),
    ],
)
def test_what_is_broken_is_refused_by_name(kind: Kind, v1_object: Object, why: str) -> None:
    with pytest.raises(NotExpressibleError) as refused:
        again(decoded(kind, v1_object))
    assert str(refused.value).startswith(why)
