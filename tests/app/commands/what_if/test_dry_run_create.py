"""`--dry-run-create`: questions ask the API server for the pods that come again, only with the option."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.invoked import kindred
from tests.app.commands.what_if.asking import budget, deployment, node, replica, response
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.builders import make_namespace

DENIED = 'pods "web-" is forbidden: violates PodSecurity "restricted:latest"'


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        served.add("nodes", node("n1").obj(), node("n2", "b").obj())
        served.add("namespaces", make_namespace("shop").obj())
        served.add("pods", replica("web-1a-x", "n1").obj(), replica("web-1a-y", "n1").obj())
        of = deployment()
        served.add("deployments", {name: of[name] for name in ("metadata", "spec")})
        served.add("poddisruptionbudgets", budget("web", 2))
        yield served


@pytest.fixture
def kubeconfig(cluster: SmallCluster, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", cluster.url)


def created(cluster: SmallCluster) -> int:
    return sum(each.method == "POST" for each in cluster.requested)


def larger(pod: dict[str, Any]) -> dict[str, Any]:
    container = {**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": "3"}}}
    return {**pod, "spec": {**pod["spec"], "containers": [container]}}


@pytest.mark.parametrize(
    "question", [("drain", "n1"), ("loss", "--only", "a"), ("removal", "n1")], ids=lambda each: each[0]
)
def test_the_api_servers_pod_comes_only_if_it_is_asked(
    cluster: SmallCluster, kubeconfig: str, question: tuple[str, ...]
) -> None:
    cluster.admission = larger
    before = kindred(*question, "--kubeconfig", kubeconfig)
    assert (before.exit_code, created(cluster)) == (0, 0)
    text = " ".join(kindred(*question, "--kubeconfig", kubeconfig, "--dry-run-create").stdout.split())
    assert created(cluster) == 1  # for two pods of one template
    assert "Insufficient cpu" in text
    assert "as made here" not in text


@pytest.mark.parametrize(
    "question", [("drain", "n1"), ("loss", "--only", "a"), ("removal", "n1")], ids=lambda each: each[0]
)
def test_a_pod_that_is_refused_is_said_in_the_api_servers_words(
    cluster: SmallCluster, kubeconfig: str, question: tuple[str, ...]
) -> None:
    cluster.admission = lambda _: (403, DENIED)
    result = kindred(*question, "--kubeconfig", kubeconfig, "--dry-run-create", "-o", "wide")
    text = " ".join(result.stdout.split())
    assert DENIED in text
    assert ("not made again" in text) == (question[0] != "removal")
    assert result.exit_code == (0 if question[0] == "loss" else 1)


def test_without_the_right_the_answer_is_as_before_and_says_so(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.forbidden = {"create pods"}
    status, found = response("drain", "n1", "--kubeconfig", kubeconfig, "--dry-run-create")
    assert status == 0
    (uncertainty,) = found["assumed"]["uncertainties"]
    assert uncertainty == {
        "owner": "Deployment shop/web",
        "pods": 2,
        "why": "as made here and not by the API server: pods may not be created in namespace shop",
    }


def test_a_dump_has_no_api_server_and_a_service_does_not_ask_its_own() -> None:
    result = kindred("drain", "node1", "--server", "http://127.0.0.1:9", "--dry-run-create")
    assert result.exit_code == 2
    assert "--dry-run-create is for a cluster that the command reads itself" in result.stderr
    result = kindred("drain", "node1", "--demo", "--dry-run-create")
    assert result.exit_code == 2
    assert "--dry-run-create is for a kubeconfig, not for a dump." in result.stderr
