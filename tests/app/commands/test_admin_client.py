"""How a command calls the admin port: its URL, its login, and the error of each problem. Shown by `kindred units`."""

from pathlib import Path
from typing import Annotated

import pytest
from click.testing import CliRunner, Result
from fastapi import FastAPI, Header, HTTPException, Response

from app.commands.cli import main
from tests.app.commands.running import running
from tests.openssl import Authority

ROUTE = "/units"


def units(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["units", *map(str, arguments), "-o", "json"])


def no_units() -> Response:
    return Response(b'{"units":[]}')


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param(
            "127.0.0.1:8890",
            "127.0.0.1:8890: Request URL is missing an 'http://' or 'https://' protocol; is",
            id="no-scheme",
        ),
        pytest.param("http://:8890:1", "http://:8890:1: Invalid port: '8890:1'", id="no-port"),
        pytest.param("http://[", "no service at [ (Name or service not known): start one", id="no-host"),
    ],
)
def test_a_url_that_is_none_is_named(url: str, message: str) -> None:
    result = units("--server", url)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert result.stderr.count("\n") == 1


def test_where_there_is_no_service_the_next_step_is_said() -> None:
    result = units("--server", "http://127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: no service at 127.0.0.1:1 (Connection refused): start one with `kindred serve --demo`"
        ", name one by --server URL, or forward its port: `kubectl -n kindred port-forward deploy/kindred 8890`\n"
    )


def test_another_service_is_told_from_the_admin_port() -> None:
    app = FastAPI()
    with running(app) as server:
        result = units("--server", server.url)
        error = f"Error: {server.url}: 404 Not Found; is that the admin port?\n"
        assert (result.exit_code, result.stderr) == (2, error)
        app.get(ROUTE)(lambda: ["hello"])
        result = units("--server", server.url)
        assert (result.exit_code, result.stderr) == (2, f"Error: {server.url}: is that the admin port?\n")


def test_the_token_is_sent_and_its_absence_told(tmp_path: Path) -> None:
    app = FastAPI()

    @app.get(ROUTE)
    def checked(authorization: Annotated[str, Header()] = "") -> Response:
        if authorization != "Bearer secret":
            raise HTTPException(401)
        return no_units()

    (tmp_path / "token").write_text("secret\n")
    with running(app) as server:
        rejected = units("--server", server.url)
        assert (rejected.exit_code, rejected.stderr) == (
            2,
            f"Error: {server.url}: 401 Unauthorized: --token-file has to hold the token of this port\n",
        )
        taken = units("--server", server.url, "--token-file", tmp_path / "token")
        assert (taken.exit_code, taken.stderr) == (0, "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = units("--token-file", tmp_path / "absent")
    assert result.exit_code == 2
    assert str(tmp_path / "absent") in result.stderr


def test_a_port_with_tls_is_asked_with_its_authorities(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=IP:127.0.0.1")
    app = FastAPI()
    app.get(ROUTE)(no_units)
    with running(app, authority) as server:
        rejected = units("--server", server.url)
        assert rejected.exit_code == 2
        assert rejected.stderr.startswith(f"Error: {server.url}: ")
        assert rejected.stderr.endswith("; see --ca-file\n")
        assert "no service" not in rejected.stderr
        assert units("--server", server.url, "--ca-file", authority.crt()).exit_code == 0


def test_plain_http_and_tls_are_told_from_each_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.make("server", "subjectAltName=IP:127.0.0.1")
    with running(FastAPI(), authority) as server:
        assert "does the port expect https://?" in units("--server", server.url.replace("https", "http")).stderr
    with running(FastAPI()) as server:
        rejected = units("--server", server.url.replace("http", "https")).stderr
        assert rejected.endswith("; the port speaks plain HTTP: http://\n")
