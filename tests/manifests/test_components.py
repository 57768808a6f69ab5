"""The components: the Service of the admin port with its token and role, and what may be changed of the alerts."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings.configuration import Configuration
from app.settings.settings import Settings
from app.settings.types import split_address
from tests.manifests.conftest import ADMIN
from tests.manifests.kustomize import MANIFESTS, Manifest, of_kind, only, render, selects, with_components

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


def rules(folder: Path) -> dict[str, Any]:
    """Render a kustomization, and give the alerts of its PrometheusRule by name."""
    (group,) = only(render(folder), "PrometheusRule")["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_the_one_setting_is_in_every_link_to_the_runbook(tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "manifests")
    setting = tmp_path / "manifests" / "observability" / "settings.yaml"
    published = yaml.safe_load(setting.read_text("utf-8"))["data"]["runbookUrl"]
    setting.write_text(setting.read_text("utf-8").replace(published, "https://docs.example.com/a/b.html"), "utf-8")
    kustomization = {"components": ["../manifests/observability"]}
    (mine := tmp_path / "mine").mkdir()
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    links = {name: rule["annotations"]["runbook_url"] for name, rule in rules(mine).items()}
    assert {name: f"https://docs.example.com/a/b.html#{name.lower()}" for name in links} == links


def test_the_snippet_of_the_page_lowers_the_two_alerts_that_depend_on_the_registration(tmp_path: Path) -> None:
    text = OPERATE.read_text("utf-8").partition("<!-- severity: begin -->\n```yaml\n")[2].partition("```")[0]
    folder = with_components(tmp_path, "score-offload", ["observability"])
    before = {name: rule["labels"]["severity"] for name, rule in rules(folder).items()}
    kustomization = folder / "kustomization.yaml"
    kustomization.write_text(kustomization.read_text("utf-8") + text, "utf-8")
    after = {name: rule["labels"]["severity"] for name, rule in rules(folder).items()}
    assert {**before, "KindredDown": "warning", "KindredNotReady": "warning"} == after
    assert before != after
