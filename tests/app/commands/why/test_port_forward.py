"""`kindred why` of a service without an admin port: by a port-forward, and its errors."""

import json
import socket
import subprocess
from pathlib import Path

import pytest

from tests.app.commands.running import Running, running
from tests.app.commands.why.cluster import SmallCluster
from tests.app.commands.why.command_runs import WITHOUT_ADMIN_PORT, Why, admin_app, replica, service
from tests.app.commands.why.conftest import Kubectl
from tests.openssl import Authority


def port_of(server: Running) -> int:
    return int(server.url.rpartition(":")[2])


def test_a_service_without_an_admin_port_is_asked_by_a_port_forward(
    cluster: SmallCluster, why: Why, kubectl: Kubectl
) -> None:
    cluster.add("pods", replica("kindred-a", is_ready=False), replica("kindred-b"))
    with running(admin_app()) as server:
        kubectl.forwards_to(port_of(server))
        result = why("large", "--why-not", "n1", "-o", "json", "--as", "jane", "--as-group", "a", "--as-group", "b")
    assert result.exit_code == 1, result.stderr
    reported = json.loads(result.stdout)
    assert [each["decision"]["node"] for each in reported["nodes"]] == ["n1"]
    assert result.stderr == "Calling pod kindred/kindred-b by a port-forward to port 8890\n"
    options = f"--kubeconfig={why.kubeconfig} --as=jane --as-group=a --as-group=b"
    target = "--namespace=kindred pod/kindred-b :8890 --address=127.0.0.1"
    assert kubectl.requested == [f"port-forward {options} {target}"]


def test_nothing_is_forwarded_any_more_afterwards(cluster: SmallCluster, why: Why, kubectl: Kubectl) -> None:
    cluster.add("pods", replica("kindred-a"))
    with running(admin_app()) as server:
        kubectl.forwards_to(port_of(server))
        assert why("large").exit_code == 1
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)  # noqa: S607  # of the system
    assert str(kubectl.folder) not in listing.stdout


def test_a_pod_whose_admin_port_speaks_tls_is_asked_so(
    cluster: SmallCluster, why: Why, kubectl: Kubectl, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=DNS:kindred.kindred.svc")
    cluster.add("pods", replica("kindred-a"))
    with running(admin_app(), authority) as server:
        kubectl.forwards_to(port_of(server))
        assert why("large", "--service", "kindred").exit_code == 1
        assert why("large", "--service", "kindred", "--ca-file", authority.crt()).exit_code == 1
        authority.make("another", "basicConstraints=critical,CA:TRUE", signed=False)
        rejected = why("large", "--service", "kindred", "--ca-file", authority.crt("another"))
    assert rejected.exit_code == 2
    assert "certificate verify failed" in rejected.stderr


def test_a_port_on_which_nobody_listens_is_told_and_the_cluster_listed(
    cluster: SmallCluster, why: Why, kubectl: Kubectl
) -> None:
    cluster.add("pods", replica("kindred-a"))
    listed = why("large", "--admin-port", "8891")
    assert listed.exit_code == 1
    assert "pod kindred/kindred-a by a port-forward to port 8891: an error occurred forwarding: " in listed.stderr
    assert "Connection refused" in listed.stderr
    assert kubectl.requested[-1].endswith(" pod/kindred-a :8891 --address=127.0.0.1")


@pytest.mark.parametrize(
    ("verb", "resource", "rule"),
    [
        ("create", "pods/portforward", 'resources: ["pods/portforward"], verbs: ["get", "create"]'),
        ("get", "pods", 'resources: ["pods"], verbs: ["get"]'),
    ],
)
def test_a_right_that_kubectl_misses_is_told(  # noqa: PLR0913, PLR0917  # fixtures, and columns of a table
    cluster: SmallCluster, why: Why, kubectl: Kubectl, verb: str, resource: str, rule: str
) -> None:
    cluster.add("pods", replica("kindred-a"))
    kubectl.complains(
        f'Error from server (Forbidden): pods "kindred-a" is forbidden: User "dev" cannot {verb} resource '
        f'"{resource}" in API group "" in the namespace "kindred"\n'
    )
    result = why("large", "--service", "kindred")
    assert result.exit_code == 2
    assert "Error: dev may not " in result.stderr
    assert f'- {{apiGroups: [""], {rule}}}' in result.stderr


def test_without_kubectl_that_is_told(cluster: SmallCluster, why: Why, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.add("services", WITHOUT_ADMIN_PORT)
    cluster.add("pods", replica("kindred-a"))
    monkeypatch.setenv("PATH", "/nowhere")
    reported = "pod kindred/kindred-a by a port-forward to port 8890: kubectl is not in the PATH"
    required = why("large", "--service", "kindred")
    assert (required.exit_code, reported in required.stderr) == (2, True)
    assert reported in why("large").stderr


def test_a_port_that_does_not_answer_in_time_is_told(
    cluster: SmallCluster, why: Why, kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.commands.why.service._SECONDS", 2.0)
    cluster.add("pods", replica("kindred-a"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubectl.forwards_to(silent.getsockname()[1])
        result = why("large", "--service", "kindred")
    assert (result.exit_code, "no response within 2 s" in result.stderr) == (2, True)


def test_a_service_that_leads_nowhere_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", WITHOUT_ADMIN_PORT)
    odd = service("odd", {"name": "extender", "port": 8888})
    cluster.add("services", {**odd, "spec": {**odd["spec"], "selector": None}})
    result = why("large", "--service", "odd")
    assert (result.exit_code, "has neither a port 'admin' nor a selector" in result.stderr) == (2, True)
    cluster.objects["services"] = cluster.objects["services"][-1:]
    assert "no service with the label" in why("large").stderr, "it is not one to be found, either"


def test_who_may_not_look_for_a_service_lists_the_cluster(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", WITHOUT_ADMIN_PORT)
    cluster.forbidden.add("list services kindred")
    result = why("large")
    assert result.exit_code == 1
    assert "Listing the cluster: this user may not list services in namespace kindred" in result.stderr


def test_a_service_without_a_running_pod_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", WITHOUT_ADMIN_PORT)
    result = why("large", "--service", "kindred")
    assert (result.exit_code, result.stderr) == (2, "Error: service kindred/kindred: it has no running pod\n")
