"""Credential plugins: what they are told, what they may answer, and how they may fail."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.api_server.credential_errors import ConfigurationError, CredentialsError
from app.api_server.exec_plugin import ExecPlugin
from app.api_server.login import Login
from tests.app.api_server.kubeconfigs import V1, Clock, printing, write_plugin

NOW = datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def plugin(script: Path, *arguments: str, **options: object) -> ExecPlugin:
    values = {"environment": {}, "api_version": V1, "cluster": None, **options}
    return ExecPlugin("here", [str(script), *arguments], **values)  # type: ignore[arg-type]  # options of one test each


def failure(script: Path, **options: object) -> str:
    """Return the message of a plugin that fails, without its name."""
    with pytest.raises(CredentialsError) as caught:
        plugin(script, **options).get()
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(f"here: exec plugin {script}: ")
    return text.removeprefix(f"here: exec plugin {script}: ")


def test_a_token_is_a_login_without_end(tmp_path: Path) -> None:
    source = plugin(write_plugin(tmp_path, printing('{"token": "abc"}')))
    login = source.get()
    assert login == Login("Bearer abc")
    assert not source.is_due(login, 1e9)


def test_certificate_and_key_are_taken_beside_a_token(tmp_path: Path) -> None:
    status = '{"token": "abc", "clientCertificateData": "C\\n", "clientKeyData": "K\\n"}'
    login = plugin(write_plugin(tmp_path, printing(status))).get()
    assert login.certificate is not None
    assert login.key is not None
    assert (login.authorization, login.certificate.data, login.key.data) == ("Bearer abc", b"C\n", b"K\n")


def test_a_certificate_alone_is_a_login(tmp_path: Path) -> None:
    status = '{"token": null, "clientCertificateData": "C", "clientKeyData": "K"}'
    assert plugin(write_plugin(tmp_path, printing(status))).get().authorization == ""


def test_the_older_version_of_the_protocol_is_spoken_too(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    script = write_plugin(tmp_path, printing('{"token": "abc"}', version))
    assert plugin(script, api_version=version).get() == Login("Bearer abc")


def test_the_plugin_has_not_run_before_it_is_asked(tmp_path: Path) -> None:
    source = plugin(write_plugin(tmp_path, "exit 1"))
    first = source.configured()
    assert first.authorization == ""
    assert source.is_due(first, 0.0)
    assert not (tmp_path / "RUNS").exists()


@pytest.mark.parametrize(
    ("expires", "due"),
    [
        pytest.param("2030-01-01T01:00:00Z", 3540.0, id="an-hour-a-minute-before"),
        pytest.param("2030-01-01T03:00:00.123456789+02:00", 3540.1, id="in-another-zone"),
        pytest.param("2030-01-01T00:00:50Z", 45.0, id="a-short-life-a-tenth-before"),
    ],
)
def test_a_login_is_due_shortly_before_its_end(tmp_path: Path, expires: str, due: float) -> None:
    clock = Clock(NOW)
    status = f'{{"token": "abc", "expirationTimestamp": "{expires}"}}'
    source = plugin(write_plugin(tmp_path, printing(status)), wall_clock=clock)
    login = source.get()
    clock.now = NOW + due - 0.5
    assert not source.is_due(login, 0.0)
    clock.now = NOW + due + 0.5
    assert source.is_due(login, 0.0)


def test_a_login_that_has_ended_when_it_comes_is_taken_and_due(tmp_path: Path) -> None:
    # Our clock may be wrong; the server decides.
    status = '{"token": "abc", "expirationTimestamp": "2029-12-31T23:59:59Z"}'
    source = plugin(write_plugin(tmp_path, printing(status)), wall_clock=Clock(NOW))
    login = source.get()
    assert login.authorization == "Bearer abc"
    assert source.is_due(login, 0.0)


def test_the_plugin_gets_its_arguments_variables_and_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS", "from us")
    monkeypatch.setenv("BOTH", "from us")
    out = tmp_path / "out"
    script = write_plugin(tmp_path, f'echo "$1|$2|$OURS|$BOTH" > {out}\n' + printing('{"token": "t"}'))
    plugin(script, "one", "two words", environment={"BOTH": "from the kubeconfig"}).get()
    assert out.read_text() == "one|two words|from us|from the kubeconfig\n"


@pytest.mark.parametrize("cluster", [None, {"server": "https://h"}], ids=["not-wanted", "wanted"])
def test_the_plugin_is_told_of_the_cluster_where_it_wants_it(tmp_path: Path, cluster: object) -> None:
    out = tmp_path / "out"
    script = write_plugin(tmp_path, f'echo "$KUBERNETES_EXEC_INFO" > {out}\n' + printing('{"token": "t"}'))
    plugin(script, cluster=cluster).get()
    spec = {"interactive": False} | ({"cluster": cluster} if cluster else {})
    assert json.loads(out.read_text()) == {"apiVersion": V1, "kind": "ExecCredential", "spec": spec}


def test_the_plugin_has_nothing_to_read(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, "read line && exit 3\n" + printing('{"token": "abc"}'))
    assert plugin(script).get() == Login("Bearer abc")


def test_a_command_is_looked_for_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(tmp_path, printing('{"token": "abc"}'), "our-login")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert plugin(Path("our-login")).get() == Login("Bearer abc")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param("exit 7", "exit status 7", id="exit-status"),
        pytest.param('printf "no\\n login\\033[1m\\n" >&2; exit 1', "exit status 1: no login\\x1b[1m", id="stderr"),
        pytest.param("kill -9 $$", "signal 9", id="signal"),
        pytest.param(":", "no credentials in its output: malformed JSON: input data was truncated", id="silent"),
        pytest.param("echo token", "no credentials in its output: malformed JSON: ", id="not-json"),
        pytest.param("echo []", "no credentials in its output: expected object, got array", id="not-an-object"),
        pytest.param(
            "echo '{}'", "no credentials in its output: kind: expected ExecCredential, got None", id="another-kind"
        ),
        pytest.param(
            printing('{"token": "t"}', "client.authentication.k8s.io/v1beta1"),
            f"no credentials in its output: apiVersion: expected {V1}, got client.authentication.k8s.io/v1beta1",
            id="another-version",
        ),
        pytest.param(
            printing("null"),
            "no credentials in its output: status: neither a token nor a client certificate",
            id="no-status",
        ),
        pytest.param(
            printing('{"token": ""}'),
            "no credentials in its output: status: neither a token nor a client certificate",
            id="empty-token",
        ),
        pytest.param(
            printing('{"token": "t", "clientKeyData": "K"}'),
            "no credentials in its output: status: only one of client certificate and key",
            id="key-alone",
        ),
        pytest.param(
            printing('{"clientCertificateData": "C"}'),
            "no credentials in its output: status: only one of client certificate and key",
            id="certificate-alone",
        ),
        pytest.param(
            printing('{"token": 5}'), "no credentials in its output: status.token: expected str", id="token-number"
        ),
        pytest.param(printing('{"token": "a\\nb"}'), "no credentials in its output: not a token", id="two-lines"),
        pytest.param(
            printing('{"token": "t", "expirationTimestamp": "tomorrow"}'),
            "no credentials in its output: status.expirationTimestamp: invalid RFC3339 encoded datetime",
            id="bad-end",
        ),
    ],
)
def test_a_plugin_that_fails_is_named_in_one_line(tmp_path: Path, script: str, expected: str) -> None:
    assert failure(write_plugin(tmp_path, script)).startswith(expected)


def test_a_plugin_that_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, f'(sleep 1; touch "{tmp_path}/late") &\nsleep 30')
    began = time.monotonic()
    assert failure(script, time_limit=0.2) == "no response within 0.2 s"
    assert time.monotonic() - began < 10
    time.sleep(1.3)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize(("script", "stream"), [("yes", "output"), ("yes >&2", "error")])
def test_a_plugin_that_prints_for_ever_is_ended(tmp_path: Path, script: str, stream: str) -> None:
    assert failure(write_plugin(tmp_path, script)) == f"more than 1048576 bytes on standard {stream}"


def test_a_plugin_that_has_gone_is_an_error_that_may_pass(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, printing('{"token": "t"}'))
    source = plugin(script)
    script.unlink()
    with pytest.raises(CredentialsError, match=rf"^here: exec plugin {script}: No such file or directory$"):
        source.get()


def test_a_command_that_is_nowhere_is_fatal(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"^here: exec plugin {tmp_path}/nothing: command not found$"):
        plugin(tmp_path / "nothing")


def test_an_unknown_version_of_the_protocol_is_fatal(tmp_path: Path) -> None:
    script = write_plugin(tmp_path, "exit 1")
    with pytest.raises(
        ConfigurationError, match=r": apiVersion: 'v7' is not known: client\.authentication\.k8s\.io/v1 or"
    ):
        plugin(script, api_version="v7")
