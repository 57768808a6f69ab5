"""`kindred version`: of the program and of a service, and how it ends where there is none."""

import json
import platform
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app import __version__
from app.commands.cli import main
from app.main import create_service
from app.settings import Settings
from core.mirror.cluster import ClusterMirror
from tests.app.commands.running import Running, running

CLIENT = {"version": __version__, "python": platform.python_version()}
RELEASE = {"release": "1.36", "source": "setting", "exact": True, "told": "1.36", "ignored_gates": []}


def version(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["version", *arguments])


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[Running, Running]]:
    """Serve the scheduler's port and the admin port of a service that answers as Kubernetes 1.36."""
    made = create_service(Settings(kubernetes="1.36", admin_port=0), ClusterMirror(), None)
    assert made.admin is not None
    with running(made.app) as extender, running(made.admin) as admin:
        yield extender, admin


def test_both_versions_are_printed_whichever_port_is_asked(service: tuple[Running, Running]) -> None:
    for port in service:
        result = version("--server", port.url)
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.splitlines() == [
            f"Client Version: {__version__}",
            f"Server Version: {__version__}",
            "Answers as: Kubernetes 1.36 (setting: 1.36)",
        ]
    assert f"Server Python: {platform.python_version()}\n" in version("--server", service[0].url, "-o", "wide").stdout


def test_json_has_the_client_and_what_the_route_says(service: tuple[Running, Running]) -> None:
    result = version("--server", service[1].url, "-o", "json")
    assert json.loads(result.stdout) == {"client": CLIENT, "server": {**CLIENT, "kubernetes": RELEASE}}


def test_without_a_service_the_client_is_printed_and_the_end_is_1_as_that_of_kubectl() -> None:
    result = version("--server", "http://127.0.0.1:1")
    assert (result.exit_code, result.stdout) == (2, f"Client Version: {__version__}\n")
    assert result.stderr.startswith("Error: no service at 127.0.0.1:1 (Connection refused): start one with ")
    assert result.stderr.count("\n") == 1
    machine = version("--server", "http://127.0.0.1:1", "-o", "json")
    assert (machine.exit_code, json.loads(machine.stdout)) == (2, {"client": CLIENT})


def test_the_client_alone_asks_nobody() -> None:
    result = version("--client", "--server", "http://127.0.0.1:1")
    assert (result.exit_code, result.output) == (0, f"Client Version: {__version__}\n")


def test_another_server_is_told_from_a_service() -> None:
    app = FastAPI()
    with running(app) as server:
        refused = version("--server", server.url)
        assert (refused.exit_code, refused.stderr) == (2, f"Error: {server.url}: 404 Not Found: Not Found\n")
        app.get("/version")(lambda: {"gitVersion": "v1.36.0"})
        other = version("--server", server.url)
        assert (other.exit_code, other.stderr) == (2, f"Error: {server.url}: is that the admin port?\n")
