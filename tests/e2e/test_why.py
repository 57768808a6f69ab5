"""`kubectl kindred why` beside a real kube-apiserver and kube-scheduler, by a user who has few rights."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.e2e.api import Manifest
from tests.e2e.cluster import NAMESPACE, Cluster
from tests.e2e.kindred import MANIFESTS, ROOT
from tests.e2e.programs import PATIENCE, free_port, wait_until
from tests.e2e.scheduler import IN_TREE, configuration
from tests.e2e.shapes import ZONE, on, pod, required, term

PLUGIN: Final = Path(sys.executable).with_name("kubectl-kindred")
USER: Final = "dev"
KINDRED: Final = "kindred"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_SUBJECT: Final = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
_LABELS: Final = {"app.kubernetes.io/name": KINDRED}
_POD: Final = "kindred-0"
TOKEN: Final = "read-0nly"  # noqa: S105 - of a test


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster) -> Path:
    """Make a user who may do nothing yet."""
    cluster.plane.authority.issue_client(USER, USER)
    return cluster.plane.kubeconfig(USER, client=USER)


@pytest.fixture(autouse=True)
def _without_rights(cluster: Cluster) -> Iterator[None]:
    yield
    for kind in ("clusterrolebindings", "clusterroles"):
        cluster.api.delete(f"/apis/{_RBAC}/{kind}/{USER}")
    for namespace in (NAMESPACE, KINDRED):
        for kind in ("rolebindings", "roles"):
            cluster.api.delete(f"/apis/{_RBAC}/namespaces/{namespace}/{kind}/{USER}")


def allow(cluster: Cluster, rules: Sequence[Manifest], namespace: str = "") -> None:
    """Give the user these rules, in a namespace or in the whole cluster."""
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": USER, **({"namespace": namespace} if namespace else {})}
    reference = {"kind": kind, "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    cluster.api.apply({"apiVersion": _RBAC, "kind": kind, "metadata": metadata, "rules": list(rules)})
    cluster.api.apply(
        {
            "apiVersion": _RBAC,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [_SUBJECT],
        }
    )


def why(kubeconfig: Path, *arguments: str, namespace: str = NAMESPACE) -> "subprocess.CompletedProcess[str]":
    command = [str(PLUGIN), "why", *arguments, "--kubeconfig", str(kubeconfig), "-n", namespace]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
    return subprocess.run(  # noqa: S603 - our own program
        command, capture_output=True, text=True, check=False, timeout=120, env={**environment, "PYTHONPATH": str(ROOT)}
    )


def until(kubeconfig: Path, status: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command until it ends with a status: a role counts some moments after it is made."""
    done = why(kubeconfig, *arguments)
    for _ in range(20):
        if done.returncode == status:
            break
        time.sleep(0.5)
        done = why(kubeconfig, *arguments)
    assert done.returncode == status, done.stderr
    return done


def summary(done: "subprocess.CompletedProcess[str]", status: int = 1) -> dict[str, Any]:
    assert done.returncode == status, done.stderr
    reported: dict[str, Any] = json.loads(done.stdout)["summary"]
    return reported


def scheduler_message(cluster: Cluster, name: str) -> str:
    """Return what kube-scheduler says of a pending pod, as soon as it has tried it."""
    wait_until(lambda: cluster.condition(name).get("reason") == "Unschedulable", PATIENCE, f"{name} tried")
    return str(cluster.condition(name)["message"])


def test_the_rules_that_it_names_are_enough_to_ask_alone_and_it_says_what_kube_scheduler_says(
    cluster: Cluster, kubeconfig: Path
) -> None:
    cluster.add_nodes(6)
    cluster.start_scheduler(configuration(IN_TREE, ""))
    web = {"app": "web"}
    apart = required("podAntiAffinity", term(web, ZONE))
    for number in range(3):
        cluster.place(pod(f"web-{number}", web, affinity=apart))
    waiting = {
        "large": pod("large", cpu="33"),
        "fourth": pod("fourth", web, affinity=apart),
        "picky": pod("picky", nodeSelector={"disk": "ssd"}),
    }
    cluster.create_pods(waiting.values())
    messages = {name: scheduler_message(cluster, name) for name in waiting}

    rejected = why(kubeconfig, "large", "--local")
    assert rejected.returncode == 2
    assert f"{USER} may not list nodes, pods, " in rejected.stderr
    allow(cluster, rules_in(rejected.stderr))
    wait_until(
        lambda: "may not list" not in why(kubeconfig, "large", "--local").stderr, PATIENCE, "the ClusterRole counts"
    )

    for name, message in messages.items():
        reported = summary(why(kubeconfig, name, "--local", "-o", "json"))
        assert reported["not_judged"] == []
        # What follows in the scheduler's message is about preemption.
        assert message.startswith(reported["message"].removesuffix(".")), (name, message, reported["message"])


def rules_in(text: str) -> list[dict[str, Any]]:
    """Return the rules that a message names."""
    rules: list[dict[str, Any]] = yaml.safe_load(
        "\n".join(line for line in text.splitlines() if line.startswith("  - "))
    )
    return rules


def test_a_pod_that_fits_is_told_to_fit_and_one_that_is_bound_as_if_it_were_deleted(
    cluster: Cluster, kubeconfig: Path
) -> None:
    cluster.add_nodes(2)
    allow(cluster, [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}])
    cluster.create_pods([pod("next"), on(pod("bound"), "node-0000")])
    wait_until(lambda: why(kubeconfig, "next", "--local").returncode == 0, PATIENCE, "the ClusterRole counts")
    assert summary(why(kubeconfig, "next", "--local", "-o", "json"), 0)["fit"] == 2
    bound = why(kubeconfig, "pod/bound")
    assert bound.returncode == 0
    assert bound.stdout.startswith(f"Pod {NAMESPACE}/bound: it is on node-0000 already, and is explained as if it")


def test_through_the_proxy_of_the_api_server_with_the_role_of_the_manifests(
    cluster: Cluster, kubeconfig: Path, tmp_path: Path
) -> None:
    address = own_address()
    cluster.add_nodes(3)
    cluster.create_pods([pod("large", cpu="33")])
    (tmp_path / "token").write_text(TOKEN)
    port = free_port()
    cluster.start_kindred(
        {"KINDRED_ADMIN": f"{address}:{port}", "KINDRED_ADMIN_READ_TOKEN_FILE": str(tmp_path / "token")}
    )
    folder = MANIFESTS / "components" / "admin-service"
    service = yaml.safe_load((folder / "service.yaml").read_text("utf-8"))
    service["metadata"]["labels"] = _LABELS
    del service["spec"]["selector"]  # there is no pod here, but an address
    cluster.api.apply(service)
    serve_at(cluster, service, address, port)
    role = yaml.safe_load((folder / "role.yaml").read_text("utf-8"))
    allow(cluster, role["rules"], KINDRED)
    token = ("--token-file", str(tmp_path / "token"))
    required = ("large", "--service", "kindred-admin", *token, "-o", "json")
    requested = until(kubeconfig, 1, *required)
    assert summary(requested)["nodes"] == 3
    assert requested.stderr == "Calling service kindred/kindred-admin through the API server's proxy\n"
    without = why(kubeconfig, "large", "--service", "kindred-admin")
    assert (without.returncode, without.stdout) == (2, "")
    assert "401 Unauthorized: --token-file has to hold" in without.stderr


def test_the_rights_that_kubectl_needs_for_a_port_forward_are_told(cluster: Cluster, kubeconfig: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl in the PATH")
    cluster.add_nodes(1)
    cluster.create_pods([pod("large", cpu="33")])
    add_pod(cluster, "node-0000")
    service = yaml.safe_load((MANIFESTS / "base" / "service.yaml").read_text("utf-8"))
    service["metadata"]["labels"] = _LABELS
    cluster.api.apply(service)
    rules: list[dict[str, Any]] = [
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    required = ("large", "--service", KINDRED)
    for resource in ('["pods"], verbs: ["get"]', '["pods/portforward"]'):
        allow(cluster, rules, KINDRED)
        named = f'{{apiGroups: [""], resources: {resource}'
        wait_until(partial(is_reported, kubeconfig, named, *required), PATIENCE, "the roles count")
        rules += rules_in(why(kubeconfig, *required).stderr)
    allow(cluster, rules, KINDRED)
    # Then the API server finds no kubelet.
    no_kubelet = f"pod {KINDRED}/{_POD} by a port-forward to port 8890: error: "
    wait_until(partial(is_reported, kubeconfig, no_kubelet, *required), PATIENCE, "the roles count")


def is_reported(kubeconfig: Path, text: str, *arguments: str) -> bool:
    return text in why(kubeconfig, *arguments).stderr


def serve_at(cluster: Cluster, service: Manifest, address: str, port: int) -> None:
    """Let a Service without a selector lead to a pod's address, as Endpoints and as an EndpointSlice.

    The API server is a proxy for addresses of pods alone (pkg/registry/core/service/storage, isValidAddress).
    """
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    add_pod(cluster, "node-0000", podIP=address, podIPs=[{"ip": address}])
    target = {"kind": "Pod", "namespace": namespace, "name": _POD}
    endpoints = {
        "metadata": {"name": name, "namespace": namespace},
        "subsets": [{"addresses": [{"ip": address, "targetRef": target}], "ports": [{"name": "admin", "port": port}]}],
    }
    cluster.api.create(f"/api/v1/namespaces/{namespace}/endpoints", endpoints)
    labels = {"kubernetes.io/service-name": name}
    cluster.api.apply(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": f"{name}-1", "namespace": namespace, "labels": labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}, "targetRef": target}],
            "ports": [{"name": "admin", "port": port, "protocol": "TCP"}],
        }
    )


def add_pod(cluster: Cluster, node_name: str, **status: object) -> None:
    """Make a replica that runs on a node, in the place of the one of another test."""
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], **status}
    path = f"/api/v1/namespaces/{KINDRED}/pods"
    cluster.api.delete(f"{path}/{_POD}")
    manifest = pod(_POD, _LABELS, securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})
    # As the namespace wants it (Pod Security Standard `restricted`).
    container = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    manifest["spec"]["containers"][0]["securityContext"] = container
    cluster.api.create(path, {**on(manifest, node_name), "status": ready})


def own_address() -> str:
    """Return an address of this machine that others would reach: the API server is no proxy for the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            pytest.skip("this machine has no address but the loopback")
