"""The pods keep each rule of the Pod Security Standard `restricted`, which their namespace enforces.

Source: k8s.io/pod-security-admission/policy, and https://kubernetes.io/docs/concepts/security/pod-security-standards.
"""

from tests.manifests.kustomize import Manifest, only

HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC")
ALLOWED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "projected", "secret"}


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


def test_it_runs_as_the_user_of_the_image_gains_no_privileges_and_writes_no_file(
    pod: Manifest, container: Manifest
) -> None:
    of_pod, of_container = pod["spec"]["securityContext"], container["securityContext"]
    assert of_pod["runAsNonRoot"] is True
    assert (of_pod["runAsUser"], of_pod["runAsGroup"], of_pod["fsGroup"]) == (65532, 65532, 65532)
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"appArmorProfile", "seLinuxOptions", "sysctls"} & of_pod.keys()
    assert of_container == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert all(mount["readOnly"] is True for mount in container["volumeMounts"])
