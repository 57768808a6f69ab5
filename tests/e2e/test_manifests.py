"""The manifests at a real API server: applied, applied again, admitted, and enough for Kindred to run with.

Of the kinds that operators define (ServiceMonitor, PrometheusRule, Certificate, Issuer) the server knows here that they
exist, and nothing of what is in them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e.api import pods_path
from tests.e2e.cluster import Cluster
from tests.e2e.kindred import Kindred, write_token
from tests.e2e.programs import wait_until
from tests.e2e.shapes import pod
from tests.manifests.conftest import VARIANTS, Variant
from tests.manifests.kustomize import MANIFESTS, OVERLAYS, Manifest, only, render, with_components

ACCOUNT: Final = "system:serviceaccount:kindred:kindred"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PODS: Final = pods_path("kindred")
CUSTOM: Final = (
    ("cert-manager.io", "Certificate"),
    ("cert-manager.io", "Issuer"),
    ("monitoring.coreos.com", "ServiceMonitor"),
    ("monitoring.coreos.com", "PrometheusRule"),
)


def definition(group: str, kind: str) -> Manifest:
    """Return a definition of a kind that may hold anything."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def knowing(cluster: Cluster) -> Cluster:
    """Give a cluster that knows the kinds of cert-manager and of the Prometheus operator."""
    for group, kind in CUSTOM:
        cluster.api.apply(definition(group, kind))

    def are_served() -> bool:
        try:
            served = [cluster.api.items(f"/apis/{group}/v1/{kind.lower()}s") for group, kind in CUSTOM]
        except httpx.HTTPStatusError:
            return False
        return served == [[]] * len(CUSTOM)

    wait_until(are_served, 60.0, "the kinds of operators are served")
    return cluster


def applied(cluster: Cluster, manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    return [cluster.api.apply(manifest) for manifest in manifests]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_second_time_nothing_changes(knowing: Cluster, variant: Variant, tmp_path: Path) -> None:
    manifests = render(with_components(tmp_path, variant.overlay, variant.components))
    first, second = applied(knowing, manifests), applied(knowing, manifests)
    assert len(first) >= 9
    assert [each["metadata"]["resourceVersion"] for each in first] == [
        each["metadata"]["resourceVersion"] for each in second
    ]


def pod_of(manifests: Iterable[Manifest], name: str) -> dict[str, Any]:
    template = only(manifests, "Deployment")["spec"]["template"]
    metadata = {**template["metadata"], "name": name, "namespace": "kindred"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_its_pods_are_admitted_and_those_that_may_gain_privileges_are_not(cluster: Cluster, overlay: str) -> None:
    manifests = render(MANIFESTS / "overlays" / overlay)
    applied(cluster, manifests)
    made = cluster.api.create(PODS, pod_of(manifests, f"{overlay}-0"))
    assert made["spec"]["priorityClassName"] == "system-cluster-critical"
    assert made["spec"]["priority"] == 2_000_000_000
    gaining = pod_of(manifests, f"{overlay}-1")
    gaining["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(httpx.HTTPStatusError, match=r"violates PodSecurity.*allowPrivilegeEscalation"):
        cluster.api.create(PODS, gaining)


def is_allowed(cluster: Cluster, verb: str, resource: str, **attributes: str) -> bool:
    asked = {"verb": verb, "resource": resource, **attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = cluster.api.request("POST", REVIEWS, {**review, "spec": {"user": ACCOUNT, "resourceAttributes": asked}})
    allowed: bool = answer["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_with_the_roles_of_an_overlay_kindred_is_ready_and_can_do_no_more(
    cluster: Cluster, overlay: str, tmp_path: Path
) -> None:
    cluster.api.delete(f"{RBAC}/namespaces/kindred/rolebindings/kindred")  # of another overlay
    applied(cluster, render(MANIFESTS / "overlays" / overlay))
    token = write_token(cluster.api, tmp_path / "token")
    kubeconfig = cluster.plane.kubeconfig("kindred", token_file=token)
    kindred = Kindred(
        tmp_path,
        kubeconfig,
        {
            "KINDRED_CONFIG": str(MANIFESTS / "overlays" / overlay / "kindred.yaml"),
            "KINDRED_LISTEN_HOST": "127.0.0.1",
            "KINDRED_HEALTH_PORT": "0",
            "KINDRED_TLS_CERT_FILE": "",
            "KINDRED_TLS_KEY_FILE": "",
            "KINDRED_TLS_CLIENT_CA_FILE": "",
            "KINDRED_TLS_CLIENT_NAMES": "",
            "KINDRED_POD_NAMESPACE": "kindred",
        },
    )
    kindred.end()
    binds = overlay == "full-offload"
    lease: Mapping[str, str] = {"group": "coordination.k8s.io", "namespace": "kindred"}
    assert binds == is_allowed(cluster, "create", "pods", subresource="binding", namespace="default")
    assert binds == is_allowed(cluster, "update", "leases", name="kindred", **lease)
    assert not is_allowed(cluster, "update", "leases", name="another", **lease)
    assert not is_allowed(cluster, "update", "leases", name="kindred", **{**lease, "namespace": "kube-system"})
    assert not is_allowed(cluster, "delete", "pods", namespace="default")
    assert not is_allowed(cluster, "list", "secrets", namespace="kindred")


def test_a_second_scheduler_is_admitted_and_places_the_pods_that_ask_for_it(cluster: Cluster) -> None:
    applied(cluster, render(MANIFESTS / "overlays" / "score-offload"))
    manifests = render(MANIFESTS / "second-scheduler")
    applied(cluster, manifests)
    cluster.api.create(PODS, pod_of(manifests, "second-0"))
    kindred = cluster.start_kindred()
    config = yaml.safe_load(only(manifests, "ConfigMap")["data"]["scheduler.yaml"])
    config["extenders"][0]["urlPrefix"] = kindred.url
    cluster.start_scheduler(config)
    cluster.add_nodes(3)
    asking = pod("asking")
    cluster.create_pods([pod("other"), {**asking, "spec": {**asking["spec"], "schedulerName": "kindred-scheduler"}}])
    cluster.wait_bound(1)
    assert [each["metadata"]["name"] for each in cluster.pods() if "nodeName" in each["spec"]] == ["asking"]


@pytest.mark.parametrize("profile", ["affinity", "full", "VolumeBinding,score:ImageLocality"])
def test_with_the_roles_that_kindred_rbac_prints_each_profile_is_ready(cluster: Cluster, profile: str) -> None:
    kindred = cluster.start_kindred({"KINDRED_PROFILE": profile})
    resources = kindred.readiness()["resources"]
    assert resources
    assert all(state["missing_rbac_rule"] is None for state in resources.values())
