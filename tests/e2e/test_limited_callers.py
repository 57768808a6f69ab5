"""Names of pods on the admin port, beside a real kube-apiserver that says which pods each caller may list."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import httpx
import pytest

from tests.e2e.api import NAMESPACES, pods_path
from tests.e2e.cluster import NAMESPACE, Cluster
from tests.e2e.kindred import Kindred, write_token
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import on, pod

THEIRS: Final = "theirs"
PORT: Final = 8080
HOLDER: Final = "hidden-7f3a"
HIDDEN: Final = "(a pod of another namespace)"
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_LISTER: Final = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


@pytest.fixture(scope="module")
def their_namespace(cluster: Cluster) -> None:
    """Make the other namespace."""
    cluster.api.create(NAMESPACES, {"metadata": {"name": THEIRS}})


@pytest.fixture(autouse=True)
def _without_their_pods(cluster: Cluster, their_namespace: None) -> Iterator[None]:  # noqa: ARG001  # what comes before
    yield
    cluster.api.delete_all(pods_path(THEIRS))


def account(cluster: Cluster, name: str, namespace: str = "") -> str:
    """Make a service account that may list pods, of a namespace or of all, and return a token of it."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "kindred"}
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    reference = {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    head = {"apiVersion": _RBAC, "metadata": metadata}
    cluster.api.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kindred"}}
    )
    cluster.api.apply({**head, "kind": kind, "rules": _LISTER})
    cluster.api.apply({**head, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [subject]})
    return write_token(cluster.api, cluster.plane.folder / f"{name}.token", name).read_text()


def requested(kindred: Kindred, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:  # noqa: ANN401  # of httpx; none
    """Ask the admin port as the bearer of a token."""
    headers = {"Kindred-Caller-Token": token} if token else {}
    return httpx.request(method, f"http://127.0.0.1:{kindred.admin_port}{path}", headers=headers, timeout=30.0, **more)


def explained(kindred: Kindred, token: str = "", pod_name: str = f"{NAMESPACE}/blocked") -> httpx.Response:  # none
    query = {"node": "node-0000", "limit": 10}
    return requested(kindred, "POST", "/explain", token, params=query, json={"pod": pod_name})


def test_each_caller_sees_the_names_of_pods_that_they_may_list(cluster: Cluster) -> None:
    cluster.add_nodes(1)
    kindred = cluster.start_kindred({"KINDRED_EXPLAIN_ACCESS": "review"})
    kindred.wait_for_explanations()
    limited, trusted = account(cluster, "limited", NAMESPACE), account(cluster, "trusted")
    cluster.api.create(pods_path(THEIRS), on(pod(HOLDER, host_port=PORT), "node-0000"))
    cluster.api.create(pods_path(THEIRS), pod(f"{HOLDER}-waits", cpu="33"))
    cluster.create_pods([pod("blocked", host_port=PORT)])

    def knows_all() -> bool:
        with suppress(httpx.HTTPError, KeyError):
            pods = requested(kindred, "GET", "/pending", trusted).json()["pods"]
            return {each["pod"] for each in pods} == {f"{NAMESPACE}/blocked", f"{THEIRS}/{HOLDER}-waits"}
        return False

    wait_until(knows_all, PATIENCE, "both pods pending, and the rights of one account count")
    wait_until(lambda: explained(kindred, limited).is_success, PATIENCE, "the rights of the other one count")
    whole, seen = explained(kindred, trusted).json(), explained(kindred, limited).json()
    for reported, holder in ((whole, f"{THEIRS}/{HOLDER}"), (seen, HIDDEN)):
        assert reported["summary"]["fit"] == 0
        (port,) = reported["nodes"][0]["decision"]["amounts"]["ports"]
        assert (port["port"], port["pods"]) == (PORT, [holder])
        texts = [each["text"] for each in reported["summary"]["helps"] if each["kind"] == "removePod"]
        assert texts == [f"remove pod {holder}, which no owner makes again, from node-0000 (then it fits on node-0000)"]
    assert whole["names_hidden"] == ""
    assert seen["names_hidden"] == "names of pods in namespaces whose pods this caller may not list are hidden"

    for method, path in (("GET", "/pending"), ("GET", "/names"), ("GET", "/cluster")):
        response = requested(kindred, method, path, limited)
        assert response.status_code == 200, path
        assert HOLDER not in response.text, path
    assert requested(kindred, "GET", "/pending", limited).json()["left_out"] == 1
    assert HOLDER not in explained(kindred, limited).text


def test_who_is_unknown_or_may_not_is_refused_with_what_is_missing(cluster: Cluster) -> None:
    cluster.add_nodes(1)
    kindred = cluster.start_kindred({"KINDRED_EXPLAIN_ACCESS": "review"})
    kindred.wait_for_explanations()
    limited, trusted = account(cluster, "limited", NAMESPACE), account(cluster, "trusted")
    cluster.api.create(pods_path(THEIRS), on(pod(HOLDER), "node-0000"))
    cluster.create_pods([pod("blocked", cpu="33")])
    wait_until(lambda: explained(kindred, limited).is_success, PATIENCE, "the rights of one account count")
    wait_until(
        lambda: requested(kindred, "GET", "/debug/mirror", trusted).is_success, PATIENCE, "those of the other one count"
    )

    theirs = explained(kindred, limited, f"{THEIRS}/{HOLDER}")
    assert theirs.status_code == 403
    assert theirs.json()["detail"].startswith(
        f"pod: this caller may not list pods in namespace {THEIRS}. Add to a Role"
    )
    assert requested(kindred, "GET", "/debug/mirror", limited).status_code == 403
    for token, message in (("", "no caller is known"), ("not-a-token-of-this-cluster", "does not accept")):
        rejected = explained(kindred, token)
        assert rejected.status_code == 403
        assert message in rejected.json()["detail"]
        assert requested(kindred, "GET", "/pending", token).json()["pods"] == []
