"""What one context of kubeconfig files says, how its plugin logs in, URLs; and that no error shows a secret."""

import base64
import json
import math
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

import app.api_server.login
from app.api_server.login import bearer, current_context, own_namespace, read_kubeconfig
from app.api_server.tls import (
    ClusterAccess,
    ConfigurationError,
    CredentialsError,
    TlsSettings,
    checked_proxy,
    checked_url,
)
from tests.app.api_server.client_setting import (
    SERVER,
    V1,
    Clock,
    exec_user,
    printing,
    runs,
    write_kubeconfig,
    write_plugin,
)
from tests.app.yaml_bomb import BOMB, REJECTION

NOW = 1_893_456_000.0  # 2030-01-01T00:00:00Z
SECRET = "s3cr3t"  # noqa: S105  # looked for in errors


def read(  # noqa: PLR0913  # the parts of a kubeconfig
    folder: Path,
    *,
    server: str = SERVER,
    cluster: dict[str, object] | None = None,
    user: dict[str, object] | None = None,
    run_plugin: bool = True,
    now: float = NOW,
) -> ClusterAccess:
    config = write_kubeconfig(folder / "config", server, cluster=cluster, user=user)
    return read_kubeconfig([config], "here", run_plugin=run_plugin, wall_clock=Clock(now))


def tls(access: ClusterAccess) -> TlsSettings:
    assert access.tls is not None
    return access.tls


# Tokens.


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "a\r\nX-Evil: 1", "ü", "a\x7f"])
def test_what_is_no_token_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match=r"^(empty|not a token)$"):
        bearer(token)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({}, "", id="nobody"),
        pytest.param({"token": "abc"}, "Bearer abc", id="token"),
        pytest.param({"username": "ann", "password": "x"}, "Basic YW5uOng=", id="basic"),
        pytest.param({"tokenFile": "t"}, "Bearer of-the-file", id="file"),
    ],
)
def test_a_login_is_read(tmp_path: Path, user: dict[str, object], expected: str) -> None:
    (tmp_path / "t").write_text("of-the-file\n")
    access = read(tmp_path, user=user)
    assert access == ClusterAccess(f"kubeconfig {tmp_path}/config, context here", SERVER, TlsSettings(), expected)


@pytest.mark.parametrize("size", [64 * 1024, 64 * 1024 + 1])
def test_a_token_file_is_read_up_to_a_bound(tmp_path: Path, size: int) -> None:
    (tmp_path / "t").write_text("a" * size)
    if size <= 64 * 1024:
        assert read(tmp_path, user={"tokenFile": "t"}).authorization == "Bearer " + "a" * size
        return
    with pytest.raises(ConfigurationError, match=rf"context here: {tmp_path}/t: more than 65536 bytes$"):
        read(tmp_path, user={"tokenFile": "t"})
    assert read(tmp_path, user={"tokenFile": "t", "token": "abc"}).authorization == "Bearer abc"


def test_over_plain_http_nobody_logs_in(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, printing('{"token": "abc"}'))
    users: list[dict[str, object]] = [
        {"token": "abc"},
        {"client-certificate": "c", "client-key": "k"},
        exec_user(script),
    ]
    for user in users:
        access = read(tmp_path, server="HTTP://127.0.0.1:8001/", user=user)
        assert (access.server, access.tls, access.authorization) == ("http://127.0.0.1:8001", None, "")
    assert runs(tmp_path) == 0


# Clusters and contexts.


def test_the_way_to_the_server_is_read(tmp_path: Path) -> None:
    cluster = {"tls-server-name": "kube", "insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"}
    access = read(tmp_path, cluster=cluster)
    assert tls(access) == TlsSettings(server_name="kube", insecure=True)
    assert access.proxy == "http://proxy:3128"
    assert read(tmp_path, server="http://h", cluster={"proxy-url": "http://proxy:3128"}).proxy == "http://proxy:3128"


def test_certificates_are_read_from_data_and_files(tmp_path: Path) -> None:
    for name in ("ca", "c", "k"):
        (tmp_path / name).write_bytes(name.encode())
    cluster: dict[str, object] = {"certificate-authority": "ca"}
    user: dict[str, object] = {"client-certificate": "c", "client-key": "k"}
    material = tls(read(tmp_path, cluster=cluster, user=user)).read()
    assert (material.authority, material.certificate, material.key) == (b"ca", b"c", b"k")
    data = {"client-certificate-data": base64.b64encode(b"C").decode(), "client-key-data": "Sw=="}
    material = tls(read(tmp_path, cluster=cluster, user={**user, **data})).read()
    assert (material.authority, material.certificate, material.key) == (b"ca", b"C", b"K")


def entries(*names: str, server: str) -> dict[str, object]:
    return {
        "contexts": [{"name": name, "context": {"cluster": name, "namespace": server}} for name in names],
        "clusters": [{"name": name, "cluster": {"server": f"https://{server}"}} for name in names],
    }


def test_of_several_files_the_first_entry_and_current_context_count(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("one", "two", "three")]
    for file, document in zip(
        files,
        (
            entries("a", server="one"),
            {**entries("a", "b", server="two"), "current-context": "b"},
            {"current-context": "a"},
        ),
        strict=True,
    ):
        Path(file).write_text(yaml.safe_dump(document))
    assert current_context(files) == "b"
    found = [read_kubeconfig(files, name) for name in ("a", "b")]
    assert [(urlsplit(each.server).hostname, each.namespace) for each in found] == [("one", "one"), ("two", "two")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("contexts: [{name: a}]", "no context given and no current-context; there are: a", id="none"),
        pytest.param("", " file is empty", id="empty"),
        pytest.param("a: [", "not YAML: ", id="not-yaml"),
        pytest.param("[1]", "empty or not a kubeconfig: ", id="list"),
        pytest.param("contexts: !!int ''", "empty or not a kubeconfig: ", id="no-number"),
        pytest.param(f"contexts: {BOMB}", REJECTION, id="bomb"),
        pytest.param(f"contexts: 1{':1' * 200}", "a base-60 number", id="quadratic"),
        pytest.param(f"users: [{{user: {{token: {SECRET}}}}}, {{}}]", "Expected key name in ", id="no-name-of-several"),
    ],
)
def test_what_is_no_kubeconfig_is_named(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        current_context([str(file)])
    assert str(caught.value).startswith(f"kubeconfig {file}: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param({"contexts": [{"name": "here", "context": {"user": "u"}}]}, "Expected key cluster", id="cluster"),
        pytest.param(
            {**entries("here", server="h"), "clusters": []}, "Expected object with name here in ", id="no-cluster"
        ),
        pytest.param(
            {
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "u"}}],
                "clusters": [{"name": "here", "cluster": {"server": SERVER}}],
                "users": [{"name": "other", "user": {"token": SECRET}}],
            },
            "Expected object with name u in ",
            id="no-user",
        ),
        pytest.param(
            {
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "u"}}],
                "clusters": [{"name": "here", "cluster": {"server": SERVER}}],
                "users": [{"name": "u", "token": SECRET}],
            },
            "Expected key user in users[name=u]",
            id="user-at-another-level",
        ),
    ],
)
def test_what_a_context_lacks_is_named_without_what_it_has(
    tmp_path: Path, document: dict[str, object], expected: str
) -> None:
    (tmp_path / "config").write_text(yaml.safe_dump({"kind": "Config", **document}))
    with pytest.raises(ConfigurationError) as caught:
        read_kubeconfig([f"{tmp_path}/config"], "here")
    assert str(caught.value).startswith(f"kubeconfig {tmp_path}/config, context here: ")
    assert expected in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"server": ""}, "server: required", id="no-server"),
        pytest.param(
            {"cluster": {"certificate-authority": "config", "insecure-skip-tls-verify": True}},
            "certificate-authority and insecure-skip-tls-verify exclude each other",
            id="insecure-and-authority",
        ),
        pytest.param({"user": {"client-certificate": "config"}}, "a client-certificate without client-key", id="key"),
        pytest.param({"user": {"client-key-data": SECRET + "="}}, "", id="base64"),
        pytest.param({"cluster": {"proxy-url": f"socks5://joe:{SECRET}@h"}}, "proxy-url: the URL is not", id="proxy"),
        pytest.param({"user": {"token": f"{SECRET}\nb"}}, "token: not a token", id="token"),
        pytest.param({"user": {"username": SECRET}}, "the user's username is no login", id="no-password"),
        pytest.param({"user": {"as": "root"}}, "impersonation (as: root) is not supported", id="impersonation"),
        pytest.param(
            {"user": {"auth-provider": {"name": "oidc"}}}, "auth-provider is not supported; use an exec", id="provider"
        ),
        pytest.param(
            {"user": {"exec": [SECRET]}}, "exec plugin None: exec: malformed request", id="exec-of-another-form"
        ),
    ],
)
def test_what_can_never_work_is_named(tmp_path: Path, parts: dict[str, object], expected: str) -> None:
    with pytest.raises((ConfigurationError, CredentialsError)) as caught:
        read(tmp_path, **parts)  # type: ignore[arg-type]  # parts of one test each
    assert str(caught.value).startswith(f"kubeconfig {tmp_path}/config, context here: {expected}")
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


# Plugins.


def test_a_plugin_is_not_run_before_its_login_is_needed(tmp_path: Path) -> None:
    access = read(tmp_path, user=exec_user(write_plugin(tmp_path, "exit 1")), run_plugin=False)
    assert (access.authorization, access.renew_at, runs(tmp_path)) == ("", 0.0, 0)


def test_the_plugin_gets_its_arguments_variables_and_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    out = tmp_path / "out"
    script = f'echo "$1|$A|$KUBERNETES_EXEC_INFO" > {out}\n' + printing('{"token": "abc"}')
    write_plugin(tmp_path / "bin", script)
    cluster: dict[str, object] = {
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    }
    more = {"args": ["two words"], "env": [{"name": "A", "value": "a"}], "provideClusterInfo": True}
    access = read(tmp_path, cluster=cluster, user=exec_user(Path("bin/plugin"), **more))
    assert (access.authorization, access.renew_at) == ("Bearer abc", math.inf)
    argument, variable, reported = out.read_text().split("|", 2)
    assert (argument, variable) == ("two words", "a")
    assert json.loads(reported)["spec"]["cluster"]["server"] == SERVER
    assert json.loads(reported)["spec"]["cluster"]["config"] == {"audience": "x"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"token": "abc"}, id="token"),
        pytest.param({"tokenFile": "t"}, id="token-file"),
        pytest.param({"username": "ann", "password": ""}, id="name"),
        pytest.param({"client-certificate": "t", "client-key": "t"}, id="certificate"),
        pytest.param({"client-certificate-data": "Qw==", "client-key-data": "Sw=="}, id="certificate-data"),
    ],
)
def test_a_plugin_counts_only_where_there_is_nothing_else(tmp_path: Path, other: dict[str, object]) -> None:
    (tmp_path / "t").write_text("abc")
    assert read(tmp_path, user={**exec_user(write_plugin(tmp_path, "exit 1")), **other}).renew_at is None
    assert runs(tmp_path) == 0


@pytest.mark.parametrize(
    ("expires", "early"),
    [
        pytest.param("2030-01-01T01:00:00Z", 3540.0, id="an-hour-a-minute-before"),
        pytest.param("2030-01-01T03:00:00.123456789+02:00", 3540.123456, id="in-another-zone"),
        pytest.param("2030-01-01T00:00:50Z", 45.0, id="a-short-life-a-tenth-before"),
        pytest.param("2029-12-31T23:59:59Z", -1.0, id="ended-by-our-clock-which-may-be-wrong"),
    ],
)
def test_a_login_is_due_shortly_before_its_end(tmp_path: Path, expires: str, early: float) -> None:
    status = f'{{"token": "abc", "expirationTimestamp": "{expires}"}}'
    access = read(tmp_path, user=exec_user(write_plugin(tmp_path, printing(status))))
    assert access.renew_at == pytest.approx(NOW + early, abs=1e-5)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("echo no >&2; exit 3", "exec: process returned 3. no; Get it.", id="status"),
        pytest.param("echo hello", "exec: failed to decode process output: ", id="no-json"),
        pytest.param(printing("{}", "client.authentication.k8s.io/v1beta1"), "exec: plugin api version ", id="version"),
        pytest.param(printing("{}"), "no credentials in its output: neither a token nor a client", id="nothing"),
        pytest.param(printing("null"), "", id="null"),
        pytest.param(printing('{"clientCertificateData": "C"}'), "no credentials in its output: only one", id="half"),
        pytest.param(printing(f'{{"token": "{SECRET} x"}}'), "not a token; Get it.", id="no-token"),
        pytest.param(printing(f'{{"token": ["{SECRET}"]}}'), "", id="token-of-another-form"),
        pytest.param(printing('{"token": "a", "expirationTimestamp": "soon"}'), "Invalid isoformat ", id="no-time"),
    ],
)
def test_a_plugin_that_gives_no_login_is_an_error(tmp_path: Path, script: str, expected: str) -> None:
    plugin = write_plugin(tmp_path, script)
    with pytest.raises(CredentialsError) as caught:
        read(tmp_path, user=exec_user(plugin, installHint="Get\nit."))
    assert str(caught.value).startswith(f"kubeconfig {tmp_path}/config, context here: exec plugin {plugin}: {expected}")
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_plugin_that_is_not_there_is_an_error_with_its_hint(tmp_path: Path) -> None:
    user = exec_user(Path("nowhere-to-be-found"), installHint="Get it\nat example.com.")
    expected = "exec plugin nowhere-to-be-found: No such file or directory; Get it at example.com.$"
    with pytest.raises(CredentialsError, match=expected):
        read(tmp_path, user=user)


def test_a_plugin_without_a_command_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"exec: malformed request\. missing key 'command'"):
        read(tmp_path, user={"exec": {"apiVersion": V1, "env": [{"name": "A", "value": SECRET}]}})
    with pytest.raises(CredentialsError) as caught:
        read(tmp_path, user=exec_user(Path("sh"), env=[{"value": SECRET}]))
    assert "Expected key name in users[name=u]/user/exec/env" in str(caught.value)
    assert SECRET not in str(caught.value)


# URLs and the namespace.


def test_the_url_of_a_server_has_no_slash_at_its_end_and_a_proxy_may_want_a_password() -> None:
    assert checked_url("server", "HTTPS://h/k8s/clusters/c-1/") == "https://h/k8s/clusters/c-1"
    assert checked_url("server", "http://[::1]:8080") == "http://[::1]:8080"
    assert checked_proxy("proxy", "http://joe:secret@h:3128") == "http://joe:secret@h:3128"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "server: required"),
        *[
            (url, f"server: {url!r} is not a URL that begins with http:// or https://")
            for url in ("h", "ftp://h", "https://", "https://a b", "https://h:65536", "https://h:x", "https://[::1")
        ],
        *[
            (url, "server: more than scheme, host, port and path")
            for url in ("https://joe:secret@h", "https://h?a=b", "https://h#a")
        ],
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_url("server", url)
    assert str(caught.value) == expected


@pytest.mark.parametrize("url", ["socks5://joe:secret@h", "http://", "http://h:x", "http://joe:secret", "h"])
def test_what_is_no_proxy_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_proxy("proxy", url)
    assert str(caught.value) == "proxy: the URL is not a proxy that begins with http:// or https://"


def test_our_own_namespace_is_that_of_the_downward_api_or_else_of_the_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "namespace"
    monkeypatch.setattr(app.api_server.login, "_SERVICE_ACCOUNT_NAMESPACE", file)
    assert not own_namespace()
    file.write_bytes(b"\xff\xfe")
    assert not own_namespace()
    file.write_text("infra\n")
    assert own_namespace() == "infra"
    monkeypatch.setenv("POD_NAMESPACE", "other")
    assert own_namespace() == "other"
