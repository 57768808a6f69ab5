"""The component `admin-service`: its Service finds the admin port, which wants a token, and the role is enough."""

from pathlib import Path

import pytest

from app.settings.configuration import load_configuration
from app.settings.settings import Settings
from app.settings.types import split_address
from tests.manifests.kustomize import (
    MANIFESTS,
    Manifest,
    NoRendererError,
    of_kind,
    only,
    render,
    renderer,
    selects,
    with_components,
)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """Return all objects of an overlay with the component."""
    try:
        renderer()
    except NoRendererError as error:
        pytest.skip(str(error))
    assert (MANIFESTS / "components" / "admin-service").is_dir()
    return render(with_components(tmp_path_factory.mktemp("mine"), "score-offload", ["components/admin-service"]))


@pytest.fixture
def container(manifests: list[Manifest]) -> Manifest:
    (found,) = only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    first: Manifest = found
    return first


@pytest.fixture
def settings(
    manifests: list[Manifest], container: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    for variable in container.get("env", ()):
        monkeypatch.setenv(variable["name"], variable.get("value", "x"))
    (config,) = (each for each in manifests if each["metadata"]["name"].startswith("kindred-config-"))
    (tmp_path / "kindred.yaml").write_text(config["data"]["kindred.yaml"])
    return load_configuration(tmp_path / "kindred.yaml").settings


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


def test_the_policy_opens_this_port_alone(manifests: list[Manifest]) -> None:
    spec = of_kind(manifests, "NetworkPolicy")["kindred-admin"]["spec"]
    assert (spec["policyTypes"], spec["ingress"]) == (["Ingress"], [{"ports": [{"port": "admin"}]}])


def test_the_role_names_the_service_and_port_as_the_proxy_does(manifests: list[Manifest]) -> None:
    service = of_kind(manifests, "Service")["kindred-admin"]
    name = f"{service['metadata']['name']}:{service['spec']['ports'][0]['name']}"
    (proxying,) = (
        rule for rule in of_kind(manifests, "Role")["kindred-why"]["rules"] if rule["resources"] == ["services/proxy"]
    )
    assert (proxying["verbs"], proxying["resourceNames"]) == (["create"], [name, f"https:{name}"])
