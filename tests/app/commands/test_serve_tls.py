"""`kindred serve` with TLS, a health port and an admin port, as a process of its own."""

import re
import signal
import ssl
import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.app.commands.test_serve import DUMP
from tests.app.questions import NEAR_WEB, by_name
from tests.app.server.tls.secrets import Certificates, MountedSecret
from tests.app.serving import ANY_PORT, PATIENCE, Service, kindred, until
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
    answer = client.post(f"{service.url}/filter", content=QUESTION)
    assert answer.status_code == 200
    names: list[str] = answer.json()["NodeNames"]
    return names


def test_certificate_and_authorities_are_replaced_while_questions_are_answered(
    old: Certificates, new: Certificates, tmp_path: Path
) -> None:
    secret = MountedSecret(tmp_path / "secret", old.secret())

    def answered(tls: ssl.SSLContext) -> bool:
        try:
            with httpx.Client(verify=tls) as client:
                return nodes(client, service) == ["a1"]
        except httpx.TransportError:
            return False

    with (
        kindred(tmp_path, *flags(secret), stdin=DUMP) as service,
        httpx.Client(verify=old.client_tls("scheduler")) as standing,
    ):
        assert service.url.startswith("https://127.0.0.1:")
        assert nodes(standing, service) == ["a1"]
        assert not answered(old.client_tls())
        secret.replace(new.secret())
        deadline = time.monotonic() + PATIENCE
        while not answered(new.client_tls("scheduler")):
            assert time.monotonic() < deadline
            assert nodes(standing, service) == ["a1"]
            time.sleep(0.05)
        assert nodes(standing, service) == ["a1"]
        assert not answered(old.client_tls("scheduler"))
        assert not answered(old.client_tls("scheduler", trusted=new))
        assert service.end(signal.SIGTERM) == 0
    assert "extender port: reloaded certificates and authorities" in service.stderr
    assert "Traceback" not in service.stderr


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


def test_a_file_that_is_missing_ends_it_with_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with kindred(tmp_path, "serve", "--demo", *ANY_PORT, "--tls-directory", str(missing)) as service:
        assert service.process.wait(PATIENCE) == 2
    told = f"KINDRED_TLS_DIRECTORY: certificate {missing}/tls.crt: No such file or directory"
    assert f"Error: {told}\n" in service.stderr
    assert "Traceback" not in service.stderr
