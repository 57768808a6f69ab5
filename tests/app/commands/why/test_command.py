"""`kindred why` as a command: through the service proxy, with a listed cluster alone, and its errors."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI

from app.api_server.client import ApiClient
from app.api_server.credentials import load_credentials
from app.commands.why.kubeconfig import _own_token
from app.commands.why.service import Caller
from tests.app.admin.limited_callers import ReviewingServer, limited_service
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.invoked import kindred
from tests.app.commands.why.cluster import SmallCluster
from tests.app.commands.why.command_runs import Why, admin_app, mirror, service
from tests.builders import make_node, make_pod

TOKEN = "read-0nly"  # noqa: S105 - of a test


# Without a service.


def test_without_a_service_the_cluster_is_listed_and_every_rule_judged(cluster: SmallCluster, why: Why) -> None:
    nowhere = why("large")
    assert nowhere.exit_code == 1, nowhere.stderr
    assert nowhere.stdout.startswith("Pod shop/large fits on none of 3 nodes.\n")
    assert "3  Insufficient cpu" in nowhere.stdout
    assert "no service with the label app.kubernetes.io/name=kindred in namespace kindred" in nowhere.stderr
    assert f"Listed 3 nodes, 3 pods, 1 namespaces of {cluster.url}" in nowhere.stderr
    assert {"nodes", "pods", "namespaces", "csinodes", "persistentvolumeclaims"} <= {*cluster.lists()}


def test_it_ends_with_0_if_the_pod_fits_somewhere(why: Why) -> None:
    somewhere = why("pod/small", "--local", "-o", "json")
    assert somewhere.exit_code == 0, somewhere.stderr
    reported = json.loads(somewhere.stdout)
    assert (reported["summary"]["nodes"], reported["summary"]["fit"]) == (3, 2)
    assert reported["kubernetes"]["told"] == "v1.36.2"


def test_the_namespace_is_that_of_the_context(cluster: SmallCluster, tmp_path: Path) -> None:
    file = tmp_path / "of-shop"
    write_kubeconfig(file, cluster.url)
    file.write_text(file.read_text().replace("cluster: c\n", "cluster: c\n    namespace: shop\n"))
    assert Why(str(file))("large", "--local", namespace="").exit_code == 1


def test_a_manifest_without_a_namespace_is_in_that_of_the_context(cluster: SmallCluster, tmp_path: Path) -> None:
    """As for `kubectl create -f`: its claim, and the pods that its terms count, are those of that namespace."""
    file, manifest = tmp_path / "of-shop", tmp_path / "pod.json"
    write_kubeconfig(file, cluster.url)
    file.write_text(file.read_text().replace("cluster: c\n", "cluster: c\n    namespace: shop\n"))
    pod = make_pod("new").requests(cpu="3").obj()
    del pod["metadata"]["namespace"]
    manifest.write_text(json.dumps({"kind": "Pod", **pod}))
    reported = [Why(str(file))("-f", manifest, "--local", namespace=each).stdout for each in ("", "ops")]
    assert [each[:12].strip() for each in reported] == ["Pod shop/new", "Pod ops/new"]


def test_of_a_member_of_a_group_the_state_of_its_group_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.git_version = "v1.37.1"
    member = make_pod("m0").in_namespace("shop").in_scheduling_group("team").phase("Pending")
    cluster.add("pods", member.scheduler("a").obj(), replace(member.scheduler("b"), name="m1").obj())
    cluster.add("podgroups", {"metadata": {"name": "team", "namespace": "shop"}})
    result = why("m0", "--local")
    text = " ".join(result.stdout.split())
    assert "Placed together with its group, by kube-scheduler" in text
    assert (
        "shop/team is scheduling: its members name the schedulers a and b: kube-scheduler places no such group" in text
    )
    assert "Not judged: GangScheduling: " in text


def test_podgroups_need_no_right(cluster: SmallCluster, why: Why) -> None:
    cluster.forbidden.add("list podgroups")
    assert why("small", "--local").exit_code == 0
    cluster.add("pods", make_pod("m0").in_namespace("shop").in_scheduling_group("team").phase("Pending").obj())
    result = why("m0", "--local", "-o", "json")
    reason = json.loads(result.stdout)["unit"]["reason"]
    assert reason.startswith(
        "its minimum is unknown: podgroups.scheduling.k8s.io: not synced (forbidden); the RBAC rule that is missing: "
    )


def test_claims_need_no_right(cluster: SmallCluster, why: Why) -> None:
    claiming = make_pod("claiming").in_namespace("shop").phase("Pending").obj()
    claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    cluster.add("pods", claiming)
    assert why("claiming", "--local").stdout.startswith("Pod shop/claiming fits on none of 3 nodes.\n")
    plain = why("small", "--local").stdout
    cluster.forbidden.add("list resourceclaims")
    text = " ".join(why("claiming", "--local").stdout.split())
    assert "may fit on" in text
    assert "Not judged: DynamicResources: resourceclaims: not synced (forbidden); the RBAC rule" in text
    assert why("small", "--local").stdout == plain


def test_all_rights_that_listing_needs_are_told_at_once(cluster: SmallCluster, why: Why) -> None:
    cluster.forbidden |= {"list nodes", "list pods", "list csinodes"}
    result = why("large", "--local")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "Error: dev may not list nodes, pods, csinodes in the whole cluster. Add to a ClusterRole:",
        '  - {apiGroups: [""], resources: ["nodes", "pods"], verbs: ["list"]}',
        '  - {apiGroups: ["storage.k8s.io"], resources: ["csinodes"], verbs: ["list"]}',
    ]


# Through the service proxy.


def test_a_service_with_an_admin_port_is_asked_through_the_proxy(cluster: SmallCluster, why: Why) -> None:
    cluster.admin = admin_app()
    cluster.add("services", service("kindred", {"name": "extender", "port": 8888}))
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    result = why("large")
    assert result.exit_code == 1, result.stderr
    assert result.stdout.startswith("Pod shop/large fits on none of 3 nodes.\n")
    assert result.stderr == "Calling service kindred/kindred-admin through the API server's proxy\n"
    assert "nodes" not in cluster.lists()
    assert cluster.requested[-1].path == "/api/v1/namespaces/kindred/services/kindred-admin:admin/proxy/explain"


def test_a_service_that_speaks_tls_is_asked_so(cluster: SmallCluster, why: Why) -> None:
    cluster.admin = admin_app()
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890, "appProtocol": "https"}))
    assert why("small").exit_code == 0
    assert "/services/https:kindred-admin:admin/proxy/" in cluster.requested[-1].path


def test_the_token_goes_where_the_proxy_lets_it_through(cluster: SmallCluster, why: Why, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    cluster.admin = admin_app(tmp_path / "token")
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    rejected = why("large", "--service", "kindred-admin")
    assert (rejected.exit_code, rejected.stdout) == (2, "")
    assert "401 Unauthorized: --token-file has to hold" in rejected.stderr
    assert why("large", "--service", "kindred/kindred-admin", "--token-file", tmp_path / "token").exit_code == 1


def test_a_service_that_hides_names_says_which_option_shows_who_asks(cluster: SmallCluster, why: Why) -> None:
    cluster.admin = limited_service(mirror(), ReviewingServer({})).admin
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    rejected = why("large")
    assert (rejected.exit_code, rejected.stdout) == (2, "")
    assert rejected.stderr.splitlines()[-1] == (
        "Error: pod: no caller is known: send a token of the Kubernetes API in the header Kindred-Caller-Token, or use "
        "a token of an admin; --send-token sends the token of your kubeconfig to the service, which you must trust; "
        "--local calls no service"
    )
    assert "Kindred-Caller-Token" not in cluster.requested[-1].headers


def test_only_a_token_can_be_sent_and_only_ones_own(cluster: SmallCluster, why: Why) -> None:
    cluster.admin = admin_app()
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    tokenless = why("large", "--send-token")
    assert tokenless.exit_code == 2
    assert "Error: --send-token: your kubeconfig logs in without a token" in tokenless.stderr
    impersonating = why("large", "--send-token", "--as", "jane")
    assert impersonating.exit_code == 2
    assert "--send-token: the token is your own, not the one of --as" in impersonating.stderr
    local = why("large", "--send-token", "--local")
    assert local.exit_code == 2
    assert "--send-token" in local.stderr


def test_an_unknown_node_is_told_whoever_answers(cluster: SmallCluster, why: Why) -> None:
    alone = why("large", "--local", "--why-not", "n9")
    cluster.admin = admin_app()
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    requested = why("large", "--why-not", "n9")
    for result in (alone, requested):
        assert result.exit_code == 2
        assert result.stderr.splitlines()[-1].startswith("Error: node: node n9: ")


def test_a_right_to_the_proxy_that_is_missing_is_told_and_the_cluster_listed(cluster: SmallCluster, why: Why) -> None:
    cluster.forbidden.add("create services/proxy kindred")
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    listed = why("large")
    assert listed.exit_code == 1
    reported = "Listing the cluster, because the service cannot be called: dev may not create services/proxy"
    assert reported in listed.stderr
    required = why("large", "--service", "kindred-admin")
    assert required.exit_code == 2
    assert required.stderr.splitlines()[-2:] == [
        "Error: dev may not create services/proxy in namespace kindred. Add to a Role in namespace kindred:",
        '  - {apiGroups: [""], resources: ["services/proxy"], verbs: ["create"]}',
    ]


def test_a_service_without_a_ready_pod_is_told(cluster: SmallCluster, why: Why) -> None:
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    result = why("large", "--service", "kindred-admin")
    assert result.exit_code == 2
    assert "no endpoints available" in result.stderr


def test_another_service_is_told_from_kindred(cluster: SmallCluster, why: Why) -> None:
    cluster.admin = FastAPI()
    cluster.admin.post("/explain")(lambda: ["hello"])
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    result = why("large", "--service", "kindred-admin")
    assert result.exit_code == 2
    assert result.stderr.endswith("through the API server's proxy: is that the admin port?\n")


@pytest.mark.parametrize("token", [b"\xff", None], ids=["no-text", "no-file"])
def test_a_token_that_cannot_be_read_is_told(
    why: Why, cluster: SmallCluster, tmp_path: Path, token: bytes | None
) -> None:
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    if token is not None:
        (tmp_path / "token").write_bytes(token)
    result = why("large", "--token-file", tmp_path / "token")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{tmp_path}/token" in result.stderr


# As whom, and what cannot be.


def test_impersonation_is_that_of_kubectl(cluster: SmallCluster, why: Why) -> None:
    assert why("large", "--local", "--as", "jane", "--as-group", "a", "--as-group", "b").exit_code == 1
    for requested in cluster.requested:
        assert (requested.headers["impersonate-user"], requested.headers["impersonate-group"]) == (["jane"], ["a", "b"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "a pod that does not exist; name another namespace with -n, or look in all with -A"),
        (["deploy/web", "--local"], "Deployment shop/web: no pending pod is of it; its manifest"),
        (["large", "--snapshot", "/dev/null"], "--kubeconfig is for a kubeconfig, not for a dump."),
        (["large", "--server", "http://x"], "--kubeconfig is for a kubeconfig, not for --server."),
        (["large", "--skip-invalid"], "--skip-invalid is for a dump, not for a kubeconfig."),
        (["large", "-A"], "Give either -n or -A."),
        (["large", "--local", "--service", "x"], "--service is for a service, not for --local."),
        (["large", "--profile", "full"], "--profile is for --local: a service has its settings."),
        (["large", "--local", "--profile", "no"], "unknown plugin no"),
        (["large", "--as-group", "g"], "--as-group: needs --as"),
        (["large", "--service", "a/b/c"], "--service a/b/c: expected [NAMESPACE/]NAME"),
        (["large", "--service", "none"], "no service kindred/none; without --service the cluster is listed"),
        (["large", "--context", "none"], " list; instead of a kubeconfig, take --snapshot FILE or --server URL"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_cannot_be_explained_is_an_error_line_and_exit_status_2(
    why: Why, arguments: list[str], message: str
) -> None:
    result = why(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_workload_is_its_pending_pod_and_gates_are_told(cluster: SmallCluster, why: Why) -> None:
    gated = make_pod("gated-1-x").in_namespace("shop").label("pod-template-hash", "1").requests(cpu="3")
    waiting = gated.owned_by("ReplicaSet", "gated-1", "r").phase("Pending").obj()
    waiting["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    cluster.add("pods", waiting)
    for argument in (["deploy/gated"], ["deployment", "gated"]):
        result = why(*argument, "--local")
        assert result.exit_code == 1
        assert result.stdout.startswith("Pod shop/gated-1-x fits on none of 3 nodes.\n")
        assert "before its scheduling gates are removed: example.com/quota" in " ".join(result.stdout.split())


def test_both_names_have_every_source_and_suppositions(cluster: SmallCluster, why: Why, tmp_path: Path) -> None:
    supposing = ("large", "-n", "shop", "--kubeconfig", why.kubeconfig, "--add-node", tmp_path / "n9.json")
    (tmp_path / "n9.json").write_bytes(make_node("n9").allocatable(cpu="4", pods=9).json())
    listed = [kindred(name, *supposing, "--local") for name in ("why", "explain")]
    cluster.admin = admin_app()
    cluster.add("services", service("kindred-admin", {"name": "admin", "port": 8890}))
    called = [kindred(name, *supposing) for name in ("why", "explain")]
    assert {each.exit_code for each in (*listed, *called)} == {0}
    assert {each.stdout.splitlines()[0] for each in (*listed, *called)} == {"Pod shop/large fits on 1 of 4 nodes."}
    assert listed[0].stdout == listed[1].stdout
    demo = [kindred(name, "queue-3", "--demo").stdout for name in ("why", "explain")]
    assert demo[0] == demo[1] != ""


def test_a_pod_on_a_node_is_explained_as_if_it_were_deleted(why: Why) -> None:
    result = why("busy", "--local")
    assert result.exit_code == 0
    assert "Pod shop/busy: it is on n0 already, and is explained as if it were deleted." in result.stdout


def test_the_configuration_of_the_scheduler_says_what_is_off(why: Why, tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]
""",
        "utf-8",
    )
    assert why("large", "--local").exit_code == 1
    result = why("large", "--local", "--scheduler-config", path)
    assert result.exit_code == 0, result.output
    assert "nor judged by Kindred:" in result.stdout
    assert why("large", "--local", "--scheduler-config", tmp_path / "absent").exit_code == 2


def test_whatever_profile_is_given_every_kind_is_listed_that_is_judged(why: Why) -> None:
    result = why("large", "--local", "--profile", "affinity", "-o", "json")
    assert json.loads(result.stdout)["summary"]["not_judged"] == []


@pytest.mark.parametrize("own_token", ["", "my-0wn"])
def test_the_own_token_is_sent_where_that_is_asked_for(tmp_path: Path, own_token: str) -> None:
    config = write_kubeconfig(tmp_path / "of-token", "https://127.0.0.1:6443", user={"token": "my-0wn"})
    credentials = load_credentials(config, None)
    assert asyncio.run(_own_token(credentials)) == "my-0wn"
    caller = Caller(ApiClient(credentials), "read-0nly", None, own_token)
    assert caller.headers == {
        "Kindred-Token": "read-0nly",
        **({"Kindred-Caller-Token": own_token} if own_token else {}),
    }
