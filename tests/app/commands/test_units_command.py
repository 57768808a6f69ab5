"""`kindred units`: of a running service, by namespace, in every format, and of bad answers."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.admin.units_routes import units_router
from app.commands.cli import main
from app.main import create_service
from app.settings import Settings
from core.mirror.cluster import ClusterMirror
from tests.app.asgi import ask
from tests.app.commands.test_debug_command import running
from tests.core.gangs.gang_setting import GangSetting, member, node


@pytest.fixture(scope="module")
def app() -> FastAPI:
    setting = GangSetting(node("n0", 1))
    pods = [member("a"), member("b"), member("x", group="other").in_namespace("shop"), member("y", 1, "web")]
    setting.see(*pods)
    setting.ask(pods[0])
    setting.ask(pods[3])
    setting.now = 61.0
    app = FastAPI()
    app.include_router(units_router(setting.gangs, lambda: setting.now))
    return app


@pytest.fixture(scope="module")
def url(app: FastAPI) -> Iterator[str]:
    with running(app) as server:
        yield server.url


def units(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["units", *arguments])


def test_each_unit_has_a_line_below_the_sum(url: str) -> None:
    lines = units("--server", url).stdout.splitlines()
    assert lines[0] == "3 units: 1 pending, 1 scheduling, 1 scheduled"
    assert [line.split()[:5] for line in lines[2:] if line and line[0] != " "] == [
        ["NAMESPACE", "NAME", "STATUS", "SCHEDULED", "RESERVED"],
        ["default", "train", "scheduling", "0/2", "0"],
        ["default", "web", "scheduled", "1/1", "0"],
        ["shop", "other", "pending", "0/2", "0"],
    ]


def test_a_namespace_has_no_column(url: str) -> None:
    lines = units("--server", url, "-n", "shop").stdout.splitlines()
    assert lines[0] == "1 unit in namespace shop: 1 pending"
    assert lines[3].split() == [
        "other",
        "pending",
        "0/2",
        "0",
        "1",
        "-",
        "waits",
        "for",
        "1",
        "more",
        "member",
        "of",
        "2",
    ]
    assert units("--server", url, "-n", "none").stdout == "No units in namespace none.\n"


def test_wide_shows_attempts_and_times(url: str) -> None:
    head, train = units("--server", url, "-n", "default", "-o", "wide").stdout.splitlines()[2:4]
    assert head.split()[-4:] == ["SINCE", "TIMEOUT", "PACKING", "NODES"]
    assert train.split()[-8:] == ["0", "0", "0", "1", "-", "60s", "spread", "0"]
    assert "1 of 2 members fit; the next one, default/b, does not: 1 Insufficient cpu" in train


def test_json_is_the_answer_of_the_service(app: FastAPI, url: str) -> None:
    assert json.loads(units("--server", url, "-o", "json").stdout) == ask(app, "GET", "/units").json()


def test_a_service_without_groups_and_other_answers_are_errors() -> None:
    admin = create_service(Settings(admin_port=0), ClusterMirror(), None).admin
    assert admin is not None
    with running(admin) as server:
        result = units("--server", server.url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "404 Not Found: groups: off" in result.stderr
    other = FastAPI()
    other.get("/units")(lambda: {"units": 7})
    with running(other) as server:
        url = server.url
        result = units("--server", url)
    assert (result.exit_code, result.stderr) == (2, f"Error: {url}: is that the admin port?\n")
