"""What one context of a kubeconfig says, as kubectl understands it."""

import base64
import json
from pathlib import Path

import pytest
import yaml

from app.api_server.cluster_access import ClusterAccess
from app.api_server.credential_errors import ConfigurationError
from app.api_server.exec_plugin import ExecPlugin
from app.api_server.kubeconfig import read_kubeconfig
from app.api_server.login import FixedLogin, TokenFile, basic, bearer
from app.api_server.tls_context import TlsSettings
from tests.app.api_server.kubeconfigs import SERVER, V1, exec_user, printing, runs, write_kubeconfig, write_plugin


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def read(
    folder: Path,
    *,
    server: str = SERVER,
    cluster: dict[str, object] | None = None,
    user: dict[str, object] | None = None,
) -> ClusterAccess:
    return read_kubeconfig([write_kubeconfig(folder / "config", server, cluster=cluster, user=user)], None)


def tls(access: ClusterAccess) -> TlsSettings:
    assert access.tls is not None
    return access.tls


def test_the_current_context_is_read(tmp_path: Path) -> None:
    access = read(tmp_path, user={"token": "abc"})
    source = f"kubeconfig {tmp_path}/config, context here"
    assert access == ClusterAccess(source, SERVER, TlsSettings(), FixedLogin(bearer("abc")))


def test_another_context_is_read_on_request(tmp_path: Path) -> None:
    file = write_kubeconfig(tmp_path / "config")
    document = yaml.safe_load(Path(file).read_text())
    document["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "v"}})
    document["clusters"].append({"name": "d", "cluster": {"server": "https://there:1/base/"}})
    document["users"].append({"name": "v", "user": {"username": "ann", "password": "x"}})
    Path(file).write_text(yaml.safe_dump(document))
    access = read_kubeconfig([file], "there")
    assert access.server == "https://there:1/base"
    assert access.login == FixedLogin(basic("ann", "x"))
    assert access.source == f"kubeconfig {file}, context there"


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_the_namespace_of_the_context_is_read(tmp_path: Path, namespace: str) -> None:
    config = write_kubeconfig(tmp_path / "config")
    document = yaml.safe_load((tmp_path / "config").read_text())
    if namespace:
        document["contexts"][0]["context"]["namespace"] = namespace
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    assert read_kubeconfig([config], None).namespace == namespace


def test_a_context_without_user_is_nobody(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        f"current-context: x\ncontexts: [{{name: x, context: {{cluster: c}}}}]\n"
        f"clusters: [{{name: c, cluster: {{server: {SERVER}}}}}]"
    )
    assert read_kubeconfig([str(file)], None).login == FixedLogin()


def test_paths_are_relative_to_the_file_that_says_them(tmp_path: Path) -> None:
    (tmp_path / "users").mkdir()
    users = tmp_path / "users" / "config"
    users.write_text(yaml.safe_dump({"users": [{"name": "u", "user": {"tokenFile": "t", "client-certificate": "c"}}]}))
    merged = yaml.safe_load(users.read_text())
    merged["users"][0]["user"]["client-key"] = "/k"
    users.write_text(yaml.safe_dump(merged))
    config = tmp_path / "config"
    config.write_text(
        "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: {SERVER}, certificate-authority: ca}}}}]"
    )
    access = read_kubeconfig([str(config), str(users)], None)
    settings = tls(access)
    assert access.login == TokenFile(f"{tmp_path}/users/t", access.source)
    assert settings.authority is not None
    assert settings.certificate is not None
    assert settings.key is not None
    files = [settings.authority.file, settings.certificate.file, settings.key.file]
    assert files == [f"{tmp_path}/ca", f"{tmp_path}/users/c", "/k"]


def test_data_goes_before_a_file(tmp_path: Path) -> None:
    cluster: dict[str, object] = {"certificate-authority": "ca", "certificate-authority-data": encoded(b"A")}
    user: dict[str, object] = {
        "client-certificate-data": encoded(b"C" * 60) + "\n",
        "client-certificate": "c",
        "client-key-data": encoded(b"K"),
        "client-key": "k",
    }
    material = tls(read(tmp_path, cluster=cluster, user=user)).read()
    assert (material.authority, material.certificate, material.key) == (b"A", b"C" * 60, b"K")


def test_a_token_file_goes_before_a_token(tmp_path: Path) -> None:
    access = read(tmp_path, user={"token": "abc", "tokenFile": "t"})
    assert access.login == TokenFile(f"{tmp_path}/t", access.source)


def test_a_name_needs_no_password(tmp_path: Path) -> None:
    assert read(tmp_path, user={"username": "ann"}).login == FixedLogin(basic("ann", ""))


def test_over_plain_http_nobody_logs_in(tmp_path: Path) -> None:
    user: dict[str, object] = {"token": "abc", "client-certificate": "c", "client-key": "k"}
    access = read(tmp_path, server="HTTP://127.0.0.1:8001/", user=user)
    assert (access.server, access.tls, access.login) == ("http://127.0.0.1:8001", None, FixedLogin())


def test_the_way_to_the_server_is_read(tmp_path: Path) -> None:
    access = read(
        tmp_path,
        cluster={"tls-server-name": "kube", "insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"},
    )
    assert tls(access) == TlsSettings(server_name="kube", insecure=True)
    assert access.proxy == "http://proxy:3128"
    assert read(tmp_path, server="http://h", cluster={"proxy-url": "http://proxy:3128"}).proxy == "http://proxy:3128"


# Plugins.


def test_a_plugin_is_made_ready_and_not_run(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, 'test "$1$A" = onetwo || exit 1\n' + printing('{"token": "abc"}'))
    access = read(tmp_path, user=exec_user(script, args=["one"], env=[{"name": "A", "value": "two"}, {"name": "B"}]))
    assert runs(tmp_path) == 0
    assert access.login.get() == bearer("abc")


def test_a_relative_plugin_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    write_plugin(tmp_path / "bin", printing('{"token": "abc"}'))
    assert read(tmp_path, user=exec_user(Path("bin/plugin"))).login.get() == bearer("abc")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"token": "abc"}, id="token"),
        pytest.param({"tokenFile": "t"}, id="token-file"),
        pytest.param({"username": "ann"}, id="name"),
        pytest.param({"client-certificate": "c", "client-key": "k"}, id="certificate"),
        pytest.param({"client-certificate-data": "Qw==", "client-key-data": "Sw=="}, id="certificate-data"),
    ],
)
def test_a_plugin_counts_only_where_there_is_nothing_else(tmp_path: Path, other: dict[str, object]) -> None:
    script = write_plugin(tmp_path, "exit 1")
    assert isinstance(read(tmp_path, user=exec_user(script)).login, ExecPlugin)
    assert not isinstance(read(tmp_path, user={**exec_user(script), **other}).login, ExecPlugin)


def test_a_plugin_is_told_of_the_cluster(tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(b"PEM")
    out = tmp_path / "out"
    script = write_plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {out}\n' + printing('{"token": "abc"}'))
    cluster: dict[str, object] = {
        "certificate-authority": "ca",
        "tls-server-name": "kube",
        "proxy-url": "http://proxy:3128",
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
        ],
    }
    read(tmp_path, cluster=cluster, user=exec_user(script, provideClusterInfo=True)).login.get()
    assert json.loads(out.read_text())["spec"]["cluster"] == {
        "server": SERVER,
        "tls-server-name": "kube",
        "certificate-authority-data": encoded(b"PEM"),
        "proxy-url": "http://proxy:3128",
        "config": {"audience": "x"},
    }


def test_a_plugin_is_told_of_a_cluster_that_anybody_may_answer_for(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = write_plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {out}\n' + printing('{"token": "abc"}'))
    read(
        tmp_path,
        cluster={"insecure-skip-tls-verify": True},
        user=exec_user(script, provideClusterInfo=True),
    ).login.get()
    told = json.loads(out.read_text())["spec"]["cluster"]
    assert told == {"server": SERVER, "insecure-skip-tls-verify": True}


def test_a_plugin_is_not_told_what_it_does_not_want(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = write_plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {out}\n' + printing('{"token": "abc"}'))
    read(tmp_path, user=exec_user(script)).login.get()
    assert json.loads(out.read_text())["spec"] == {"interactive": False}


# What can never work.


def refusal(folder: Path, **parts: object) -> str:
    """Return the message without the place that every one begins with."""
    with pytest.raises(ConfigurationError) as caught:
        read(folder, **parts)  # type: ignore[arg-type]  # parts of one test each
    where = f"kubeconfig {folder}/config, context here: "
    assert str(caught.value).startswith(where)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(where)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param({"server": ""}, "server: required", id="no-server"),
        pytest.param(
            {"server": "h:80"}, "server: 'h:80' is not a URL that begins with http:// or https://", id="no-scheme"
        ),
        pytest.param(
            {"cluster": {"certificate-authority": "ca", "insecure-skip-tls-verify": True}},
            "certificate-authority and insecure-skip-tls-verify exclude each other",
            id="insecure-and-authority",
        ),
        pytest.param(
            {"cluster": {"certificate-authority-data": "%%%"}}, "certificate-authority-data: not base64", id="base64"
        ),
        pytest.param({"user": {"client-key-data": "abc"}}, "client-key-data: not base64", id="base64-key"),
        pytest.param({"user": {"client-certificate": "c"}}, "a client-certificate without client-key", id="no-key"),
        pytest.param(
            {"cluster": {"proxy-url": "socks5://joe:secret@h"}},
            "proxy-url: the URL is not a proxy that begins with http:// or https://",
            id="proxy",
        ),
        pytest.param(
            {"user": {"token": "t", "username": "ann"}}, "token and username exclude each other", id="two-logins"
        ),
        pytest.param(
            {"user": {"tokenFile": "t", "username": "ann"}}, "token and username exclude each other", id="file-and-name"
        ),
        pytest.param({"user": {"token": "a\nb"}}, "token: not a token", id="token"),
        pytest.param({"user": {"token": 7}}, "user u: user.token: expected str | null, got int", id="number"),
        pytest.param({"user": {"as": "root"}}, "impersonation (as: root) is not supported", id="impersonation"),
        pytest.param(
            {"user": {"auth-provider": {"name": "oidc"}}},
            "auth-provider is not supported; use an exec plugin",
            id="auth-provider",
        ),
        pytest.param(
            {"user": {"exec": {"apiVersion": V1}}},
            "user u: user.exec: object missing required field command",
            id="no-command",
        ),
        pytest.param(
            {"user": exec_user(Path("nowhere-to-be-found"), installHint="Get it\nat example.com.")},
            "exec plugin nowhere-to-be-found: command not found; Get it at example.com.",
            id="plugin-missing",
        ),
        pytest.param(
            {"user": exec_user(Path("sh"), interactiveMode="Always")},
            "exec plugin sh needs a terminal (interactiveMode: Always)",
            id="terminal",
        ),
        pytest.param(
            {"cluster": {"certificate-authority": "/no/ca"}, "user": exec_user(Path("sh"), provideClusterInfo=True)},
            "certificate-authority /no/ca: No such file or directory",
            id="authority-for-plugin",
        ),
    ],
)
def test_what_can_never_work_is_named(tmp_path: Path, parts: dict[str, object], expected: str) -> None:
    assert refusal(tmp_path, **parts) == expected


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        pytest.param("there", "current-context: here", "FILE: no context there; there are: a, b", id="no-context"),
        pytest.param("a", "", "FILE, context a: no cluster", id="context-without-cluster"),
        pytest.param("b", "", "FILE, context b: no cluster c; there is no cluster", id="no-cluster"),
        pytest.param(
            "b",
            f"clusters: [{{name: c, cluster: {{server: '{SERVER}'}}}}]",
            "FILE, context b: no user u; there is no user",
            id="no-user",
        ),
    ],
)
def test_what_a_context_lacks_is_named(tmp_path: Path, context: str, text: str, expected: str) -> None:
    file = tmp_path / "config"
    file.write_text(f"contexts: [{{name: a}}, {{name: b, context: {{cluster: c, user: u}}}}]\n{text}\n")
    with pytest.raises(ConfigurationError) as caught:
        read_kubeconfig([str(file)], context)
    assert str(caught.value) == f"kubeconfig {expected.replace('FILE', str(file))}"
