"""The text of every command over the demo cluster fits into 80 columns."""

import json
from collections.abc import Iterator

import click
import msgspec
import pytest
from click.testing import CliRunner
from fastapi import FastAPI, Response

from app.admin.cluster_routes import Units
from app.commands.cli import main
from app.commands.dump import DEMO
from app.commands.output import WIDTH
from app.dump.snapshot_file import load_items, read_items
from app.main import create_service
from app.settings.settings import Settings
from core.gangs.unit_status import SchedulingStatus, UnitStatus
from core.mirror.cluster import ClusterMirror
from tests.app.api_server.client_setting import write_kubeconfig
from tests.app.asgi import ask
from tests.app.commands.running import running
from tests.app.commands.why.cluster import small_cluster

REQUEST = json.loads((DEMO / "requests" / "required-anti-affinity.json").read_bytes())
OF_PEOPLE = {"--output", "-o"}
UNIT = UnitStatus(
    unit="shop/train-with-a-long-name",
    status=SchedulingStatus.SCHEDULING,
    reason="3 of 8 members fit; the next one, shop/train-3, does not: 4990 Insufficient cpu, 10 Too many pods",
    minimum=8,
    members=8,
    pending=8,
    asked=61.0,
)
COMMANDS = {
    "config": [],
    "doctor": ["--scheduler-config", "docs/examples/broken-scheduler.yaml"],
    "explain": ["data/queue-3", "--demo", "--why-not", "node1", "--profile", "full"],
    "filter": ["--demo", "--pod", "@pod", "--profile", "full"],
    "pending": ["--demo"],
    "rbac": ["--profile", "full", "--preempt", "evict", "--leader-election", "true"],
    "status": ["--server", "@admin"],
    "units": ["--server", "@units"],
    "why": ["queue-3", "-n", "data", "--why-not", "node1", "--local", "--kubeconfig", "@kubeconfig"],
}
"""Command -> its arguments; @admin and @units are services, @pod is a manifest, @kubeconfig is of the demo cluster."""
PLURALS = {"Node": "nodes", "Pod": "pods", "Namespace": "namespaces"}


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for each, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{name}{each} ")
        else:
            yield f"{name}{each}", command


def formats(command: click.Command) -> set[str]:
    """Return the formats of a command's -o."""
    for parameter in command.params:
        if set(parameter.opts) >= OF_PEOPLE:
            assert isinstance(parameter.type, click.Choice)
            return set(parameter.type.choices)
    return set()


PRINTING = sorted(name for name, command in commands(main) if "table" in formats(command))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Serve the demo cluster, with one decision, and units; give their URLs and a manifest."""
    mirror = ClusterMirror()
    load_items(read_items((DEMO / "cluster.json").read_bytes()), mirror, skip_invalid=False)
    service = create_service(Settings(admin="127.0.0.1:0"), mirror, None)
    assert service.admin is not None
    ask(service.app, "POST", "/filter", json.dumps(REQUEST).encode())
    with_units = FastAPI()
    with_units.get("/units")(lambda: Response(msgspec.json.encode(Units([UNIT]))))
    folder = tmp_path_factory.mktemp("manifest")
    (folder / "pod.json").write_text(json.dumps(REQUEST["Pod"]))
    with running(service.admin) as admin, running(with_units) as units, small_cluster() as cluster:
        for each in json.loads((DEMO / "cluster.json").read_bytes())["items"]:
            cluster.add(PLURALS[each["kind"]], each)
        kubeconfig = write_kubeconfig(folder / "kubeconfig", cluster.url)
        pod = str(folder / "pod.json")
        yield {"@admin": admin.url, "@units": units.url, "@pod": pod, "@kubeconfig": kubeconfig}


def test_every_command_that_prints_a_table_is_tried() -> None:
    assert sorted(COMMANDS) == PRINTING


@pytest.mark.parametrize("name", PRINTING)
def test_no_line_of_a_table_is_longer_than_80_columns(name: str, places: dict[str, str]) -> None:
    arguments = [places.get(argument, argument) for argument in COMMANDS[name]]
    result = CliRunner().invoke(main, [*name.split(), *arguments, "-o", "table"])
    lines = result.stdout.splitlines()
    assert lines, result.output
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize("name", [name for name, _ in commands(main)])
def test_no_line_of_a_help_is_longer_than_80_columns(name: str) -> None:
    result = CliRunner().invoke(main, [*name.split(), "--help"], terminal_width=WIDTH)
    assert [line for line in result.stdout.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("name", PRINTING)
def test_every_table_has_a_wide_form_and_two_for_programs(name: str) -> None:
    assert formats(dict(commands(main))[name]) >= {"table", "wide", "json", "yaml"}
