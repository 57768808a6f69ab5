"""Where credentials are looked for, which proxy goes with them, and how they are kept fresh."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from app.api_server.credentials import ConfigurationError, Credentials, CredentialsError, load_credentials
from tests.app.api_server.client_setting import (
    SERVER,
    Certificates,
    Clock,
    authorization,
    certificate_status,
    exec_user,
    printing,
    runs,
    write_kubeconfig,
    write_plugin,
)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificates: Certificates) -> Path:
    """Make this process look like one in a pod, and give the folder of its service account."""
    account = tmp_path / "serviceaccount"
    account.mkdir()
    (account / "token").write_text("of-the-pod")
    (account / "ca.crt").write_bytes(certificates.crt("authority").read_bytes())
    config = "kubernetes.config.incluster_config"
    monkeypatch.setattr(f"{config}.SERVICE_TOKEN_FILENAME", str(account / "token"))
    monkeypatch.setattr(f"{config}.SERVICE_CERT_FILENAME", str(account / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return account


def test_the_namespace_of_a_pod_is_that_of_its_service_account(account: Path) -> None:
    assert load_credentials(None, None).namespace == ""
    (account / "namespace").write_text("shop\n")
    assert load_credentials(None, None).namespace == "shop"


def test_the_token_of_a_pod_is_read_up_to_a_bound(account: Path) -> None:
    (account / "token").write_text("a" * 65537)
    with pytest.raises(ConfigurationError, match=rf"^in-cluster, {account}: .*more than 65536 bytes"):
        load_credentials(None, None)


# Where they are looked for.


def test_the_first_place_that_is_configured_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: Path
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, None)
    default = tmp_path / "home" / ".kube" / "config"
    nothing = "no cluster is configured: no kubeconfig given, $KUBECONFIG not set, "
    assert str(caught.value) == f"{nothing}not in a pod (KUBERNETES_SERVICE_HOST not set), no file {default}"
    default.parent.mkdir()
    write_kubeconfig(default)
    assert load_credentials(None, None).source == f"kubeconfig {default}, context here"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert load_credentials(None, None).source == "in-cluster"
    assert load_credentials(None, "here").source == f"kubeconfig {default}, context here"
    listed = write_kubeconfig(tmp_path / "listed")
    monkeypatch.setenv("KUBECONFIG", listed)
    assert load_credentials(None, None).source == f"kubeconfig {listed}, context here"
    given = write_kubeconfig(tmp_path / "given")
    assert load_credentials(given, None).source == f"kubeconfig {given}, context here"
    monkeypatch.delenv("KUBECONFIG")
    default.unlink()
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, "here")  # a context is not looked for in the pod
    assert str(caught.value) == f"{nothing}no file {default}"
    (account / "token").unlink()
    with pytest.raises(ConfigurationError, match=r", no service account mounted, no file "):
        load_credentials(None, None)


def test_of_listed_files_those_that_are_not_there_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = write_kubeconfig(tmp_path / "one"), write_kubeconfig(tmp_path / "two", "https://other")
    monkeypatch.setenv("KUBECONFIG", f"/nowhere/config:{one}::{two}")
    credentials = load_credentials(None, None)
    assert (credentials.source, credentials.server) == (f"kubeconfig {one}:{two}, context here", SERVER)
    monkeypatch.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    with pytest.raises(ConfigurationError, match=r"^\$KUBECONFIG: no such file: /nowhere/a, /nowhere/b$"):
        load_credentials(None, None)


def test_a_file_that_is_given_has_to_be_there_and_a_tilde_is_home(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"^kubeconfig {tmp_path}/no: No such file or directory$"):
        load_credentials(str(tmp_path / "no"), None)
    file = write_kubeconfig(tmp_path / "home" / "mine")
    assert load_credentials("~/mine", None).source == f"kubeconfig {file}, context here"


def test_a_pod_logs_in_with_its_service_account(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_broken_service_account_is_fatal(account: Path, file: str, text: str | None, expected: str) -> None:
    (account / file).unlink()
    if text is not None:
        (account / file).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_credentials(None, None)
    assert str(caught.value).startswith(expected.replace("FOLDER", str(account)))


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
        pytest.param("https://h", None, {"HTTP_PROXY": "http://env:2"}, None, id="of-another-scheme"),
        pytest.param("https://h.in", None, {"HTTPS_PROXY": "http://e", "NO_PROXY": "x,.in"}, None, id="excepted"),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": "http://e", "NO_PROXY": "10.0.0.0/8"}, None, id="net"),
        pytest.param("https://127.0.0.1:6443", None, {"HTTPS_PROXY": "http://env:2"}, None, id="this-machine"),
        pytest.param("https://localhost", None, {"HTTPS_PROXY": "http://env:2"}, None, id="localhost"),
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


# How they are kept fresh.

RETAINED = "keeping the previous version"


def test_plain_http_has_no_tls_and_no_login(tmp_path: Path) -> None:
    credentials = load_credentials(write_kubeconfig(tmp_path / "config", "http://h", user={"token": "t"}), None)
    assert credentials.tls() is None
    assert authorization(credentials, refresh=True) is None


def with_token_file(folder: Path, clock: Clock) -> tuple[Credentials, Path]:
    token = folder / "token"
    token.write_text("one")
    config = write_kubeconfig(folder / "config", user={"tokenFile": "token"})
    return load_credentials(config, None, clock=clock), token


def test_a_token_file_is_read_again_once_a_minute_and_at_once_on_request(tmp_path: Path) -> None:
    clock = Clock()
    credentials, token = with_token_file(tmp_path, clock)
    token.write_text("two")
    clock.now += 59
    assert authorization(credentials) == "Bearer one"
    clock.now += 1
    assert authorization(credentials) == "Bearer two"
    token.write_text("three")
    clock.now += 59
    assert authorization(credentials) == "Bearer two"
    assert authorization(credentials, refresh=True) == "Bearer three"


def test_a_token_file_that_is_gone_leaves_the_token_that_was_read_unless_that_was_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    credentials, token = with_token_file(tmp_path, clock)
    token.unlink()
    clock.now += 60
    assert authorization(credentials) == authorization(credentials) == "Bearer one"
    assert caplog.messages == [
        f"kubeconfig {tmp_path}/config, context here: {token}: No such file or directory; {RETAINED}"
    ]
    token.write_text("")
    with pytest.raises(CredentialsError, match=r"context here: the user's tokenFile is no login"):
        authorization(credentials, refresh=True)


def with_plugin(folder: Path, script: str, wall_clock: Clock | None = None) -> Credentials:
    config = write_kubeconfig(folder / "config", user=exec_user(write_plugin(folder, script)))
    return load_credentials(config, None, wall_clock=wall_clock or Clock(0.0))


def test_a_plugin_runs_once_for_a_login_again_before_that_ends_and_at_once_on_request(tmp_path: Path) -> None:
    wall_clock = Clock(0.0)
    credentials = with_plugin(tmp_path, printing('{"token": "abc"}'), wall_clock)
    assert runs(tmp_path) == 0
    assert authorization(credentials) == "Bearer abc"
    wall_clock.now += 1e9
    assert authorization(credentials) == "Bearer abc"
    assert runs(tmp_path) == 1
    write_plugin(tmp_path, printing('{"token": "abc", "expirationTimestamp": "1970-01-01T01:00:00Z"}'))
    wall_clock.now = 0.0
    authorization(credentials, refresh=True)
    wall_clock.now = 3539.0
    authorization(credentials)
    assert runs(tmp_path) == 2
    write_plugin(tmp_path, "exit 1")
    wall_clock.now = 3540.0
    with pytest.raises(CredentialsError, match=r"exec: process returned 1$"):
        authorization(credentials)
    assert runs(tmp_path) == 3


def test_a_plugin_that_fails_is_an_error_each_time_and_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "kubernetes")
    credentials = with_plugin(tmp_path, "echo no >&2; exit 1")
    for count in (1, 2):
        with pytest.raises(CredentialsError) as caught:
            authorization(credentials)
        expected = f"{credentials.source}: exec plugin {tmp_path}/plugin: exec: process returned 1. no"
        assert (str(caught.value), runs(tmp_path)) == (expected, count)
    assert caplog.messages == []
    assert capfd.readouterr() == ("", "")


def test_calls_at_the_same_time_share_one_run_and_the_loop_goes_on(tmp_path: Path) -> None:
    credentials = with_plugin(tmp_path, "sleep 0.3\n" + printing('{"token": "abc"}'))

    async def main() -> int:
        calls = asyncio.gather(*(credentials.headers() for _ in range(20)))
        turns = 0
        while not calls.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert await calls == [{"Authorization": "Bearer abc"}] * 20
        await asyncio.gather(*(credentials.headers(refresh=True) for _ in range(20)))
        return turns

    assert asyncio.run(main()) > 10
    assert runs(tmp_path) == 2


def test_a_forced_refresh_does_not_make_do_with_one_that_is_not(tmp_path: Path, certificates: Certificates) -> None:
    # The minute of the authority's file is over, so a first call looks at that, and leaves the login alone.
    clock = Clock()
    script = write_plugin(tmp_path, printing('{"token": "abc"}'))
    config = write_kubeconfig(
        tmp_path / "config",
        cluster={"certificate-authority": str(certificates.crt("authority"))},
        user=exec_user(script),
    )
    credentials = load_credentials(config, None, clock=clock)

    async def main() -> None:
        await credentials.headers()
        clock.now += 60
        await asyncio.gather(credentials.headers(), *(credentials.headers(refresh=True) for _ in range(5)))

    asyncio.run(main())
    assert runs(tmp_path) == 2


def test_a_caller_that_gives_up_does_not_end_the_refresh_of_others(tmp_path: Path) -> None:
    credentials = with_plugin(tmp_path, "sleep 0.3\n" + printing('{"token": "abc"}'))

    async def main() -> dict[str, str]:
        first, second = (asyncio.create_task(credentials.headers()) for _ in range(2))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(main()) == {"Authorization": "Bearer abc"}
    assert runs(tmp_path) == 1


def test_a_failure_that_nobody_waits_for_is_not_reported_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = with_plugin(tmp_path, "sleep 0.1; exit 1")

    async def main() -> None:
        call = asyncio.create_task(credentials.headers())
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.sleep(0.4)

    asyncio.run(main())
    assert caplog.messages == []


def test_a_login_is_not_sent_to_another_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    config = write_kubeconfig(tmp_path / "config", user={"token": "one"})
    credentials = load_credentials(config, None, clock=clock)
    write_kubeconfig(tmp_path / "config", "https://other", user={"token": "of-the-other"})
    clock.now += 60
    assert authorization(credentials) == "Bearer one"
    expected = f"kubeconfig {config}, context here: the server is another one by now: needs a restart"
    assert caplog.messages == [f"{expected}; {RETAINED}"]
    with pytest.raises(CredentialsError, match=expected):
        authorization(credentials, refresh=True)


def test_the_context_stays_the_one_of_the_start(tmp_path: Path) -> None:
    clock = Clock()
    config = write_kubeconfig(tmp_path / "config", user={"token": "one"})
    credentials = load_credentials(config, None, clock=clock)
    document = yaml.safe_load((tmp_path / "config").read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "c", "user": "v"}})
    document["users"] = [
        {"name": "u", "user": {"token": "two"}},
        {"name": "v", "user": {"token": "of-another"}},
    ]
    (tmp_path / "config").write_text(yaml.safe_dump({**document, "current-context": "there"}))
    clock.now += 60
    assert authorization(credentials) == "Bearer two"


# Certificates that change.


def with_certificate_files(folder: Path, certificates: Certificates, clock: Clock) -> Credentials:
    replace_client(folder, certificates, "alice")
    (folder / "ca.crt").write_bytes(certificates.crt("authority").read_bytes())
    config = write_kubeconfig(
        folder / "config",
        cluster={"certificate-authority": "ca.crt"},
        user={"client-certificate": "client.crt", "client-key": "client.key"},
    )
    return load_credentials(config, None, clock=clock)


def replace_client(folder: Path, certificates: Certificates, name: str) -> None:
    (folder / "client.crt").write_bytes(certificates.crt(name).read_bytes())
    (folder / "client.key").write_bytes(certificates.key(name).read_bytes())


def test_certificate_files_that_changed_are_a_new_context_a_minute_later_or_on_request(
    tmp_path: Path, certificates: Certificates
) -> None:
    clock = Clock()
    credentials = with_certificate_files(tmp_path, certificates, clock)
    first = credentials.tls()
    clock.now += 60
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    replace_client(tmp_path, certificates, "bob")
    clock.now += 59
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    clock.now += 1
    authorization(credentials)
    assert credentials.tls() not in (first, None)
    assert credentials.generation == 1
    (tmp_path / "ca.crt").write_bytes(certificates.crt("stranger").read_bytes())
    authorization(credentials, refresh=True)
    assert credentials.generation == 2


def test_half_changed_certificates_leave_the_context_that_was(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    credentials = with_certificate_files(tmp_path, certificates, clock)
    first = credentials.tls()
    (tmp_path / "client.crt").write_bytes(certificates.crt("bob").read_bytes())
    clock.now += 60
    authorization(credentials)
    authorization(credentials)
    assert (credentials.tls(), credentials.generation) == (first, 0)
    where = f"kubeconfig {tmp_path}/config, context here"
    assert caplog.messages == [
        f"{where}: client-key {tmp_path}/client.key does not fit client-certificate {tmp_path}/client.crt; {RETAINED}"
    ]
    replace_client(tmp_path, certificates, "bob")
    clock.now += 60
    authorization(credentials)
    assert credentials.generation == 1


def test_certificates_that_were_refused_are_not_kept(tmp_path: Path, certificates: Certificates) -> None:
    credentials = with_certificate_files(tmp_path, certificates, Clock())
    (tmp_path / "client.key").unlink()
    with pytest.raises(CredentialsError, match=rf"File does not exist: {tmp_path}/client.key$"):
        authorization(credentials, refresh=True)


def test_a_certificate_of_a_plugin_is_a_new_context(tmp_path: Path, certificates: Certificates) -> None:
    credentials = with_plugin(tmp_path, printing(certificate_status(certificates, "alice")))
    seen: list[tuple[object, int]] = [(credentials.tls(), credentials.generation)]
    for name in ("alice", "alice", "bob"):
        write_plugin(tmp_path, printing(certificate_status(certificates, name)))
        assert authorization(credentials, refresh=True) is None
        seen.append((credentials.tls(), credentials.generation))
    assert [generation for _, generation in seen] == [0, 1, 1, 2]
    assert seen[1] == seen[2]
    assert len({id(context) for context, _ in seen}) == 3


def test_a_certificate_of_a_plugin_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    credentials = with_plugin(tmp_path, printing('{"clientCertificateData": "C", "clientKeyData": "K"}'))
    expected = rf"context here: exec plugin {tmp_path}/plugin: clientCertificateData: no certificate in PEM$"
    with pytest.raises(CredentialsError, match=expected):
        authorization(credentials)
