"""The API server is asked what it would make of pods: with dryRun, once a template, and each response is told apart."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.api_server.client import ApiClient, ApiError
from app.api_server.credentials import load_credentials
from app.simulation import dry_runs
from app.simulation.comes_again import Created
from app.simulation.dry_runs import DryRuns
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.why.cluster import SmallCluster, small_cluster

PODS = "/api/v1/namespaces/shop/pods"


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        yield served


@pytest.fixture
def runs(cluster: SmallCluster, tmp_path: Path) -> Iterator[DryRuns]:
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", cluster.url)

    async def connect() -> ApiClient:
        return ApiClient(load_credentials(kubeconfig, None))

    made = DryRuns(connect)
    yield made
    made.close()


def pod(name: str = "web-0", namespace: str = "shop") -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": {"containers": []}}


def test_a_pod_is_sent_without_its_name_and_nothing_is_stored(cluster: SmallCluster, runs: DryRuns) -> None:
    cluster.admission = lambda sent: {**sent, "spec": {"nodeSelector": {"disk": "ssd"}}}
    (created,) = runs.create_all([pod()])
    assert json.loads(created.stored)["spec"] == {"nodeSelector": {"disk": "ssd"}}
    (sent,) = cluster.requested
    assert (sent.method, sent.path, sent.query) == ("POST", PODS, {"dryRun": "All"})
    body = json.loads(sent.body)
    assert (body["apiVersion"], body["metadata"]) == ("v1", {"namespace": "shop", "generateName": "web-0-"})
    assert cluster.objects["pods"] == []


def test_a_namespace_without_the_right_is_asked_once(cluster: SmallCluster, runs: DryRuns) -> None:
    cluster.forbidden = {"create pods shop"}
    no_right = Created(unknown="pods may not be created in namespace shop")
    assert runs.create_all([pod()]) == [no_right]
    elsewhere = runs.create_all([pod("a"), pod("b", "other"), pod("c")])
    assert [each == no_right for each in elsewhere] == [True, False, True]
    assert [each.path for each in cluster.requested] == [PODS, PODS.replace("shop", "other")]


@pytest.mark.parametrize(
    ("code", "message", "created"),
    [
        (403, 'pods "web-0-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5', None),
        (403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest": host namespaces', "denied"),
        (403, 'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: c', "denied"),
        (422, 'Pod "x" is invalid: spec.containers[0].image: Required value', "denied"),
        (400, 'admission webhook "w.example.com" denied the request: no', "denied"),
        (400, 'admission webhook "w.example.com" does not support dry run', "unknown"),
        (500, 'Internal error occurred: failed calling webhook "w.example.com"', "unknown"),
        (404, 'namespaces "shop" not found', "unknown"),
        (401, "Unauthorized", "unknown"),
        (403, 'pods "x" is forbidden: status unknown for quota: q, resources: pods', "unknown"),
    ],
)
def test_what_the_api_server_says_is_told_apart(
    cluster: SmallCluster, runs: DryRuns, code: int, message: str, created: str | None
) -> None:
    cluster.admission = lambda _: (code, message)
    (found,) = runs.create_all([pod()])
    if created is None:
        assert found == Created(unknown="for a quota, the present pod counts beside the new one")
    else:
        assert (found.denied, found.unknown) == ((message, "") if created == "denied" else ("", message))


def test_the_requests_of_a_question_are_bounded(
    cluster: SmallCluster, runs: DryRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_runs, "MOST", 3)
    limited = DryRuns(runs._connect)  # noqa: SLF001  # another question
    found = [*limited.create_all([pod("a"), pod("b")]), *limited.create_all([pod("c"), pod("d")])]
    assert [bool(each.stored) for each in found] == [True, True, True, False]
    assert found[-1].unknown == "the API server is asked for 3 pods at most"
    assert len(cluster.requested) == 3
    limited.close()


def test_a_pod_that_is_not_asked_for_leaves_a_request_to_others(
    cluster: SmallCluster, runs: DryRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.forbidden = {"create pods shop"}
    monkeypatch.setattr(dry_runs, "MOST", 2)
    limited = DryRuns(runs._connect)  # noqa: SLF001  # another question
    limited.create_all([pod("a")])
    limited.create_all([pod("b"), pod("c")])
    (created,) = limited.create_all([pod("d", "other")])
    assert created.stored
    limited.close()


def test_an_api_server_that_is_gone_ends_the_question(runs: DryRuns, tmp_path: Path) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "gone", "http://127.0.0.1:9")

    async def connect() -> ApiClient:
        return ApiClient(load_credentials(kubeconfig, None))

    gone = DryRuns(connect)
    with pytest.raises(ApiError):
        gone.create_all([pod("a"), pod("b")])
    gone.close()
    runs.create_all([])
