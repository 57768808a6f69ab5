"""`kindred units`: of a running service, by namespace, in every format, and of bad answers."""

import json
import re
from collections.abc import Iterator

import pytest
from click import unstyle
from click.testing import CliRunner, Result
from fastapi import FastAPI

from app.admin.cluster_routes import Units, units_router
from app.commands.cli import main
from app.commands.output import laid_out
from app.commands.units import units_text
from app.settings.settings import Settings
from app.wiring.main import create_service
from core.gangs.unit import PlacedBy, SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.objects.groups import GroupCondition
from tests.app.asgi import ask
from tests.app.commands.running import running
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
    app.include_router(units_router(lambda: setting.gangs.unit_statuses(setting.now)))
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


def test_wide_shows_attempts_and_times(url: str) -> None:
    head, train = units("--server", url, "-n", "default", "-o", "wide").stdout.splitlines()[2:4]
    assert head.split()[-5:] == ["SINCE", "TIMEOUT", "PACKING", "NODES", "CONDITIONS"]
    assert train.split()[-10:] == ["0", "0", "0", "0", "1", "-", "60s", "spread", "0", "-"]
    assert " kindred " in train
    assert "1 of 2 members fit; the next one, default/b, does not: Insufficient cpu" in train


def test_json_is_the_answer_of_the_service(app: FastAPI, url: str) -> None:
    assert json.loads(units("--server", url, "-o", "json").stdout) == ask(app, "GET", "/units").json()


def test_a_group_of_kube_scheduler_has_a_line_with_its_reason_and_wide_its_conditions() -> None:
    condition = GroupCondition("PodGroupInitiallyScheduled", "False", "Unschedulable", "0/3 nodes are available")
    unit = UnitStatus(
        unit="shop/train",
        status=SchedulingStatus.SCHEDULING,
        placed_by=PlacedBy.KUBE_SCHEDULER,
        reason="has no members",
        minimum=8,
        members=9,
        pending=6,
        assumed=1,
        bound=1,
        terminating=1,
        priority=7,
        packing=None,
        conditions=(condition,),
    )
    lines = unstyle(laid_out(units_text(Units([unit]), namespace="shop", wide=False))).splitlines()
    assert lines[-2:] == [
        "NAME   STATUS      SCHEDULED  RESERVED  PENDING  AGE  REASON",
        "train  scheduling  2/8        0         6        -    has no members",
    ]
    head, row = unstyle(laid_out(units_text(Units([unit]), namespace="shop", wide=True))).splitlines()[-2:]
    cells = dict(zip(re.split("  +", head), re.split("  +", row), strict=True))
    assert cells["PLACED BY"] == "kube-scheduler"
    assert [cells[name] for name in ("BOUND", "ASSUMED", "TERMINATING", "PRIORITY")] == ["1", "1", "1", "7"]
    assert {cells[name] for name in ("ENDED", "ATTEMPTS", "RESERVED SINCE", "TIMEOUT", "PACKING", "NODES")} == {"-"}
    assert cells["CONDITIONS"] == "PodGroupInitiallyScheduled=False (Unschedulable): 0/3 nodes are available"


def test_a_service_without_groups_has_none_and_other_answers_are_errors() -> None:
    admin = create_service(Settings(admin="127.0.0.1:0"), ClusterMirror(), None).admin
    assert admin is not None
    with running(admin) as server:
        assert units("--server", server.url).stdout == "No units.\n"
    other = FastAPI()
    other.get("/units")(lambda: {"units": 7})
    with running(other) as server:
        url = server.url
        result = units("--server", url)
    assert (result.exit_code, result.stderr) == (2, f"Error: {url}: is that the admin port?\n")
