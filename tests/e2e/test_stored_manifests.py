"""The pods that a real kube-apiserver stores for manifests, against those that an explanation makes of them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from app.explain.explain_request import decode_manifest
from app.explain.templates import AtHand
from app.objects.decode_pod import decode_pod
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.releases.differences import rules_of
from core.releases.release import nearest
from tests.core.decoded import demanding
from tests.e2e.cluster import Cluster

_PATHS: Final[Mapping[str, str]] = {
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "LimitRange": "/api/v1/namespaces/limited/limitranges",
}
_OBJECTS: Final = """
- apiVersion: node.k8s.io/v1
  kind: RuntimeClass
  metadata: {name: kata}
  handler: kata
  overhead: {podFixed: {cpu: 250m, memory: 120Mi}}
  scheduling: {nodeSelector: {runtime: kata}, tolerations: [{key: kata, operator: Exists, effect: NoSchedule}]}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000, preemptionPolicy: Never}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: usual}, value: 7, globalDefault: true}
- apiVersion: v1
  kind: LimitRange
  metadata: {name: limits, namespace: limited}
  spec: {limits: [{type: Container, default: {cpu: 2}, defaultRequest: {memory: 64Mi}, max: {memory: 9Gi}}]}
"""
_TERM: Final = "topologyKey: zone, labelSelector: {matchLabels: {app: web}}"
_SPECS: Final[Mapping[str, str]] = {
    "limits": "{containers: [{resources: {limits: {cpu: 2, memory: 1e9, x.example/gpu: 1}, requests: {cpu: 0.5}}}]}",
    "init": "{initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}], containers: [{}]}",
    "ports": "{hostNetwork: true, containers: [{ports: [{containerPort: 80}, {containerPort: 81, hostPort: 81}]}]}",
    "whole": "{resources: {limits: {cpu: 9, memory: 9Gi}}, containers: [{resources: {limits: {cpu: 2}}}]}",
    "whole-requests": "{resources: {limits: {cpu: 9, memory: 9Gi}, requests: {memory: 1Gi}}, containers: [{}]}",
    "runtime": "{runtimeClassName: kata, nodeSelector: {disk: ssd}, containers: [{}]}",
    "priority": "{priorityClassName: high, containers: [{}]}",
    "system": "{priorityClassName: system-node-critical, containers: [{}]}",
    "tolerations": "{tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists}], containers: [{}]}",
    "match": "{affinity: {podAffinity: {required: [{matchLabelKeys: [tenant, absent], TERM}]}}, containers: [{}]}",
    "mismatch": "{affinity: {podAntiAffinity: {required: [{mismatchLabelKeys: [tenant], TERM}]}}, containers: [{}]}",
}


@pytest.fixture(scope="module")
def objects(cluster: Cluster) -> Mapping[str, list[dict[str, Any]]]:
    """Make the classes and the LimitRange, and return them as they are stored."""
    cluster.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "limited"}})
    for each in yaml.safe_load(_OBJECTS):
        if each["kind"] == "PriorityClass":
            cluster.api.create_priority(each)
        else:
            cluster.api.request("POST", _PATHS[each["kind"]], each)
    return {kind: cluster.api.items(path) for kind, path in _PATHS.items()}


def pod(name: str, namespace: str) -> dict[str, Any]:
    text = _SPECS[name].replace("required:", "requiredDuringSchedulingIgnoredDuringExecution:").replace("TERM", _TERM)
    spec = yaml.safe_load(text)
    for member in ("containers", "initContainers"):
        spec[member] = [
            {"name": f"{member[0]}{n}", "image": "x", **each} for n, each in enumerate(spec.get(member, ()))
        ]
    labels = {"app": "web", "tenant": "t"}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def judged(found: Pod, mirror: ClusterMirror) -> Pod:
    """Return what rules read of a pod. What a pod tolerates twice, and the default policy, change no result."""
    policy = found.preemption_policy or "PreemptLowerPriority"
    tolerations = tuple(sorted(set(found.tolerations), key=repr))
    counted = mirror.counted(found)
    unread = demanding(replace(counted, uid="", resource_version=""), resources=None, origins=())
    return replace(unread, tolerations=tolerations, preemption_policy=policy)


@pytest.mark.parametrize("namespace", ["default", "limited"])
@pytest.mark.parametrize("name", _SPECS)
def test_a_manifest_means_what_the_api_server_stores(
    name: str, namespace: str, cluster: Cluster, objects: Mapping[str, list[dict[str, Any]]]
) -> None:
    version = cluster.api.get("/version")["gitVersion"]
    mirror = ClusterMirror(rules=rules_of(nearest(version).release))
    written = pod(name, namespace)
    stored = cluster.api.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", written)
    made = decode_manifest(msgspec.json.encode(written), AtHand(mirror, lambda kind: objects.get(kind, ()))).pod
    stored["metadata"].pop("creationTimestamp")
    assert judged(made, mirror) == judged(decode_pod(msgspec.json.encode(stored)), mirror)
