"""Which pod is meant by what stands on the command line."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from app.api_server.client import ApiClient
from app.api_server.credentials import load_credentials
from app.commands.why.cluster import MissingRightsError
from app.commands.why.pod_argument import NotPendingError, PendingPod, find_pod, parse_argument
from app.objects.decode import DecodeError
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.commands.why.cluster import SmallCluster, small_cluster


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as served:
        yield served


@pytest.fixture
def kubeconfig(cluster: SmallCluster, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path / "kubeconfig", cluster.url)


def pod(name: str = "web-0", namespace: str = "shop", **spec: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {"app": "web", "tier": "front"}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def found(kubeconfig: str, *words: str, namespace: str = "shop") -> PendingPod:
    async def find() -> PendingPod:
        client = ApiClient(load_credentials(kubeconfig, None))
        try:
            return await find_pod(client, parse_argument(words), namespace)
        finally:
            await client.close()

    return asyncio.run(find())


@pytest.mark.parametrize(
    ("words", "kind", "name"),
    [
        (["web-0"], "Pod", "web-0"),
        (["pod/web-0"], "Pod", "web-0"),
        (["po", "web-0"], "Pod", "web-0"),
        (["Pods/web-0"], "Pod", "web-0"),
        (["deploy/web"], "Deployment", "web"),
        (["deployments.apps", "web"], "Deployment", "web"),
        (["statefulset/db"], "StatefulSet", "db"),
        (["rs/web-1"], "ReplicaSet", "web-1"),
        (["ds/agent"], "DaemonSet", "agent"),
        (["jobs.batch/train"], "Job", "train"),
        (["rc/old"], "ReplicationController", "old"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_type_is_called_as_kubectl_calls_it(words: list[str], kind: str, name: str) -> None:
    argument = parse_argument(words)
    assert (kind, name) == (argument.kind.kind, argument.name)


@pytest.mark.parametrize("words", [[], [""], ["pod/"], ["/web"], ["a/b/c"], ["pod", "a", "b"], ["pod", "shop/web"]])
def test_what_is_no_pod_is_refused_with_the_forms_that_there_are(words: list[str]) -> None:
    with pytest.raises(click.UsageError, match="Give one pod: NAME, TYPE/NAME or TYPE NAME"):
        parse_argument(words)


def test_an_unknown_type_may_have_been_a_namespace() -> None:
    with pytest.raises(click.UsageError, match=r"unknown type 'shop' .*another namespace is web-0 -n shop"):
        parse_argument(["shop/web-0"])


def test_a_pod_is_read_from_its_namespace_without_the_fields_that_managers_keep(
    cluster: SmallCluster, kubeconfig: str
) -> None:
    manifest = pod()
    cluster.add("pods", {**manifest, "metadata": {**manifest["metadata"], "managedFields": [{"manager": "m"}]}})
    pending = found(kubeconfig, "web-0")
    assert ("shop/web-0", manifest) == (pending.pod.full_name, json.loads(pending.manifest))
    assert [each.path for each in cluster.asked] == ["/api/v1/namespaces/shop/pods/web-0"]


def test_gates_of_a_pod_are_named(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.add("pods", pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert found(kubeconfig, "web-0").pod.waiting.gates == ("example.com/quota",)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"spec": {"nodeName": "node-7"}}, "pod shop/web-0 is on node node-7 already: nothing keeps it pending"),
        ({"status": {"phase": "Succeeded"}}, "pod shop/web-0 has ended"),
        ({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}, "pod shop/web-0 has ended"),
    ],
    ids=["bound", "succeeded", "failed"],
)
def test_a_pod_that_is_not_pending_is_told_of(
    cluster: SmallCluster, kubeconfig: str, changed: dict[str, Any], message: str
) -> None:
    cluster.add("pods", {**pod(), **changed})
    with pytest.raises(NotPendingError, match=message):
        found(kubeconfig, "web-0")


def test_a_pod_that_is_being_deleted_is_told_of(cluster: SmallCluster, kubeconfig: str) -> None:
    manifest = pod()
    manifest["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    cluster.add("pods", manifest)
    with pytest.raises(NotPendingError, match="is being deleted"):
        found(kubeconfig, "web-0")


def test_a_pod_that_is_not_there_is_told_of_with_the_next_step(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.add("pods", pod(namespace="other"))
    with pytest.raises(NotPendingError, match="no pod web-0 in namespace shop; name another with -n, or look in all"):
        found(kubeconfig, "web-0")


def test_a_pod_is_found_in_any_namespace_unless_there_are_several(cluster: SmallCluster, kubeconfig: str) -> None:
    with pytest.raises(NotPendingError, match="no pod web-0 in any namespace"):
        found(kubeconfig, "web-0", namespace="")
    cluster.add("pods", pod(namespace="other"), pod("web-1"))
    assert found(kubeconfig, "web-0", namespace="").pod.full_name == "other/web-0"
    cluster.add("pods", pod())
    with pytest.raises(NotPendingError, match="several pods web-0; choose one with -n: other, shop"):
        found(kubeconfig, "web-0", namespace="")


SELECTORS = [
    ("deployments", "deploy", {"matchLabels": {"app": "web"}}, "app=web"),
    (
        "statefulsets",
        "sts",
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["front", "back"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "tier", "operator": "Exists"},
                {"key": "tier", "operator": "NotIn", "values": ["side"]},
            ],
        },
        "app=web,tier in (front,back),!old,tier,tier notin (side)",
    ),
    ("replicationcontrollers", "rc", {"app": "web", "tier": "front"}, "app=web,tier=front"),
]


@pytest.mark.parametrize(("plural", "short", "selector", "asked"), SELECTORS, ids=[each[0] for each in SELECTORS])
def test_the_pods_of_a_workload_are_those_that_it_selects(  # noqa: PLR0913, PLR0917  # a row of the table
    cluster: SmallCluster, kubeconfig: str, plural: str, short: str, selector: dict[str, Any], asked: str
) -> None:
    cluster.add(plural, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector}})
    with pytest.raises(NotPendingError):
        found(kubeconfig, f"{short}/web")
    assert cluster.asked[-1].query["labelSelector"] == asked


def test_of_a_workload_the_pod_that_has_waited_for_longest_is_taken(cluster: SmallCluster, kubeconfig: str) -> None:
    selector = {"matchLabels": {"app": "web"}}
    cluster.add("deployments", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector}})
    for name, created in (("web-b", "2026-01-02T03:04:06Z"), ("web-c", "2026-01-02T03:04:05Z")):
        waiting = pod(name)
        waiting["metadata"]["creationTimestamp"] = created
        cluster.add("pods", waiting)
    bound = pod("web-a", nodeName="node-1")
    bound["metadata"]["creationTimestamp"] = "2026-01-02T03:04:04Z"
    cluster.add("pods", bound)
    assert found(kubeconfig, "deploy", "web").pod.full_name == "shop/web-c"


def test_a_workload_without_a_pending_pod_tells_where_its_pods_are(cluster: SmallCluster, kubeconfig: str) -> None:
    selector = {"matchLabels": {"app": "web"}}
    cluster.add("deployments", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": selector}})
    cluster.add("pods", pod(nodeName="node-1"))
    with pytest.raises(NotPendingError, match="deployment web has no pending pod among 1: web-0 is on node node-1"):
        found(kubeconfig, "deploy/web")


def test_a_workload_needs_its_namespace(kubeconfig: str) -> None:
    with pytest.raises(click.UsageError, match="-A is for a pod"):
        found(kubeconfig, "deploy/web", namespace="")


@pytest.mark.parametrize(
    ("forbidden", "words", "namespace", "rule"),
    [
        ("get pods shop", "web-0", "shop", '- {apiGroups: [""], resources: ["pods"], verbs: ["get"]}'),
        ("list pods", "web-0", "", '- {apiGroups: [""], resources: ["pods"], verbs: ["list"]}'),
        (
            "get deployments",
            "deploy/web",
            "shop",
            '- {apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"]}',
        ),
    ],
    ids=["pod", "all-namespaces", "workload"],
)
def test_a_right_that_is_missing_is_told_with_its_rule(  # noqa: PLR0913, PLR0917  # a row of the table
    cluster: SmallCluster, kubeconfig: str, forbidden: str, words: str, namespace: str, rule: str
) -> None:
    cluster.forbidden.add(forbidden)
    with pytest.raises(MissingRightsError) as caught:
        found(kubeconfig, words, namespace=namespace)
    assert caught.value.rules == (f"  {rule}",)
    assert str(caught.value).startswith("dev may not ")


def test_a_workload_without_a_selector_names_the_field(cluster: SmallCluster, kubeconfig: str) -> None:
    cluster.add("deployments", {"metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
    with pytest.raises(DecodeError, match=r"spec\.selector: required"):
        found(kubeconfig, "deploy/web")
