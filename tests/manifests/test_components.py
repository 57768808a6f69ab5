"""The components: the Service of the admin port with its token and role, and what may be changed of the alerts."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings.configuration import Configuration
from app.settings.settings import Settings
from app.settings.types import split_address
from tests.manifests.chart_equality import values_of
from tests.manifests.conftest import ADMIN
from tests.manifests.helm import found_helm, template
from tests.manifests.kustomize import MANIFESTS, OVERLAYS, Manifest, of_kind, only, render, selects, with_components

with_admin_service = pytest.mark.parametrize("variant", [ADMIN], ids=str, indirect=True)


@pytest.fixture
def settings(configuration: Configuration) -> Settings:
    return configuration.settings


@with_admin_service
def test_the_service_finds_the_admin_port_of_the_pods(
    manifests: list[Manifest], container: Manifest, settings: Settings
) -> None:
    service = of_kind(manifests, "Service")["kindred-admin"]
    template = only(manifests, "Deployment")["spec"]["template"]
    assert selects(service["spec"]["selector"], template)
    assert selects({"app.kubernetes.io/name": "kindred"}, service), "by which `kindred why` looks for it"
    (port,) = service["spec"]["ports"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert (port["name"], port["port"], ports[port["targetPort"]]) == (
        "admin",
        8890,
        split_address(settings.admin).port,
    )


@with_admin_service
def test_whoever_reaches_the_port_needs_a_token_of_the_secret(
    manifests: list[Manifest], container: Manifest, settings: Settings
) -> None:
    assert split_address(settings.admin).host == "0.0.0.0"  # noqa: S104  # of the pod
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {each["name"]: each for each in only(manifests, "Deployment")["spec"]["template"]["spec"]["volumes"]}
    for file, name in ((settings.admin_token_file, "token"), (settings.admin_read_token_file, "read-token")):
        assert file is not None
        assert file.name == name
        secret = volumes[mounts[str(file.parent)]]["secret"]["secretName"]
        command = f"create secret generic {secret}"
        assert command in Path("docs/explain.md").read_text("utf-8")
        assert f"--from-literal={name}=" in Path("docs/explain.md").read_text("utf-8")


@with_admin_service
def test_the_policy_opens_this_port_alone(manifests: list[Manifest]) -> None:
    spec = of_kind(manifests, "NetworkPolicy")["kindred-admin"]["spec"]
    assert (spec["policyTypes"], spec["ingress"]) == (["Ingress"], [{"ports": [{"port": "admin"}]}])


@with_admin_service
def test_the_role_names_the_service_and_port_as_the_proxy_does(manifests: list[Manifest]) -> None:
    service = of_kind(manifests, "Service")["kindred-admin"]
    name = f"{service['metadata']['name']}:{service['spec']['ports'][0]['name']}"
    (proxying,) = (
        rule for rule in of_kind(manifests, "Role")["kindred-why"]["rules"] if rule["resources"] == ["services/proxy"]
    )
    assert (proxying["verbs"], proxying["resourceNames"]) == (["create"], [name, f"https:{name}"])


OPERATE = Path(__file__).parents[2] / "docs" / "operate.md"


pytestmark = pytest.mark.usefixtures("_renders")


def by_name(rules: Manifest) -> dict[str, Any]:
    """Return the alerts of a PrometheusRule by name."""
    (group,) = rules["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_the_command_of_the_page_and_the_value_of_the_chart_make_the_runbook_a_link(tmp_path: Path) -> None:
    (command,) = re.findall(r"^\$ (sed -i .* manifests/observability/.*)$", OPERATE.read_text("utf-8"), re.MULTILINE)
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)  # noqa: S602  # of our docs
    text = (tmp_path / "manifests/observability/prometheusrule.yaml").read_text("utf-8")
    links = {name: rule["annotations"]["runbook_url"] for name, rule in by_name(yaml.safe_load(text)).items()}
    assert {name: f"https://wiki.example.com/kindred#{name.lower()}" for name in links} == links
    if program := found_helm():
        observability = {"enabled": True, "runbookUrl": "https://wiki.example.com/kindred"}
        made = template(program, {**values_of("score-offload"), "observability": observability})
        chart = by_name(only(made, "PrometheusRule"))
        assert {name: rule["annotations"]["runbook_url"] for name, rule in chart.items()} == links


def test_score_offload_pages_nobody_and_the_others_for_what_stops_them(tmp_path: Path) -> None:
    pages = {}
    for overlay in OVERLAYS:
        (folder := tmp_path / overlay).mkdir()
        rules = by_name(only(render(with_components(folder, overlay, ["observability"])), "PrometheusRule"))
        pages[overlay] = {name for name, rule in rules.items() if rule["labels"]["severity"] == "critical"}
    stops = {"KindredDown", "KindredNotReady", "KindredCacheMismatch", "KindredNoLeader", "KindredTwoLeaders"}
    assert pages == {"score-offload": set(), "full-offload": stops, "decide": stops}
