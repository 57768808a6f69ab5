"""The ports of `kindred serve`: health and admin ports beside TLS, and the page of a demo."""

import re
from pathlib import Path
from typing import Final

import httpx
import pytest

from app.commands.serve import samples, with_page
from app.process.json_text import decode
from app.settings.configuration import Configuration
from app.settings.settings import Settings
from tests.app.commands.test_serve import DUMP
from tests.app.questions import NEAR_WEB, by_name
from tests.app.server.tls.secrets import Certificates, MountedSecret
from tests.app.serving import ANY_PORT, Service, kindred, until
from tests.builders import make_pod

QUESTION: Final = by_name(make_pod("p").required_affinity(NEAR_WEB), "a1", "b1")
TOKEN: Final = "t0ken"  # noqa: S105 - of a test


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("old") / "ca")


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("new") / "ca")


def flags(secret: MountedSecret) -> list[str]:
    """Serve a dump with mTLS."""
    return [
        *("serve", "--snapshot", "-", *ANY_PORT, "--profile", "affinity"),
        *("--tls-directory", str(secret.file(""))),
    ]


def nodes(client: httpx.Client, service: Service) -> list[str]:
    response = client.post(f"{service.url}/filter", content=QUESTION)
    assert response.status_code == 200
    names: list[str] = response.json()["NodeNames"]
    return names


def test_kubelet_and_prometheus_need_no_certificate_on_the_health_port(old: Certificates, tmp_path: Path) -> None:
    secret = MountedSecret(tmp_path / "secret", old.secret())
    with kindred(tmp_path, *flags(secret), "--health-port", "0", stdin=DUMP) as service:
        until(lambda: "Health and metrics at " in service.stdout)
        (url,) = re.findall(r"Health and metrics at (http://\S+)/readyz", service.stdout)
        for path in ("/livez", "/readyz", "/version", "/metrics"):
            assert httpx.get(url + path).status_code == 200
        for path in ("/filter", "/prioritize", "/bind", "/preempt", "/debug/mirror"):
            assert httpx.post(url + path, content=QUESTION).status_code == 404
        with httpx.Client(verify=old.client_tls("scheduler")) as client:
            assert client.get(f"{service.url}/readyz").status_code == 200
            assert client.get(f"{service.url}/metrics").status_code == 200
        assert "kindred_ready 1.0" in httpx.get(f"{url}/metrics").text


def test_the_admin_port_wants_the_token(old: Certificates, tmp_path: Path) -> None:
    secret = MountedSecret(tmp_path / "secret", old.secret())
    (tmp_path / "token").write_text(TOKEN)
    admin = ("--admin", "127.0.0.1:0", "--admin-token-file", str(tmp_path / "token"))
    with kindred(tmp_path, *flags(secret), *admin, stdin=DUMP) as service:
        until(lambda: "Debugging at " in service.stdout)
        (url,) = re.findall(r"Debugging at (https://\S+)", service.stdout)
        with httpx.Client(verify=old.client_tls()) as client:
            assert client.get(url).status_code == 401
            assert client.get(url, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def configured(**settings: object) -> Configuration:
    return Configuration(Settings.model_validate(settings), dict.fromkeys(settings, "here"), ())


@pytest.mark.parametrize(
    ("settings", "port"),
    [
        pytest.param({}, 8890, id="beside-the-usual-port"),
        pytest.param({"listen": "127.0.0.1:9000"}, 9002, id="beside-another-port"),
        pytest.param({"listen": "127.0.0.1:0"}, 0, id="any"),
        pytest.param({"listen": "127.0.0.1:65534"}, 0, id="no-port-left"),
        pytest.param({"listen": "localhost:8888"}, 8890, id="localhost"),
    ],
)
def test_a_demo_has_its_page_beside_the_port_of_schedulers(settings: dict[str, object], port: int) -> None:
    found = with_page(configured(**settings))
    assert (f"127.0.0.1:{port}", "--demo") == (found.settings.admin, found.sources["admin"])


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"admin": "127.0.0.1:7000"}, id="a-port-of-ones-own"),
        pytest.param({"admin": ""}, id="none-wanted"),
        pytest.param({"listen": "0.0.0.0:8888"}, id="others-can-reach-it"),
    ],
)
def test_what_was_said_of_the_admin_port_holds_and_no_page_is_opened_to_others(settings: dict[str, object]) -> None:
    assert configured(**settings) == with_page(configured(**settings))


def test_the_samples_are_the_pods_of_the_requests_of_the_demo() -> None:
    found = {each.name: decode(bytes(each.pod))["metadata"]["name"] for each in samples()}
    assert found == {
        "required-affinity": "pod-podaffinity-required",
        "required-anti-affinity": "pod-podantiaffinity-required",
        "target": "pod-podaffinity-target",
        "web": "web-2kr5hxrdc4-btm4c",
    }
