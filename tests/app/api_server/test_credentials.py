"""Where credentials are looked for, and which proxy goes with them."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.api_server.credentials import ConfigurationError, load_credentials
from tests.app.api_server.certificates import Certificates
from tests.app.api_server.kubeconfigs import SERVER, Clock, authorization, write_kubeconfig


def mount_service_account(folder: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates) -> Path:
    """Make this process look like one in a pod, and give the folder of its service account."""
    account = folder / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("of-the-pod")
    (account / "ca.crt").write_bytes(certificates.crt("authority").read_bytes())
    config = "kubernetes.config.incluster_config"
    monkeypatch.setattr(f"{config}.SERVICE_TOKEN_FILENAME", str(account / "token"))
    monkeypatch.setattr(f"{config}.SERVICE_CERT_FILENAME", str(account / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return account


def test_the_namespace_of_a_pod_is_that_of_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    account = mount_service_account(tmp_path, monkeypatch, certificates)
    assert load_credentials(None, None).namespace == ""
    (account / "namespace").write_text("shop\n")
    assert load_credentials(None, None).namespace == "shop"


# Where they are looked for.


def test_the_first_place_that_is_configured_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, None)
    default = tmp_path / "home" / ".kube" / "config"
    assert str(caught.value) == (
        "no cluster is configured: no kubeconfig given, $KUBECONFIG not set, "
        f"not in a pod (KUBERNETES_SERVICE_HOST not set), no file {default}"
    )
    default.parent.mkdir()
    write_kubeconfig(default)
    assert load_credentials(None, None).source == f"kubeconfig {default}, context here"
    mount_service_account(tmp_path, monkeypatch, certificates)
    assert load_credentials(None, None).source == "in-cluster"
    assert load_credentials(None, "here").source == f"kubeconfig {default}, context here"
    listed = write_kubeconfig(tmp_path / "listed")
    monkeypatch.setenv("KUBECONFIG", listed)
    assert load_credentials(None, None).source == f"kubeconfig {listed}, context here"
    assert load_credentials(None, "here").source == f"kubeconfig {listed}, context here"
    given = write_kubeconfig(tmp_path / "given")
    assert load_credentials(given, None).source == f"kubeconfig {given}, context here"


def test_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_kubeconfig(tmp_path / "home" / "mine")
    assert load_credentials("~/mine", None).source == f"kubeconfig {file}, context here"
    monkeypatch.setenv("KUBECONFIG", "~/mine")
    assert load_credentials(None, None).source == f"kubeconfig {file}, context here"


def test_of_listed_files_those_that_are_not_there_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = write_kubeconfig(tmp_path / "one"), write_kubeconfig(tmp_path / "two", "https://other")
    monkeypatch.setenv("KUBECONFIG", f"/nowhere/config:{one}::{two}")
    credentials = load_credentials(None, None)
    assert (credentials.source, credentials.server) == (f"kubeconfig {one}:{two}, context here", SERVER)


def test_listed_files_of_which_none_is_there_are_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    with pytest.raises(ConfigurationError, match=r"^\$KUBECONFIG: no such file: /nowhere/a, /nowhere/b$"):
        load_credentials(None, None)


def test_a_file_that_is_given_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"^kubeconfig {tmp_path}/no: No such file or directory$"):
        load_credentials(str(tmp_path / "no"), None)


def test_a_context_alone_is_not_looked_for_in_the_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    mount_service_account(tmp_path, monkeypatch, certificates)
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, "here")
    assert str(caught.value) == (
        f"no cluster is configured: no kubeconfig given, $KUBECONFIG not set, no file {tmp_path}/home/.kube/config"
    )


def test_a_pod_without_service_account_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    (mount_service_account(tmp_path, monkeypatch, certificates) / "token").unlink()
    with pytest.raises(ConfigurationError, match=r", no service account mounted, no file "):
        load_credentials(None, None)


def test_a_pod_logs_in_with_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates
) -> None:
    account = mount_service_account(tmp_path, monkeypatch, certificates)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    clock = Clock()
    credentials = load_credentials(None, None, clock=clock)
    assert credentials.server == "https://[fd00::1]:6443"
    context = credentials.tls()
    assert context is not None
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "authority"),),)]
    assert authorization(credentials) == "Bearer of-the-pod"
    (account / "token").write_text("rotated\n")
    clock.now += 60
    assert authorization(credentials) == "Bearer rotated"


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("token", "", "in-cluster, FOLDER: Token file exists but empty"),
        ("ca.crt", None, "in-cluster, FOLDER: Service certification file does not exist"),
        ("ca.crt", "no PEM", "in-cluster: certificate-authority FOLDER/ca.crt: no certificates in PEM: no start line"),
    ],
    ids=["empty-token", "no-authority", "bad-authority"],
)
def test_a_broken_service_account_is_fatal(  # noqa: PLR0913, PLR0917  # three fixtures, three columns
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    certificates: Certificates,
    file: str,
    text: str | None,
    expected: str,
) -> None:
    account = mount_service_account(tmp_path, monkeypatch, certificates)
    (account / file).unlink()
    if text is not None:
        (account / file).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, None)
    assert str(caught.value).startswith(expected.replace("FOLDER", str(account)))


def test_files_that_are_named_have_to_be_usable_to_begin_with(tmp_path: Path) -> None:
    where = f"kubeconfig {tmp_path}/config, context here"
    for cluster, user, expected in (
        ({}, {"tokenFile": "t"}, f"{tmp_path}/t: No such file or directory"),
        ({"certificate-authority": "ca"}, {}, f"File does not exist: {tmp_path}/ca"),
        (
            {"certificate-authority-data": "QUFB"},
            {},
            "certificate-authority /dev/shm/",
        ),
    ):
        config = write_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
        with pytest.raises(ConfigurationError) as caught:
            load_credentials(config, None)
        assert str(caught.value).startswith(f"{where}: {expected}")


def test_the_kubernetes_client_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, app.api_server.client; sys.exit('kubernetes' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603  # our own program


# Proxies.


@pytest.mark.parametrize(
    ("server", "own", "environment", "expected"),
    [
        pytest.param("https://h", None, {}, None, id="none"),
        pytest.param("https://h", "http://own:1", {"HTTPS_PROXY": "http://env:2"}, "http://own:1", id="own-first"),
        pytest.param("https://h", None, {"HTTPS_PROXY": "http://env:2"}, "http://env:2", id="environment"),
        pytest.param("https://h", None, {"HTTPS_PROXY": "env:2"}, "http://env:2", id="without-scheme"),
        pytest.param("https://h", None, {"HTTP_PROXY": "http://env:2"}, None, id="of-another-scheme"),
        pytest.param("http://h", None, {"HTTP_PROXY": "http://env:2"}, "http://env:2", id="of-plain-http"),
        pytest.param("https://h.in", None, {"HTTPS_PROXY": "http://e", "NO_PROXY": "x,.in"}, None, id="excepted"),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": "http://e", "NO_PROXY": "10.0.0.0/8"}, None, id="net"),
        pytest.param("https://h.in", "http://own:1", {"NO_PROXY": ".in"}, None, id="own-excepted"),
        pytest.param("https://127.0.0.1:6443", None, {"HTTPS_PROXY": "http://env:2"}, None, id="this-machine"),
        pytest.param("https://localhost", None, {"HTTPS_PROXY": "http://env:2"}, None, id="localhost"),
        pytest.param("https://localhost", "http://own:1", {}, "http://own:1", id="localhost-by-own"),
    ],
)
def test_the_proxy_is_the_configurations_or_the_environments(  # noqa: PLR0913, PLR0917  # two fixtures, four columns
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    own: str | None,
    environment: dict[str, str],
    expected: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    config = write_kubeconfig(tmp_path / "config", server, cluster={"proxy-url": own} if own else {})
    assert load_credentials(config, None).proxy == expected


def test_a_proxy_of_the_environment_that_cannot_be_used_is_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://h")
    config = write_kubeconfig(tmp_path / "config", "https://h")
    expected = rf"^kubeconfig {config}, context here: proxy of the environment: the URL is not a proxy "
    with pytest.raises(ConfigurationError, match=expected):
        load_credentials(config, None)
