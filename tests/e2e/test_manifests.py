"""The manifests at a real API server: applied, applied again, admitted, and enough for Kindred to run with.

Of the kinds that operators define (ServiceMonitor, PrometheusRule, Certificate, Issuer) the server knows here that they
exist, and nothing of what is in them.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.e2e.api import pods_path
from tests.e2e.cluster import Cluster
from tests.e2e.grouping import has_cycles, server_flags
from tests.e2e.kindred import Kindred, write_token
from tests.e2e.programs import PATIENCE, wait_until
from tests.e2e.shapes import pod
from tests.manifests.conftest import DECIDE_NAMESPACES, VARIANTS, Variant
from tests.manifests.kustomize import (
    DECIDE,
    MANIFESTS,
    OVERLAYS,
    Manifest,
    of_kindred,
    of_scheduler,
    only,
    render,
    with_components,
)

ACCOUNT: Final = "system:serviceaccount:kindred:kindred"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
PODS: Final = pods_path("kindred")
GROUP: Final = {"podGroupName": "train"}
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
    """Return a cluster that knows the kinds of cert-manager and of the Prometheus operator."""
    for group, kind in CUSTOM:
        cluster.api.apply(definition(group, kind))

    def are_served() -> bool:
        try:
            served = [cluster.api.items(f"/apis/{group}/v1/{kind.lower()}s") for group, kind in CUSTOM]
        except httpx.HTTPStatusError:
            return False
        return served == [[]] * len(CUSTOM)

    wait_until(are_served, PATIENCE, "the kinds of operators are served")
    return cluster


def has_mutating_policies(cluster: Cluster) -> bool:
    """Return whether the release has MutatingAdmissionPolicies of v1: since 1.36 (docs/decide.md)."""
    served = cluster.api.get("/apis/admissionregistration.k8s.io/v1")["resources"]
    return any(each["name"] == "mutatingadmissionpolicies" for each in served)


def applied(cluster: Cluster, manifests: Iterable[Manifest]) -> list[dict[str, Any]]:
    return [cluster.api.apply(manifest) for manifest in manifests]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_second_time_nothing_changes(knowing: Cluster, variant: Variant, tmp_path: Path) -> None:
    left_out = set() if has_mutating_policies(knowing) else {DECIDE_NAMESPACES}
    components = [each for each in variant.components if each not in left_out]
    manifests = render(with_components(tmp_path, variant.overlay, components))
    first, second = applied(knowing, manifests), applied(knowing, manifests)
    assert len(first) >= 9
    assert [each["metadata"]["resourceVersion"] for each in first] == [
        each["metadata"]["resourceVersion"] for each in second
    ]


# Of Kindred's settings, what a test machine has no use for: certificates, and addresses of a pod.
HERE: Final = {
    "KINDRED_HEALTH_PORT": "0",
    "KINDRED_TLS_DIRECTORY": "",
    "KINDRED_TLS_CLIENT_NAMES": "",
    "POD_NAMESPACE": "kindred",
}


def start_kindred(cluster: Cluster, overlay: str, folder: Path) -> Kindred:
    """Start Kindred with the settings of an overlay, under the roles that are applied."""
    token = write_token(cluster.api, folder / "token")
    kubeconfig = cluster.plane.kubeconfig("kindred", token_file=token)
    settings = MANIFESTS / "overlays" / overlay / "kindred.yaml"
    return Kindred(folder, kubeconfig, {"KINDRED_CONFIG": str(settings), **HERE})


def pod_of(manifests: Iterable[Manifest], name: str) -> dict[str, Any]:
    template = only(manifests, "Deployment")["spec"]["template"]
    metadata = {**template["metadata"], "name": name, "namespace": "kindred"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_its_pods_are_admitted_and_those_that_may_gain_privileges_are_not(cluster: Cluster, overlay: str) -> None:
    rendered = render(MANIFESTS / "overlays" / overlay)
    applied(cluster, rendered)
    manifests = of_kindred(rendered)
    made = cluster.api.create(PODS, pod_of(manifests, f"{overlay}-0"))
    assert made["spec"]["priorityClassName"] == "system-cluster-critical"
    assert made["spec"]["priority"] == 2_000_000_000
    gaining = pod_of(manifests, f"{overlay}-1")
    gaining["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(httpx.HTTPStatusError, match=r"violates PodSecurity.*allowPrivilegeEscalation"):
        cluster.api.create(PODS, gaining)


def is_allowed(cluster: Cluster, verb: str, resource: str, **attributes: str) -> bool:
    requested = {"verb": verb, "resource": resource, **attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    response = cluster.api.request(
        "POST", REVIEWS, {**review, "spec": {"user": ACCOUNT, "resourceAttributes": requested}}
    )
    allowed: bool = response["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_with_the_roles_of_an_overlay_kindred_is_ready_and_can_do_no_more(
    cluster: Cluster, overlay: str, tmp_path: Path
) -> None:
    cluster.api.delete(f"{RBAC}/namespaces/kindred/rolebindings/kindred")  # of another overlay
    applied(cluster, render(MANIFESTS / "overlays" / overlay))
    start_kindred(cluster, overlay, tmp_path).end()
    binds, evicts = overlay == "full-offload", overlay == DECIDE
    lease: Mapping[str, str] = {"group": "coordination.k8s.io", "namespace": "kindred"}

    def rights() -> tuple[bool, ...]:
        return (
            is_allowed(cluster, "create", "pods", subresource="binding", namespace="default"),
            is_allowed(cluster, "update", "leases", name="kindred", **lease),
            is_allowed(cluster, "delete", "pods", namespace="default"),
        )

    # Those of another overlay end some moments after their roles are replaced.
    wait_until(lambda: rights() == (binds, binds or evicts, evicts), PATIENCE, "the rights of the overlay")
    assert not is_allowed(cluster, "update", "leases", name="another", **lease)
    assert not is_allowed(cluster, "update", "leases", name="kindred", **{**lease, "namespace": "kube-system"})
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
    cluster.create_pods([pod("other"), {**asking, "spec": {**asking["spec"], "schedulerName": "kindred"}}])
    cluster.wait_bound(1)
    assert cluster.bound_names() == {"asking"}


def test_the_second_scheduler_of_decide_binds_under_its_own_account(cluster: Cluster, tmp_path: Path) -> None:
    rendered = render(MANIFESTS / "overlays" / DECIDE)
    applied(cluster, rendered)
    second = [manifest for manifest in rendered if of_scheduler(manifest)]
    cluster.api.create(PODS, pod_of(second, "scheduler-of-decide"))
    config = yaml.safe_load(only(second, "ConfigMap")["data"]["scheduler.yaml"])
    (extender,) = config["extenders"]
    cluster.add_nodes(3)
    kindred = start_kindred(cluster, DECIDE, tmp_path)
    try:
        of_http = {key: value for key, value in extender.items() if key not in {"tlsConfig", "enableHTTPS"}}
        config["extenders"] = [{**of_http, "urlPrefix": kindred.url}]
        scheduler = cluster.start_scheduler(config, account="kindred-scheduler")
        names = ("default-scheduler", *(profile["schedulerName"] for profile in config["profiles"]))
        cluster.create_pods(pod(f"of-{name}", schedulerName=name) for name in names)
        cluster.wait_bound(3)
    finally:
        kindred.end()
    assert cluster.bound_names() == {"of-kindred", "of-kindred-volumes", "of-kindred-groups"}
    assert "is forbidden" not in scheduler.log()
    lease = cluster.api.get("/apis/coordination.k8s.io/v1/namespaces/kindred/leases/kindred-scheduler")
    assert lease["spec"]["holderIdentity"]


def assert_device_users_are_sent(cluster: Cluster, scheduler_of: Callable[..., str]) -> None:
    """Hold the policy for devices against DeviceClasses that come and go."""

    def asking(resource: str, member: str = "containers", **spec: Any) -> str:  # noqa: ANN401  # a value of YAML
        asks = {"name": "asks", "image": "image", "resources": {"limits": {resource: "1"}}}
        other = {"name": "other", "image": "image", "resources": {"requests": {"cpu": "1"}}}
        first = [other | {"name": "first"}]
        return scheduler_of(**{"containers": [other], "initContainers": first, member: [asks], **spec})

    gpu, by_its_name = "example.com/gpu", "deviceclass.resource.kubernetes.io/accelerator"
    assert asking(gpu) == asking(by_its_name) == "kindred"
    for name, spec in (("accelerator", {"extendedResourceName": gpu}), ("unnamed", {})):
        kind = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        cluster.api.apply({**kind, "metadata": {"name": name}, "spec": spec})
    wait_until(lambda: asking(gpu) == "kindred-volumes", PATIENCE, "the policy has the DeviceClass")
    for member in ("containers", "initContainers"):
        assert asking(gpu, member) == asking(by_its_name, member) == "kindred-volumes"
    assert not has_cycles() or asking(gpu, schedulingGroup=GROUP) == "kindred-groups"
    assert asking("example.com/disk") == asking(f"{by_its_name}s") == scheduler_of() == "kindred"
    cluster.api.delete("/apis/resource.k8s.io/v1/deviceclasses/accelerator")
    wait_until(lambda: asking(gpu) == "kindred", PATIENCE, "the policy has lost the DeviceClass")


def test_new_pods_of_chosen_namespaces_are_sent_to_the_second_scheduler(cluster: Cluster, tmp_path: Path) -> None:
    if not has_mutating_policies(cluster):
        pytest.skip("MutatingAdmissionPolicy v1 is in Kubernetes since 1.36")
    if has_cycles():
        cluster.plane.serve_with(*server_flags())
    applied(cluster, render(with_components(tmp_path, "decide", [DECIDE_NAMESPACES])))
    for name in ("chosen", "other"):
        labels = {"kindred.dev/schedule": "decide"} if name == "chosen" else {}
        cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def scheduler_of(namespace: str = "chosen", labels: Mapping[str, str] | None = None, **spec: Any) -> str:  # noqa: ANN401  # a value of YAML
        made = cluster.api.request("POST", f"{pods_path(namespace)}?dryRun=All", pod("tried", labels, **spec))
        name: str = made["spec"]["schedulerName"]
        return name

    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    empty = {"name": "data", "emptyDir": {}}
    wait_until(lambda: scheduler_of() == "kindred", PATIENCE, "the policy is in force")
    assert scheduler_of(volumes=[empty]) == "kindred"
    assert scheduler_of(volumes=[empty, {**claim, "name": "more"}]) == "kindred-volumes"
    assert scheduler_of(schedulerName="kindred", volumes=[claim]) == "kindred-volumes"
    assert scheduler_of(resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]) == "kindred-volumes"
    for volumes in ([], [claim]) if has_cycles() else ():
        assert scheduler_of(schedulingGroup=GROUP, volumes=volumes) == "kindred-groups"
    assert_device_users_are_sent(cluster, scheduler_of)
    assert scheduler_of(schedulerName="another") == "another"
    assert scheduler_of(nodeName="node-0000") == "default-scheduler"
    assert scheduler_of(priorityClassName="system-cluster-critical") == "default-scheduler"
    assert scheduler_of("other") == "default-scheduler"
    assert scheduler_of(labels={"app.kubernetes.io/name": "kindred"}) == "default-scheduler"
    system = {"name": "kube-system", "labels": {"kindred.dev/schedule": "decide"}}
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": system})
    assert scheduler_of("kube-system") == "default-scheduler"


@pytest.mark.parametrize("profile", ["affinity", "full", "VolumeBinding,score:ImageLocality"])
def test_with_the_roles_that_kindred_rbac_prints_each_profile_is_ready(cluster: Cluster, profile: str) -> None:
    kindred = cluster.start_kindred({"KINDRED_PROFILE": profile})
    kindred.wait_for_explanations()  # a right counts some moments after its role is made
    resources = kindred.readiness()["resources"]
    assert resources
    assert all(state["missing_rbac_rule"] is None for state in resources.values())
