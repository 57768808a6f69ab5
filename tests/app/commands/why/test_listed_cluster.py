"""A cluster that is listed with the rights of a caller, and what is said of a right that is missing."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import load_credentials
from app.commands.dump import Cluster
from app.commands.why.cluster import MissingRightsError, Right, list_cluster, needing, user_in
from app.feeds.freshness import SyncStatus
from app.settings.settings import Settings
from core.events import Kind, Missing
from core.objects.devices import ResourceClaim
from core.objects.kinds import DeviceClass, Namespace
from core.objects.node import Node
from core.objects.pod import Pod
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.why.cluster import SmallCluster, small_cluster
from tests.builders import make_namespace, make_node, make_pod

FORBIDDEN = 'pods "web" is forbidden: User "system:serviceaccount:shop:dev" cannot get resource "pods"'


def test_the_user_the_verb_the_resource_the_namespace_and_the_rule_are_named() -> None:
    error = MissingRightsError([Right("get", "pods", namespace="shop")], "dev")
    assert [str(error), *error.rules] == [
        "dev may not get pods in namespace shop. Add to a Role in namespace shop:",
        '  - {apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
    ]


def test_two_verbs_are_two_in_the_rule() -> None:
    error = MissingRightsError([Right("get,create", "pods/portforward", namespace="kindred")], "dev")
    assert [str(error), *error.rules] == [
        "dev may not get and create pods/portforward in namespace kindred. Add to a Role in namespace kindred:",
        '  - {apiGroups: [""], resources: ["pods/portforward"], verbs: ["get", "create"]}',
    ]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (StatusError(403, "Forbidden", FORBIDDEN), MissingRightsError),
        (StatusError(403, "", "GET /debug/mirror shows pods of all namespaces"), StatusError),
        (StatusError(404, "NotFound", "not found"), StatusError),
    ],
    ids=["api-server", "service-behind-it", "another-refusal"],
)
def test_only_what_the_api_server_forbids_is_a_missing_right(raised: StatusError, expected: type[Exception]) -> None:
    async def ask() -> None:
        async with needing(Right("get", "pods", namespace="shop")):
            raise raised

    with pytest.raises(expected):
        asyncio.run(ask())


def test_the_user_is_the_one_that_the_api_server_names() -> None:
    assert user_in(FORBIDDEN) == "system:serviceaccount:shop:dev"
    assert user_in("no") == ""


KINDS: Sequence[Kind] = (Node, Pod, Namespace, DeviceClass, ResourceClaim)


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        served.add("nodes", *(make_node(f"n{number}").obj() for number in range(5)))
        served.add("namespaces", make_namespace("default").obj())
        served.add("pods", make_pod("placed").on("n1").obj(), make_pod("waiting").obj())
        yield served


def listed(cluster: SmallCluster, folder: Path, **settings: str) -> Cluster:
    async def ask() -> Cluster:
        client = ApiClient(load_credentials(write_kubeconfig(folder / "kubeconfig", cluster.url), None))
        try:
            return await list_cluster(client, KINDS, Settings.model_validate(settings))
        finally:
            await client.close()

    return asyncio.run(ask())


def test_all_pages_of_all_kinds_are_in_the_mirror(cluster: SmallCluster, tmp_path: Path) -> None:
    found = listed(cluster, tmp_path)
    assert {f"n{number}" for number in range(5)} == {*found.mirror.nodes.slots}
    assert found.mirror.pod_count() == 1
    assert [each.query.get("continue") for each in cluster.requested if each.path == "/api/v1/nodes"] == [
        None,
        "2",
        "4",
    ]
    assert found.freshness.status() is SyncStatus.FRESH
    assert found.freshness.missing_for_explanations() == {}


def test_pods_that_have_ended_are_not_asked_for(cluster: SmallCluster, tmp_path: Path) -> None:
    listed(cluster, tmp_path)
    (requested,) = (each for each in cluster.requested if each.path == "/api/v1/pods")
    assert requested.query["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"


def test_a_kind_that_is_forbidden_is_missing_with_the_rule(cluster: SmallCluster, tmp_path: Path) -> None:
    cluster.forbidden.add("list namespaces")
    found = listed(cluster, tmp_path)
    (missing,) = found.freshness.missing_for_explanations().items()
    assert missing[0] is Namespace
    assert "forbidden" in missing[1].why
    assert 'resources: ["namespaces"], verbs: ["list", "watch"]' in missing[1].why
    assert found.freshness.status() is SyncStatus.FRESH


@pytest.mark.parametrize(("plural", "is_missing"), [("deviceclasses", False), ("namespaces", True)])
def test_only_a_kind_that_old_servers_do_not_have_may_be_absent(
    cluster: SmallCluster, tmp_path: Path, plural: str, *, is_missing: bool
) -> None:
    cluster.absent.add(plural)
    if is_missing:
        with pytest.raises(ApiError, match="404 NotFound"):
            listed(cluster, tmp_path)
    else:
        assert listed(cluster, tmp_path).freshness.missing_for_explanations() == {}


def test_without_the_kind_of_claims_it_is_unknown_what_a_claim_asks_for(cluster: SmallCluster, tmp_path: Path) -> None:
    cluster.absent.add("resourceclaims")
    missing = listed(cluster, tmp_path).freshness.missing_for_explanations()
    assert missing == {ResourceClaim: Missing("resourceclaims: the API server does not have resource.k8s.io/v1")}


def test_nodes_and_pods_are_needed(cluster: SmallCluster, tmp_path: Path) -> None:
    cluster.forbidden |= {"list pods", "list nodes", "list namespaces"}
    with pytest.raises(MissingRightsError) as caught:
        listed(cluster, tmp_path)
    assert [right.resource for right in caught.value.rights] == ["nodes", "pods", "namespaces"]


def test_an_object_that_cannot_be_read_is_passed_over_and_named(
    cluster: SmallCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.add("nodes", {"metadata": {"name": "odd", "labels": 7}})
    assert "odd" not in listed(cluster, tmp_path).mirror.nodes.slots
    assert "nodes: skipped odd: " in caplog.text


def test_the_release_is_that_of_the_server_unless_it_is_set(cluster: SmallCluster, tmp_path: Path) -> None:
    assert (listed(cluster, tmp_path).release.status.told, listed(cluster, tmp_path).release.status.source) == (
        "v1.36.2",
        "server",
    )
    assert listed(cluster, tmp_path, kubernetes="1.35").release.status.release == "1.35"
    cluster.git_version = None
    assert listed(cluster, tmp_path).release.status.source == "default"
