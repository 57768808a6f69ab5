"""The settings of each overlay, and what has to match: the Deployment, roles, the registration, certificates."""

import re
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest

from app.commands.rbac import rbac_documents, rbac_text
from app.settings.configuration import Configuration, load_configuration
from app.settings.limits import DEFAULTS, cache_bytes, queue_bytes
from app.settings.settings import SettingsError, effects, port_rule
from app.settings.types import split_address
from tests.manifests.conftest import Variant
from tests.manifests.kustomize import MANIFESTS, OVERLAYS, Manifest, of_kind, only

PEAK = 330_000_000
"""Bytes of memory that a sync of 5,000 nodes with 150,000 pods took at most, docs/bench/latest.json."""
UNITS = {"Mi": 2**20, "Gi": 2**30}


def amount(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w*)", quantity).groups()  # type: ignore[union-attr]  # else the test fails
    return int(number) * UNITS[unit]


def test_every_variable_is_a_setting_none_comes_from_services_and_the_file_that_is_named_is_mounted(
    configuration: Configuration, pod: Manifest, container: Manifest
) -> None:
    assert configuration.unknown_variables == ()
    assert pod["spec"]["enableServiceLinks"] is False
    command, option, file = container["args"]
    assert (command, option) == ("serve", "--config")
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert PurePosixPath(mounts["config"]) / "kindred.yaml" == PurePosixPath(file)
    assert "configMap" in next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "config")


def test_it_listens_where_the_container_says_and_on_the_loopback_for_the_admin_port(
    configuration: Configuration, container: Manifest
) -> None:
    settings = configuration.settings
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"extender": split_address(settings.listen).port, "health": settings.health_port}
    assert split_address(settings.listen).host == "0.0.0.0"  # noqa: S104  # of the pod
    assert settings.admin == "127.0.0.1:8890"


def test_the_pod_is_given_longer_than_it_takes_to_end(configuration: Configuration, pod: Manifest) -> None:
    settings = configuration.settings
    assert settings.grace_period < pod["spec"]["terminationGracePeriodSeconds"]


def test_replicas_are_kept_apart_by_what_the_scheduler_filters_by_in_every_mode(pod: Manifest) -> None:
    spread = {each["topologyKey"]: each for each in pod["spec"]["topologySpreadConstraints"]}
    assert {key: each["whenUnsatisfiable"] for key, each in spread.items()} == {
        "kubernetes.io/hostname": "DoNotSchedule",
        "topology.kubernetes.io/zone": "ScheduleAnyway",
    }
    assert spread["kubernetes.io/hostname"]["nodeTaintsPolicy"] == "Honor", "or a node that is drained keeps a place"
    assert all(each["matchLabelKeys"] == ["pod-template-hash"] for each in spread.values())
    assert pod["spec"]["affinity"]["podAntiAffinity"].keys() == {"preferredDuringSchedulingIgnoredDuringExecution"}
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"


def test_the_memory_is_enough_for_the_mirror_the_cache_and_the_queue(container: Manifest) -> None:
    resources = container["resources"]
    limit = amount(resources["limits"]["memory"])
    assert amount(resources["requests"]["memory"]) >= PEAK + cache_bytes(limit)
    at_most = PEAK + cache_bytes(limit) + queue_bytes(limit, DEFAULTS.max_body_bytes)
    assert limit * DEFAULTS.memory_watermark >= at_most
    assert "cpu" not in resources["limits"]


def test_files_of_tls_are_in_the_secret_that_is_mounted(
    configuration: Configuration, pod: Manifest, container: Manifest
) -> None:
    directory = configuration.settings.tls_directory
    secrets = [volume["name"] for volume in pod["spec"]["volumes"] if "secret" in volume]
    paths = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in secrets]
    assert [str(directory)] * bool(directory) == paths
    assert not any("subPath" in mount for mount in container["volumeMounts"]), "such a file never changes"


def test_the_scheduler_alone_is_let_in_where_there_are_certificates(
    configuration: Configuration, manifests: list[Manifest], extender: Manifest
) -> None:
    settings = configuration.settings
    assert (settings.tls_client_names == ("kube-scheduler",)) == (settings.tls_directory is not None)
    for name, certificate in of_kind(manifests, "Certificate").items():
        if name == "kindred":
            assert urlsplit(extender["urlPrefix"]).hostname in certificate["spec"]["dnsNames"]
            assert "server auth" in certificate["spec"]["usages"]
        elif name == "kindred-scheduler":
            assert certificate["spec"]["commonName"] in settings.tls_client_names
            assert "client auth" in certificate["spec"]["usages"]


def test_the_registration_asks_at_the_service(
    variant: Variant, configuration: Configuration, manifests: list[Manifest], extender: Manifest
) -> None:
    service = of_kind(manifests, "Service")["kindred"]
    (port,) = service["spec"]["ports"]
    requested = urlsplit(extender["urlPrefix"])
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    assert (requested.hostname, requested.port) == (f"{name}.{namespace}.svc", port["port"])
    if not variant.components:  # with TLS as an option, docs/register.md says what to change
        by_tls = configuration.settings.tls_directory is not None
        assert (requested.scheme, extender.get("enableHTTPS", False)) == ("https" if by_tls else "http", by_tls)
        assert ("caFile" in extender.get("tlsConfig", {})) == by_tls, "without it any server is trusted"


def test_what_is_registered_is_switched_on_and_waited_for_as_long_as_kindred_takes(
    configuration: Configuration, manifests: list[Manifest], extender: Manifest
) -> None:
    settings = configuration.settings
    assert settings.http_timeout == float(extender["httpTimeout"].removesuffix("s"))
    replicas = only(manifests, "Deployment")["spec"]["replicas"]
    assert replicas > 1
    decides = settings.decide != "off"
    alone = decides or "bindVerb" in extender
    assert settings.elects == alone, "of several replicas one binds or decides, or all answer"
    assert settings.bind == ("bindVerb" in extender)
    assert (settings.preempt != "off") == (decides or "preemptVerb" in extender)
    assert ("prioritizeVerb" in extender) != decides
    assert decides or extender["weight"] * settings.max_score == 20


def without_labels(manifest: Manifest) -> Manifest:
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "labels"}
    return {**manifest, "metadata": metadata}


def test_the_roles_are_what_kindred_rbac_prints(
    variant: Variant, configuration: Configuration, manifests: list[Manifest]
) -> None:
    settings = configuration.settings
    rendered = [each for each in manifests if each["apiVersion"].startswith("rbac.")]
    expected = {document["kind"]: document for document in rbac_documents(settings)}
    assert expected == {each["kind"]: without_labels(each) for each in rendered}
    assert len(expected) == len(rendered)
    file = MANIFESTS / "overlays" / variant.overlay / "rbac.yaml"
    assert not file.exists() or rbac_text(settings) == file.read_text("utf-8")


def test_a_node_can_be_drained_and_an_update_goes_on(configuration: Configuration, manifests: list[Manifest]) -> None:
    spec = only(manifests, "Deployment")["spec"]
    ready = 1 if configuration.settings.elects else spec["replicas"]
    budgets = of_kind(manifests, "PodDisruptionBudget").values()
    assert bool(budgets) == (ready > 1)
    assert all(budget["spec"]["minAvailable"] < ready for budget in budgets)
    update = spec["strategy"]["rollingUpdate"]
    assert update["maxSurge"] == 1
    assert spec["replicas"] - update["maxUnavailable"] == ready, "neither fewer than now, nor more than there can be"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_overlay_starts_and_without_certificates_of_clients_only_one_without_effects(
    overlay: str, tmp_path: Path
) -> None:
    file, shipped = tmp_path / "kindred.yaml", (MANIFESTS / "overlays" / overlay / "kindred.yaml").read_text("utf-8")
    with_effects = overlay != "score-offload"
    file.write_text(shipped)
    settings = load_configuration(file).settings
    assert (port_rule(settings, "extender").is_open, bool(effects(settings))) == (not with_effects, with_effects)
    assert not settings.allow_unauthenticated_effects
    file.write_text(re.sub(r"^tls\w+:.*\n", "", shipped, flags=re.MULTILINE))
    if not with_effects:
        assert load_configuration(file).settings.tls_directory is None
        return
    with pytest.raises(SettingsError) as rejected:
        load_configuration(file)
    error = str(rejected.value)
    assert error.startswith(f"{file}: listen='0.0.0.0:8888': is not the loopback")
    assert "KINDRED_TLS_DIRECTORY" in error
    file.write_text(f"{file.read_text()}allowUnauthenticatedEffects: true\n")
    assert load_configuration(file).settings.allow_unauthenticated_effects
