"""How many pods ResourceQuotas allow, of a real API server, which refuses the next one, and of `kindred capacity`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.app.commands.what_if.asking import dump, node, response
from tests.e2e.api import NAMESPACES, pods_path
from tests.e2e.cluster import Cluster

MOST: Final = 4
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


def container(name: str, requests: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "image": "x", "resources": {"requests": requests, "limits": limits}}


def scope(name: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"scopeName": name, "operator": operator, **({"values": [*values]} if values else {})}
    return {"scopeSelector": {"matchExpressions": [expression]}}


BARE: Final = {"containers": [container("a", {}, {})]}
LIMITED: Final = {
    "containers": [container("a", {"cpu": "100m"}, {"cpu": "1", "memory": "1Gi"}), container("b", {}, {"cpu": "500m"})],
    "initContainers": [container("i", {"memory": "1Gi"}, {"cpu": "2", "memory": "1536Mi"})],
}
WHOLE: Final = {**BARE, "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "512Mi"}}}
DEVICES: Final = {"containers": [container("a", {}, {"example.com/gpu": "2", "cpu": "1", "hugepages-2Mi": "4Mi"})]}
STORED: Final = {"containers": [container("a", {"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "2Gi"})]}
TERM: Final = {"labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {}}
PREFERS: Final = [{"weight": 1, "podAffinityTerm": TERM}]
CROSS: Final = {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": PREFERS}}}
_ROOM: Final = {"example.com/gpu": "99", "hugepages-2Mi": "1Gi", "ephemeral-storage": "99Gi"}


@pytest.mark.parametrize(
    ("of_quota", "spec"),
    [
        pytest.param({"hard": {"limits.cpu": "5"}}, LIMITED, id="limits of the largest phase"),
        pytest.param({"hard": {"limits.memory": "5Gi"}}, LIMITED, id="a limit that a container lacks"),
        pytest.param({"hard": {"requests.cpu": "1300m", "pods": "9"}}, LIMITED, id="requests"),
        pytest.param({"hard": {"limits.cpu": "3", "memory": "1Gi"}}, WHOLE, id="of the pod as a whole"),
        pytest.param({"hard": {"requests.memory": "9Gi"}}, BARE, id="a request that is missing"),
        pytest.param({"hard": {"count/pods": "1"}}, BARE, id="objects"),
        pytest.param({"hard": {"requests.example.com/gpu": "5"}}, DEVICES, id="devices"),
        pytest.param({"hard": {"requests.hugepages-2Mi": "4Mi"}}, DEVICES, id="huge pages"),
        pytest.param({"hard": {"hugepages-2Mi": "8Mi"}}, DEVICES, id="huge pages by their own name"),
        pytest.param(
            {"hard": {"requests.ephemeral-storage": "3Gi", "limits.ephemeral-storage": "5Gi"}}, STORED, id="storage"
        ),
        pytest.param({"hard": {"pods": "1"}, "scopes": ["BestEffort"]}, BARE, id="best effort"),
        pytest.param({"hard": {"pods": "1"}, "scopes": ["NotBestEffort"]}, BARE, id="not best effort"),
        pytest.param(
            {"hard": {"pods": "1"}, "scopes": ["Terminating"]}, {**BARE, "activeDeadlineSeconds": 9}, id="terminating"
        ),
        pytest.param(
            {"hard": {"pods": "1"}, "scopes": ["NotTerminating"]}, {**BARE, "activeDeadlineSeconds": 9}, id="ends"
        ),
        pytest.param(
            {"hard": {"pods": "1"}, **scope("CrossNamespacePodAffinity", "Exists")}, {**BARE, **CROSS}, id="cross"
        ),
        pytest.param({"hard": {"pods": "1"}, **scope("CrossNamespacePodAffinity", "Exists")}, BARE, id="not cross"),
        pytest.param({"hard": {"pods": "1"}, **scope("PriorityClass", "In", "usual")}, BARE, id="default class"),
        pytest.param({"hard": {"pods": "1"}, **scope("PriorityClass", "NotIn", "usual")}, BARE, id="not that class"),
        pytest.param({"hard": {"pods": "1"}, **scope("PriorityClass", "DoesNotExist")}, BARE, id="no class"),
    ],
)
def test_a_quota_allows_as_many_as_the_api_server_admits(
    cluster: Cluster,
    tmp_path: Path,
    of_quota: Mapping[str, Any],
    spec: Mapping[str, Any],
    request: pytest.FixtureRequest,
) -> None:
    namespace = "quota-" + request.node.callspec.id.replace(" ", "-")
    usual = {"metadata": {"name": "usual"}, "value": 1, "globalDefault": True}
    if not any(each["metadata"]["name"] == "usual" for each in cluster.api.items(CLASSES)):
        cluster.api.create_priority(usual)
    cluster.api.create(NAMESPACES, {"metadata": {"name": namespace}})
    status = {"hard": of_quota["hard"], "used": dict.fromkeys(of_quota["hard"], "0")}
    quota = {"metadata": {"name": "q", "namespace": namespace}, "spec": of_quota, "status": status}
    made = cluster.api.request("POST", f"{NAMESPACES}/{namespace}/resourcequotas?dryRun=All", quota)
    # By two requests, admission could know it by its watch without a status, and admit all.
    cluster.plane.store([(f"resourcequotas/{namespace}/q", {**made, "status": status})])
    admitted = 0
    while admitted < MOST and _is_admitted(cluster, namespace, f"p{admitted}", spec):
        admitted += 1
    room = node("n1").allocatable(cpu="99", memory="99Gi", pods=99, **_ROOM)
    kinds = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", **usual}
    path = dump(tmp_path, room, kinds, {"kind": "ResourceQuota", "apiVersion": "v1", **quota})
    manifest = tmp_path / "pod.json"
    named = {"metadata": {"name": "p", "namespace": namespace, "labels": {"app": "p"}}}
    manifest.write_text(json.dumps({"kind": "Pod", "apiVersion": "v1", **named, "spec": spec}))
    _, found = response("capacity", "-f", manifest, "--replicas", MOST, "--snapshot", path)
    assert found["capacity"]["placed"] == admitted
    assert bool(found["capacity"]["quota"]) == (admitted < MOST)


def _is_admitted(cluster: Cluster, namespace: str, name: str, spec: Mapping[str, Any]) -> bool:
    try:
        cluster.api.create(pods_path(namespace), {"metadata": {"name": name}, "spec": spec})
    except httpx.HTTPStatusError as error:
        if error.response.status_code != httpx.codes.FORBIDDEN or "quota" not in error.response.text:
            raise
        return False
    return True
