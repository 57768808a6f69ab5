"""The cluster of a question is listed with the rights of a kubeconfig; what may not be listed is said."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import budget, deployment, node, replica
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.builders import make_namespace


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        served.add("nodes", node("n1").obj(), node("n2").obj(), node("n3").obj())
        served.add("namespaces", make_namespace("shop").obj())
        served.add("pods", replica("web-1a-x", "n1").obj(), replica("web-1a-y", "n1").obj())
        of = deployment(cpu="3")
        served.add("deployments", {name: of[name] for name in ("metadata", "spec")})  # lists leave out the kind
        served.add("poddisruptionbudgets", budget("web", 1))
        yield served


@pytest.fixture
def kubeconfig(cluster: SmallCluster, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", cluster.url)


def test_owners_and_budgets_are_listed_and_pods_come_again_of_their_template(kubeconfig: str) -> None:
    result = kindred("drain", "n1", "--kubeconfig", kubeconfig, "--orders", "1")
    assert result.exit_code == 0, result.stderr
    assert "The drain of n1 ends in 2 rounds; 2 of 2 pods find a place." in result.stdout
    assert "shop/web-1a-x 1 n2" in " ".join(result.stdout.split())  # 3 cpu each, so one on n2 and one on n3
    assert "shop/web-1a-y 2 n3" in " ".join(result.stdout.split())
    assert "as the running pod" not in result.stdout
    assert "Listed 3 nodes, 2 pods, 1 namespaces, 1 poddisruptionbudgets of http://" in result.stderr


def test_what_may_not_be_listed_is_named_once_for_each_api_group(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.forbidden = {"list deployments", "list daemonsets", "list replicasets", "list storageclasses"}
    text = " ".join(kindred("drain", "n1", "--kubeconfig", kubeconfig).stdout.split())
    rule = 'apiGroups: ["apps"], resources: ["replicasets", "deployments", "daemonsets"], verbs: ["list"]'
    missing = f"replicasets, deployments, daemonsets: forbidden; the RBAC rule that is missing: {rule}"
    assert f"Not judged: {missing}" in text
    assert text.count("Not judged: ") == 2
    assert "as the running pod, no Deployment is at hand" in text


def test_without_pods_there_is_no_answer(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.forbidden = {"list pods"}
    result = kindred("loss", "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert "may not list pods in the whole cluster" in result.stderr
    assert result.stderr.splitlines()[-1] == "Or ask a running service: --server URL"


def test_without_a_kubeconfig_the_other_sources_are_named(tmp_path: Path) -> None:
    result = kindred("loss", "--kubeconfig", tmp_path / "none")
    assert result.exit_code == 2
    assert "instead of a kubeconfig, take --snapshot FILE or --demo" in result.stderr


def test_the_plugin_of_kubectl_and_the_command_have_the_same_default(
    cluster: SmallCluster, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    assert kindred("drain", "n1").exit_code == 0
    assert cluster.lists()[:2] == ["nodes", "pods"]


def test_the_schedulers_configuration_names_the_profiles(kubeconfig: str, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}, {schedulerName: mine}]\n"
    )
    result = kindred("drain", "n1", "--kubeconfig", kubeconfig, "--scheduler-config", config)
    assert "rules of default-scheduler, mine" in " ".join(result.stdout.split())
