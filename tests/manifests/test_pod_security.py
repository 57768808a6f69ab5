"""The pods keep each rule of the Pod Security Standard `restricted`, which their namespace enforces.

Source: k8s.io/pod-security-admission/policy, and https://kubernetes.io/docs/concepts/security/pod-security-standards.
"""

from typing import Any

import pytest

from tests.manifests.kustomize import Manifest, only

HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")
ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


@pytest.fixture
def of_pod(pod: Manifest) -> dict[str, Any]:
    context: dict[str, Any] = pod["spec"]["securityContext"]
    return context


@pytest.fixture
def of_container(container: Manifest) -> dict[str, Any]:
    context: dict[str, Any] = container["securityContext"]
    return context


def test_the_namespace_enforces_it(manifests: list[Manifest]) -> None:
    labels = only(manifests, "Namespace")["metadata"]["labels"]
    modes = {mode: labels[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "warn", "audit")}
    assert modes == dict.fromkeys(modes, "restricted")


def test_one_container_and_nothing_of_the_host(pod: Manifest, container: Manifest) -> None:
    spec = pod["spec"]
    assert not {"initContainers", "ephemeralContainers"} & spec.keys()
    assert not [field for field in HOST_FIELDS if spec.get(field)]
    assert not [port for port in container["ports"] if "hostPort" in port]
    probes = [container[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert not [probe for probe in probes if "host" in probe["httpGet"]]


def test_volumes_are_of_the_kinds_that_are_allowed(pod: Manifest) -> None:
    for volume in pod["spec"]["volumes"]:
        (kind,) = volume.keys() - {"name"}
        assert kind in ALLOWED_VOLUMES


def test_it_runs_as_the_user_of_the_image_who_is_not_root(of_pod: dict[str, Any], of_container: dict[str, Any]) -> None:
    assert of_pod["runAsNonRoot"] is True
    assert (of_pod["runAsUser"], of_pod["runAsGroup"], of_pod["fsGroup"]) == (65532, 65532, 65532)
    assert not {"runAsNonRoot", "runAsUser"} & of_container.keys()


def test_it_gains_no_privileges(of_container: dict[str, Any]) -> None:
    assert of_container["allowPrivilegeEscalation"] is False
    assert of_container["capabilities"] == {"drop": ["ALL"]}
    assert not of_container.get("privileged", False)
    assert "procMount" not in of_container


def test_seccomp_is_that_of_the_runtime(of_pod: dict[str, Any], of_container: dict[str, Any]) -> None:
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"seccompProfile", "appArmorProfile", "seLinuxOptions"} & of_container.keys()
    assert not {"appArmorProfile", "seLinuxOptions", "sysctls"} & of_pod.keys()


def test_its_files_cannot_be_written(of_container: dict[str, Any], container: Manifest) -> None:
    assert of_container["readOnlyRootFilesystem"] is True
    assert all(mount["readOnly"] is True for mount in container["volumeMounts"])
