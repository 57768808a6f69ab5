"""`--dry-run-create` beside a real API server: what admission adds to the pods that come again, and what it refuses."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e.api import NAMESPACES, Manifest, pods_path
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN
from tests.e2e.kindred import ROOT, write_token
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import on, pod

SHOP: Final = "shop"
PODS: Final = pods_path(SHOP)
LABELS: Final = {"app": "web"}
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_QUOTAS: Final = f"{NAMESPACES}/{SHOP}/resourcequotas"
_LIMITS: Final = f"{NAMESPACES}/{SHOP}/limitranges"


@pytest.fixture
def kubeconfig(cluster: Cluster) -> Path:
    """Make two nodes, and a ReplicaSet of two pods on the first one."""
    cluster.add_nodes(2)
    cluster.api.create(NAMESPACES, {"metadata": {"name": SHOP}})
    template = {"metadata": {"labels": LABELS}, "spec": pod("web")["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    owner = cluster.api.create(
        f"/apis/apps/v1/namespaces/{SHOP}/replicasets", {"metadata": {"name": "web"}, "spec": spec}
    )
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    reference = {**owned, "name": "web", "uid": owner["metadata"]["uid"]}
    for name in ("web-0", "web-1"):
        made = on(pod(name, LABELS), "node-0000")
        cluster.api.create(PODS, {**made, "metadata": {**made["metadata"], "ownerReferences": [reference]}})
    return cluster.plane.kubeconfig("asker", client=ADMIN)


def moves(kubeconfig: Path, *options: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what becomes of the pods of the first node, and what is not known of them."""
    command = [sys.executable, "-m", "app.commands.cli", "drain", "node-0000", "-o", "json", *options]
    done = subprocess.run(  # noqa: S603  # our own arguments
        [*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    response = json.loads(done.stdout)
    return [each["move"] for each in response["pods"]], [each["why"] for each in response["assumed"]["uncertainties"]]


def create_policy(cluster: Cluster) -> None:
    """Let the API server add a node selector that no node has to new pods of the workload, and wait until it does."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    adds = '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"pool": "none"}}]'
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": adds}}],
    }
    cluster.api.create(f"{_ADMISSION}/mutatingadmissionpolicies", {"metadata": {"name": "pool"}, "spec": spec})
    binding = {"metadata": {"name": "pool"}, "spec": {"policyName": "pool"}}
    cluster.api.create(f"{_ADMISSION}/mutatingadmissionpolicybindings", binding)

    def works() -> bool:
        with suppress(httpx.HTTPStatusError):  # of a quota that was deleted a moment ago
            made: Manifest = cluster.api.request("POST", f"{PODS}?dryRun=All", pod("probe"))
            return "nodeSelector" in made["spec"]
        return False

    wait_until(works, PATIENCE, "the policy counts")


@pytest.mark.long
def test_what_admission_adds_and_refuses_is_the_api_servers(cluster: Cluster, kubeconfig: Path) -> None:
    cluster.admit_kindred({"KINDRED_PROFILE": "full"})  # which may not create pods
    limited = cluster.plane.kubeconfig("limited", token_file=write_token(cluster.api, cluster.plane.folder / "token"))
    unknown, why = moves(limited, "--dry-run-create")
    assert [each["node"] for each in unknown] == ["node-0001"] * 2
    assert "as made here and not by the API server: pods may not be created in namespace shop" in why[0]
    first, why = moves(kubeconfig, "--dry-run-create")
    assert ([each["node"] for each in first], why) == (["node-0001"] * 2, [])

    quota = {"hard": {"pods": "2"}}
    cluster.api.create(
        _QUOTAS, {"metadata": {"name": "two"}, "spec": quota, "status": {**quota, "used": {"pods": "2"}}}
    )
    full, why = moves(kubeconfig, "--dry-run-create")
    assert [each["node"] for each in full] == ["node-0001"] * 2  # the present pods make room
    assert why == ["as made here and not by the API server: for a quota, the present pod counts beside the new one"]
    cluster.api.delete(f"{_QUOTAS}/two")

    create_policy(cluster)
    assert [each["node"] for each in moves(kubeconfig)[0]] == ["node-0001"] * 2
    for each in moves(kubeconfig, "--dry-run-create")[0]:
        assert each["rejected"]["reasons"] == {
            "node(s) didn't match Pod's node affinity/selector": 1,
            "node(s) were unschedulable": 1,
        }

    most = {"type": "Container", "max": {"cpu": "10m"}}
    cluster.api.create(_LIMITS, {"metadata": {"name": "tiny"}, "spec": {"limits": [most]}})
    for each in moves(kubeconfig, "--dry-run-create")[0]:
        assert each["rejected"]["fate"] == "denied"
        assert "must be less than or equal to cpu limit of 10m" in each["rejected"]["why"]
    assert {each["metadata"]["name"] for each in cluster.api.items(PODS)} == {"web-0", "web-1"}
