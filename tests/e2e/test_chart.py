"""The chart at a real API server: every registration is its overlay, is applied, and is admitted.

Here helm is built where it is missing. tests/manifests/test_chart.py has what needs no API server.
"""

from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.test_manifests import PODS, pod_of
from tests.manifests.chart_equality import REGISTRATION, comparable, values_of
from tests.manifests.helm import REGISTRATIONS, helm, template
from tests.manifests.kustomize import DECIDE, MANIFESTS, of_kind, of_kindred, render


@pytest.fixture(scope="module")
def program() -> Path:
    """Return helm, which `make e2e` has built before pytest begins to hide what is printed."""
    return helm()


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_each_registration_is_its_overlay(program: Path, registration: str) -> None:
    overlay = comparable(render(MANIFESTS / "overlays" / registration))
    assert len(overlay) >= 8
    assert overlay == comparable(template(program, values_of(registration)))


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_each_registration_is_applied_a_second_time_without_a_change_and_its_pods_are_admitted(
    program: Path, cluster: Cluster, registration: str
) -> None:
    namespace = f"chart-{registration}"
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": enforced}})
    manifests = template(program, values_of(registration), name=registration, namespace=namespace)
    first, second = ([cluster.api.apply(manifest) for manifest in manifests] for _ in range(2))
    assert [each["metadata"]["resourceVersion"] for each in first] == [
        each["metadata"]["resourceVersion"] for each in second
    ]
    accounts, made = of_kind(manifests, "ServiceAccount"), of_kind(manifests, "Deployment")
    assert accounts.keys() == made.keys()
    assert len(made) == (2 if registration == DECIDE else 1)
    for name in made:
        pod = pod_of([made[name]], name)
        pod["metadata"]["namespace"] = namespace
        admitted = cluster.api.create(PODS.replace("/kindred/", f"/{namespace}/"), pod)
        assert admitted["spec"]["priority"] == 2_000_000_000
    role = cluster.api.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{registration}-kindred")
    assert role["rules"] == rules_of(registration)


def rules_of(registration: str) -> object:
    """Return the rules of the overlay's ClusterRole."""
    (role,) = of_kind(of_kindred(render(MANIFESTS / "overlays" / registration)), "ClusterRole").values()
    return role["rules"]


@pytest.mark.parametrize("registration", [each for each in REGISTRATIONS if each != DECIDE])
def test_only_the_chart_has_the_configuration_of_kube_scheduler_as_a_config_map(
    program: Path, registration: str
) -> None:
    assert REGISTRATION in of_kind(template(program, values_of(registration)), "ConfigMap")
    assert REGISTRATION not in of_kind(render(MANIFESTS / "overlays" / registration), "ConfigMap")
