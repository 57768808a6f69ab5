"""What a pod says besides its terms and containers comes back."""

import pytest

from core.objects.pod import Pod
from tests.app.explain.conformance_case.encoded import again, pod_of
from tests.builders import Object

VOLUMES: list[Object] = [
    {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
    {"name": "scratch", "ephemeral": {}},
    {"ephemeral": {}},
    {"name": "g", "gcePersistentDisk": {"pdName": "d", "readOnly": True}},
    {"name": "e", "awsElasticBlockStore": {"volumeID": "v"}},
    {"name": "a", "azureDisk": {"diskURI": "u", "kind": "Managed"}},
    {"name": "b", "azureDisk": {"diskURI": "u", "kind": ""}},
    {"name": "c", "azureDisk": {}},
    {"name": "i", "cinder": {"volumeID": "v"}},
    {"name": "p", "portworxVolume": {"volumeID": "v"}},
    {"name": "s", "iscsi": {"iqn": "q", "readOnly": True}},
    {"name": "r", "rbd": {"monitors": ["b", "a"], "pool": "p", "image": "i", "readOnly": True}},
    {"name": "x", "emptyDir": {}},
]
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "ru", "controller": True}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
FAILED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
TOLERATIONS = [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}, {"value": "v"}, {"operator": "Odd"}]


def a_pod(metadata: Object | None = None, status: Object | None = None, **spec: object) -> Pod:
    return pod_of({"metadata": {"name": "p", **(metadata or {})}, "spec": spec, "status": status or {}})


@pytest.mark.parametrize("volume", [pytest.param(each, id=f"{index}") for index, each in enumerate(VOLUMES)])
def test_a_volume_comes_back(volume: Object) -> None:
    pod = a_pod(volumes=[volume])
    assert again(pod) == pod


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(), id="no-uid"),
        pytest.param(a_pod({"uid": "u", "resourceVersion": "7", "namespace": "n", "labels": {"a": ""}}), id="metadata"),
        pytest.param(a_pod({"ownerReferences": [{"kind": "X", "name": "x"}, OWNER]}), id="controller"),
        pytest.param(a_pod({"ownerReferences": [{"controller": True}]}), id="empty-controller"),
        pytest.param(a_pod({"deletionTimestamp": "2026-01-01T00:00:00Z"}), id="terminating"),
        pytest.param(a_pod({"deletionTimestamp": ""}, {"conditions": [PREEMPTED]}), id="preempted"),
        pytest.param(a_pod(status={"phase": "Failed", "startTime": "t", "nominatedNodeName": "n"}), id="status"),
        pytest.param(a_pod(priority=-5, preemptionPolicy="Never", schedulerName="s", nodeName="n"), id="spec"),
        pytest.param(a_pod(status={"conditions": [FAILED]}), id="failed-attempt"),
        pytest.param(a_pod(schedulingGroup={"podGroupName": "g"}, resourceClaims=[{"name": "gpu"}]), id="decide"),
        pytest.param(a_pod(tolerations=TOLERATIONS), id="tolerations"),
        pytest.param(a_pod(nodeSelector={"disk": "", "not a key!": "x"}), id="node-selector"),
    ],
)
def test_a_pod_comes_back(pod: Pod) -> None:
    assert again(pod) == pod
