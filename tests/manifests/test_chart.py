"""The chart: each registration is its overlay, other names change names alone, and wrong values are named."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import __version__
from app.scheduler_configuration.scheduler_config import parse_scheduler_config
from app.settings.configuration import HEAD, load_configuration
from app.settings.settings import SettingsError
from tests.manifests.chart_equality import OPTIONS, REGISTRATION, comparable, values_of
from tests.manifests.chart_schema import SCHEMA, chart_settings
from tests.manifests.conftest import ADMIN, VARIANTS, Variant
from tests.manifests.helm import CHART, REGISTRATIONS, ChartError, found_helm, run, template
from tests.manifests.kustomize import (
    DECIDE,
    MANIFESTS,
    OVERLAYS,
    Manifest,
    of_kind,
    only,
    render,
    with_components,
)

RECOMMENDED = {"app.kubernetes.io/name", "app.kubernetes.io/version", "app.kubernetes.io/part-of"}


@pytest.fixture(scope="module")
def helm() -> Path:
    """Return helm. Building it takes minutes, which `make e2e` spends: it has the test of equality, too."""
    found = found_helm()
    if found is None:
        pytest.skip("no helm on PATH, and `make e2e` has built none")
    return found


@pytest.mark.parametrize("variant", [*VARIANTS, ADMIN], ids=str)
@pytest.mark.usefixtures("_renders")
def test_each_registration_is_its_overlay_with_the_same_components(
    helm: Path, variant: Variant, tmp_path: Path
) -> None:
    overlay = comparable(render(with_components(tmp_path, variant.overlay, variant.components)))
    chart = comparable(template(helm, values_of(variant.overlay, variant.components)))
    assert overlay.keys() == chart.keys()
    assert overlay == chart


def test_there_is_a_registration_for_each_overlay_and_the_schema_knows_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert sorted(OVERLAYS) == sorted(REGISTRATIONS) == sorted(schema["properties"]["registration"]["enum"])


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_another_release_in_another_namespace_changes_names_alone(helm: Path, registration: str) -> None:
    components = [name for name in OPTIONS if name not in {"components/cert-manager", "components/decide-namespaces"}]
    if registration == DECIDE:
        components = [*OPTIONS]
    values = values_of(registration, components)
    other = yaml.safe_dump_all(template(helm, values, name="mine", namespace="elsewhere"))
    assert "mine-kindred" in other
    renamed = other.replace("mine-kindred", "kindred").replace("elsewhere", "kindred")
    assert comparable(template(helm, values)) == comparable(yaml.safe_load_all(renamed))


@pytest.mark.parametrize("release", ["kindred", "prod"])
def test_the_alerts_select_the_job_of_each_release(helm: Path, release: str) -> None:
    """The Prometheus operator names a job after the Service, unless the monitor has a `jobLabel`."""
    values = {"serviceMonitor": {"enabled": True}, "observability": {"enabled": True}}
    manifests = template(helm, values, name=release)
    monitor = only(manifests, "ServiceMonitor")["spec"]
    chosen = monitor["selector"]["matchLabels"].items()
    services = of_kind(manifests, "Service").values()
    (scraped,) = (each["metadata"] for each in services if each["metadata"]["labels"].items() >= chosen)
    job = scraped["labels"].get(monitor.get("jobLabel"), scraped["name"])
    patterns = re.findall(r'job=~"([^"]+)"', json.dumps(only(manifests, "PrometheusRule")).replace('\\"', '"'))
    assert len(patterns) > 1
    assert all(re.fullmatch(pattern, job) for pattern in patterns), job


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_every_object_has_the_recommended_labels_in_the_chart_and_in_the_overlay(helm: Path, registration: str) -> None:
    managed = {
        "Helm": template(helm, values_of(registration)),
        "kustomize": render(MANIFESTS / "overlays" / registration),
    }
    for manager, manifests in managed.items():
        for manifest in manifests:
            labels = manifest["metadata"]["labels"]
            assert labels.keys() >= RECOMMENDED, manifest["metadata"]["name"]
            assert labels["app.kubernetes.io/managed-by"] == manager
            assert labels["app.kubernetes.io/version"] == __version__


@pytest.mark.parametrize("registration", [each for each in REGISTRATIONS if each != DECIDE])
def test_the_registration_is_an_output_for_the_name_of_the_release(helm: Path, registration: str) -> None:
    values = {**values_of(registration), "settings": {"listen": "0.0.0.0:9999"}}
    (config,) = (
        manifest["data"]["scheduler.yaml"]
        for name, manifest in of_kind(template(helm, values, name="mine", namespace="n"), "ConfigMap").items()
        if name.endswith("-registration")
    )
    expected = yaml.safe_load((MANIFESTS / "scheduler" / f"{registration}.yaml").read_text("utf-8"))
    expected["extenders"][0]["urlPrefix"] = (
        expected["extenders"][0]["urlPrefix"].replace("kindred.kindred", "mine-kindred.n").replace("8888", "9999")
    )
    assert expected == yaml.safe_load(config)


def test_the_registration_follows_the_settings_that_the_doctor_compares(helm: Path) -> None:
    settings = {"tlsDirectory": "/etc/kindred-tls", "httpTimeout": 0.5}
    values = {"image": {"repository": "registry.example.com:5000/kindred"}, "settings": settings}
    config = of_kind(template(helm, values), "ConfigMap")[REGISTRATION]["data"]["scheduler.yaml"]
    (extender,) = parse_scheduler_config(config).extenders
    assert (extender.url_prefix.partition(":")[0], extender.enable_https, extender.timeout) == ("https", True, 0.5)
    assert extender.tls_config is not None
    assert (extender.tls_config.has_ca, extender.tls_config.has_certificate) == (True, True)
    assert template(helm, {"settings": None})


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_the_notes_have_the_configuration_of_kube_scheduler(helm: Path, registration: str) -> None:
    arguments = ["install", "kindred", str(CHART), "--namespace", "kindred", "--dry-run=client", "--values", "-"]
    _, _, notes = run(helm, arguments, values_of(registration)).partition("\nNOTES:\n")
    name = "kindred-scheduler-config" if registration == DECIDE else REGISTRATION
    assert f"registration {registration} " in notes
    assert name in notes
    assert "apiVersion: kubescheduler.config.k8s.io/v1\n" in notes
    assert "//kindred.kindred.svc:8888" in notes


def test_settings_of_the_values_are_over_those_of_the_registration_and_whole_numbers_stay_whole(
    helm: Path, tmp_path: Path
) -> None:
    values = {**values_of("score-offload"), "settings": {"maxScore": 7, "staleAfter": 1_000_000_000}}
    file = tmp_path / "kindred.yaml"
    text = of_kind(template(helm, values), "ConfigMap")["kindred-config"]["data"]["kindred.yaml"]
    assert "staleAfter: 1000000000\n" in text
    file.write_text(text)
    settings = load_configuration(file).settings
    assert settings.max_score == 7
    assert settings.deadline == 0.8


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_every_registration_starts_and_without_certificates_of_clients_only_one_without_effects(
    helm: Path, registration: str, tmp_path: Path
) -> None:
    file, values = tmp_path / "kindred.yaml", values_of(registration)
    for settings, starts in (
        ({}, True),
        ({"tlsDirectory": "", "tlsClientNames": []}, registration == "score-offload"),
    ):
        rendered = template(helm, {**values, "settings": settings})
        file.write_text(of_kind(rendered, "ConfigMap")["kindred-config"]["data"]["kindred.yaml"])
        if starts:
            load_configuration(file)
        else:
            with pytest.raises(SettingsError, match=r"listen='0\.0\.0\.0:8888': is not the loopback"):
                load_configuration(file)


def test_rules_of_the_values_replace_those_of_the_registration(helm: Path) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    role = only(template(helm, {**values_of("decide"), "rbac": {"rules": rules}}), "ClusterRole")
    assert rules == role["rules"]


@pytest.mark.parametrize("registration", REGISTRATIONS)
def test_no_component_brings_a_network_policy_where_none_is_wanted(helm: Path, registration: str) -> None:
    """A pod that any policy selects gets only what the policies allow, so one for the admin port closes the others."""
    components = [name for name in OPTIONS if name not in {"components/cert-manager", "components/decide-namespaces"}]
    rendered = template(helm, {**values_of(registration, components), "networkPolicy": {"enabled": False}})
    assert not of_kind(rendered, "NetworkPolicy")


def test_certificates_are_mounted_where_the_settings_name_them(helm: Path) -> None:
    values = {**values_of("score-offload"), "settings": {"tlsDirectory": "/etc/kindred-tls"}}
    spec = only(template(helm, {**values, "tls": {"secretName": "own"}}), "Deployment")["spec"]["template"]["spec"]
    assert [volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume] == ["own"]
    values["tls"] = {"source": "cert-manager"}
    assert [*of_kind(template(helm, values), "Issuer")] == ["kindred-root", "kindred-ca"]


def test_certificates_are_mounted_in_another_folder_and_there_may_be_no_admin_port(helm: Path) -> None:
    values = {**values_of("full-offload"), "settings": {"tlsDirectory": "/etc/own", "admin": ""}}
    rendered = template(helm, values)
    (container,) = only(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert {"name": "tls", "mountPath": "/etc/own", "readOnly": True} in container["volumeMounts"]
    assert 'admin: ""\n' in of_kind(rendered, "ConfigMap")["kindred-config"]["data"]["kindred.yaml"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"registration": "offload"}, "'/registration'.*'full-offload'", id="no registration"),
        pytest.param({"registration": ["decide", "score-offload"]}, "'/registration'", id="two registrations"),
        pytest.param({"registrations": "decide"}, "'registrations' not allowed", id="no value of the chart"),
        pytest.param({"replicas": 0}, "'/replicas'", id="no replica"),
        pytest.param({"settings": {"maxScroe": 3}}, "'maxScroe' not allowed", id="no setting"),
        pytest.param({"settings": {"maxScore": 300}}, "'/settings/maxScore'", id="a setting out of range"),
        pytest.param({"settings": {"listen": "0.0.0.0:http"}}, "'/settings/listen'", id="no port"),
        pytest.param({"image": {"digest": "latest"}}, "'/image/digest'", id="no digest"),
        pytest.param({"tls": {"source": "vault"}}, "'/tls/source'", id="no source of certificates"),
        pytest.param({"tls": {"source": "cert-manager"}}, "tls.source: .*tlsDirectory", id="certificates of no use"),
        pytest.param({"registration": DECIDE}, "scheduler.image.tag: set the version", id="no release"),
        pytest.param({"settings": {"listen": "127.0.0.1:8888"}}, "'/settings/listen'", id="a port that nobody reaches"),
        pytest.param(
            {"image": {"repository": "registry.example.com:5000/kindred:0.1.0"}},
            "'/image/repository'",
            id="a tag twice",
        ),
        pytest.param(
            {"registration": "full-offload", "settings": {"leaderElection": "off"}},
            "settings.leaderElection: off, and Kindred binds",
            id="two that bind",
        ),
        pytest.param(
            {**values_of(DECIDE), "settings": {"decideSchedulers": ["batch"]}},
            "settings.decideSchedulers: .*is made for kindred",
            id="a profile that is not there",
        ),
        pytest.param(
            {**values_of(DECIDE), "settings": {"decide": "off"}},
            "settings.decide: .*is made for any-node",
            id="a profile without filters, and nobody who assumes pods",
        ),
        pytest.param(
            {"registration": "full-offload", "settings": {"bind": False}},
            "settings.bind: .*is made for true",
            id="a bindVerb, and nobody who binds",
        ),
        pytest.param(
            {"settings": {"leaderElection": "kindred"}},
            "settings.leaderElection: the registration score-offload has no Role for a Lease",
            id="a Lease that nobody may take",
        ),
        pytest.param(
            {"settings": {"admin": ""}, "adminService": {"enabled": True}},
            "adminService.enabled: settings.admin is empty",
            id="a Service for no port",
        ),
        pytest.param({"decideNamespaces": {"enabled": True}}, "decideNamespaces.enabled: ", id="no second scheduler"),
    ],
)
def test_what_the_chart_cannot_be_made_of_is_an_error_that_names_it(
    helm: Path, values: dict[str, Any], named: str
) -> None:
    with pytest.raises(ChartError, match=named):
        template(helm, values)


def test_the_settings_of_the_schema_are_those_of_the_file_of_settings() -> None:
    text = SCHEMA.read_text("utf-8")
    assert json.loads(text)["definitions"]["settings"] == chart_settings()
    helpers = (CHART / "templates/_helpers.tpl").read_text("utf-8")
    (written_off,) = re.findall(r"has \$key \(list ([^)]*)\)", helpers)
    properties = chart_settings()["properties"]
    assert {*re.findall(r'"(\w+)"', written_off)} == {
        key for key in properties if {"const": False} in anys(properties[key])
    }


def anys(schema: Manifest) -> list[Manifest]:
    found: list[Manifest] = schema.get("anyOf", [])
    return found


def test_every_setting_of_an_overlay_may_be_a_value_and_off_may_be_written_bare(helm: Path) -> None:
    for registration in REGISTRATIONS:
        file = MANIFESTS / "overlays" / registration / "kindred.yaml"
        settings = {key: each for key, each in yaml.safe_load(file.read_text("utf-8")).items() if key not in HEAD}
        template(helm, {**values_of(registration), "settings": settings})
    rendered = template(helm, {**values_of("score-offload"), "settings": {"preempt": False}})
    assert 'preempt: "off"\n' in of_kind(rendered, "ConfigMap")["kindred-config"]["data"]["kindred.yaml"]


def test_helm_finds_nothing_wrong_with_it(helm: Path) -> None:
    assert "0 chart(s) failed" in run(helm, ["lint", "--strict", str(CHART), "--values", "-"], {})


def test_what_the_chart_shares_with_the_overlays_is_linked_and_never_copied() -> None:
    shared = [path for path in (CHART / "files").rglob("*") if not path.is_dir()]
    assert len(shared) > 20
    for path in shared:
        assert path.is_symlink(), path
        assert MANIFESTS / path.relative_to(CHART / "files") == path.resolve()


def test_the_defaults_are_those_of_the_schema_and_of_the_base(helm: Path) -> None:
    values: Manifest = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert values.keys() == schema["properties"].keys() - {"global"}
    (container,) = only(template(helm, {}), "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"kindred:{__version__}"
