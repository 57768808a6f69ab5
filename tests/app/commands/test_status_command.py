"""`kindred status`, of a service: what it takes from which route, and how it ends."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.commands.cli import main
from app.main import Service, create_service
from app.settings.settings import Settings
from tests.app.asgi import ask
from tests.app.commands.running import running
from tests.app.questions import by_name, shop
from tests.builders import make_pod


def status(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments])


@pytest.fixture
def serve() -> Iterator[Callable[[Service], str]]:
    """Serve admin ports until the test ends, and give the URL of each."""
    with ExitStack() as stack:

        def url(service: Service) -> str:
            assert service.admin is not None
            return stack.enter_context(running(service.admin)).url

        yield url


def test_it_tells_of_the_mirror_the_cache_and_the_last_decision(serve: Callable[[Service], str]) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    for name in ("first", "last"):
        ask(service.app, "POST", "/filter", by_name(make_pod(name), "a1"))
    url = serve(service)
    result = status("--server", url)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"Service     {url}: ready\n" in result.stdout
    found = json.loads(status("--server", url, "-o", "json").stdout)
    assert found.keys() == {"server", "readiness", "version", "equivalence_cache", "decisions"}
    assert found["readiness"] == ask(service.app, "GET", "/readyz").json()
    assert found["version"] == ask(service.app, "GET", "/version").json()
    assert (found["decisions"]["noted"], found["decisions"]["last"]["pod"]) == (2, "default/last")
    assert found["equivalence_cache"]["classes"] == 1


def test_a_service_without_a_cache_says_that_it_is_off(serve: Callable[[Service], str]) -> None:
    url = serve(create_service(Settings(admin="127.0.0.1:0", equivalence_cache=False), shop(), None))
    assert "Cache       off\n" in status("--server", url).stdout
    assert json.loads(status("--server", url, "-o", "json").stdout)["equivalence_cache"] is None


def test_it_ends_with_1_where_the_service_is_not_ready(serve: Callable[[Service], str]) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    service.state.draining = True
    url = serve(service)
    result = status("--server", url)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(f"Service     {url}: not ready\n            ")


@pytest.mark.parametrize("path", ["/readyz", "/version", "/debug/equivalence", "/debug/decisions"])
def test_a_route_that_says_something_else_is_told(path: str) -> None:
    service = create_service(Settings(admin="127.0.0.1:0"), shop(), None)
    assert service.admin is not None
    app = FastAPI()
    app.get(path)(lambda: ["hello"])
    app.mount("/", service.admin)
    with running(app) as server:
        result = status("--server", server.url)
        assert result.stderr == f"Error: {server.url}: is that the admin port?\n"
    assert (result.exit_code, result.stdout) == (2, "")
