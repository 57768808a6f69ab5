"""`kindred why` by a port-forward: a Service without an admin port, its pods, and missing rights."""

import json
from pathlib import Path

from tests.app.commands.running import running
from tests.app.commands.why.cluster import SmallCluster
from tests.app.commands.why.command_runs import Why, admin_app, replica, service
from tests.openssl import Authority


def test_a_service_without_an_admin_port_is_asked_by_a_port_forward(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    cluster.add("pods", replica("kindred-a", is_ready=False), replica("kindred-b"))
    with running(admin_app()) as server:
        cluster.admin_port = int(server.url.rpartition(":")[2])
        result = why("large", "--why-not", "n1", "-o", "json")
    assert result.exit_code == 1, result.stderr
    told = json.loads(result.stdout)
    assert [each["decision"]["node"] for each in told["nodes"]] == ["n1"]
    assert result.stderr == "Calling pod kindred/kindred-b by a port-forward\n"
    assert cluster.asked[-1].path == "/api/v1/namespaces/kindred/pods/kindred-b/portforward"
    assert cluster.asked[-1].query == {"ports": "8890"}


def test_a_pod_whose_admin_port_speaks_tls_is_asked_so(cluster: SmallCluster, why: Why, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=DNS:kindred.kindred.svc")
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    cluster.add("pods", replica("kindred-a"))
    with running(admin_app(), authority) as server:
        cluster.admin_port = int(server.url.rpartition(":")[2])
        assert why("large", "--service", "kindred").exit_code == 1
        assert why("large", "--service", "kindred", "--ca-file", authority.crt()).exit_code == 1
        authority.make("another", "basicConstraints=critical,CA:TRUE", signed=False)
        refused = why("large", "--service", "kindred", "--ca-file", authority.crt("another"))
    assert refused.exit_code == 2
    assert "certificate verify failed" in refused.stderr


def test_a_port_on_which_nobody_listens_is_told_and_the_cluster_listed(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    cluster.add("pods", replica("kindred-a"))
    listed = why("large", "--admin-port", "8891")
    assert listed.exit_code == 1
    assert "an error occurred forwarding 8891" in listed.stderr
    assert "Connection refused" in listed.stderr


def test_the_right_to_forward_that_is_missing_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.forbidden.add("get pods/portforward")
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    cluster.add("pods", replica("kindred-a"))
    result = why("large", "--service", "kindred")
    assert result.exit_code == 2
    assert '- {apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"]}' in result.stderr


def test_a_service_that_leads_nowhere_is_told(cluster: SmallCluster, why: Why) -> None:
    odd = service("odd", {"name": "extender", "port": 8888})
    cluster.add("services", {**odd, "spec": {**odd["spec"], "selector": None}})
    result = why("large", "--service", "odd")
    assert (result.exit_code, "has neither a port 'admin' nor a selector" in result.stderr) == (2, True)
    assert "no service with the label" in why("large").stderr, "it is not one to be found, either"


def test_who_may_not_look_for_a_service_lists_the_cluster(cluster: SmallCluster, why: Why) -> None:
    cluster.forbidden.add("list services kindred")
    result = why("large")
    assert result.exit_code == 1
    assert "Listing the cluster: this user may not list services in namespace kindred" in result.stderr


def test_a_service_without_a_running_pod_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    result = why("large", "--service", "kindred")
    assert (result.exit_code, result.stderr) == (2, "Error: service kindred/kindred: it has no running pod\n")
