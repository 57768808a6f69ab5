"""docs/architecture.md lists every room, and the real call paths through the rooms."""

import ast
import asyncio
import json
import re
from typing import Final

import pytest

from app.settings.limits import Limits
from tests.app.feeds.following import scenario
from tests.app.server.conversations import connected, read_response, request, serving
from tests.app.verbs.binding.binding_setting import N1, PATIENCE, WEB, loner, scheduling, until
from tests.calls import ROOT, Calls, port_of
from tests.fake_apiserver import FakeApiServer

TEXT: Final = (ROOT / "docs/architecture.md").read_text("utf-8")
REQUEST: Final = ROOT / "app/demo/requests/required-affinity.json"


def way(title: str) -> list[str]:
    """Return the functions that a section lists, each as `path: qualified name`."""
    section = TEXT.partition(f"### {title}\n")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `(\S+\.py: [\w.]+)`", section, re.MULTILINE)


async def calls_of(name: str, path: str) -> Calls:
    """Send a request to a port, and return the calls that it causes."""
    calls = Calls()
    async with asyncio.timeout(PATIENCE), serving(port_of(name)) as (_, number), connected(number) as (reader, writer):
        with calls.watching():
            writer.write(request(path, REQUEST.read_bytes()))
            assert (await read_response(reader))[0] == 200
    return calls


@pytest.mark.parametrize(
    ("title", "port", "path"),
    [
        pytest.param("A filter call", "extender", "/filter", id="filter"),
        pytest.param("An explanation", "admin", "/explain", id="explain"),
    ],
)
def test_a_request_takes_the_way_that_is_written(title: str, port: str, path: str) -> None:
    listed = way(title)
    assert len(listed) > 5
    assert asyncio.run(calls_of(port, path)).of(listed) == listed


@scenario()
async def test_a_watch_event_takes_the_way_that_is_written(server: FakeApiServer) -> None:
    listed, calls = way("A watch event"), Calls()
    async with scheduling(server, N1) as scheduler:
        assert await scheduler.filter(scheduler.create(WEB), "n1") == ["n1"]  # the cache listens from now on
        await until(server.all_sent)
        with calls.watching():
            pod = scheduler.create(loner("first").on("n1"))
            await until(lambda: scheduler.is_added(pod, "n1"))
    assert len(listed) > 5
    assert calls.of(listed) == listed


@scenario()
async def test_a_decision_takes_the_way_that_is_written(server: FakeApiServer) -> None:
    listed, calls = way("A decision"), Calls()
    async with scheduling(server, N1, decide="listed-nodes", limits=Limits(settle=0.0)) as scheduler:
        pod = scheduler.create(WEB)
        await until(lambda: len(scheduler.mirror.pending) == 1)
        with calls.watching():
            assert await scheduler.filter(pod, "n1") == ["n1"]
    assert len(listed) > 5
    assert calls.of(listed) == listed


@scenario()
async def test_a_binding_takes_the_way_that_is_written(server: FakeApiServer) -> None:
    listed, calls = way("A binding"), Calls()
    async with scheduling(server, N1) as scheduler:
        pod = scheduler.create(WEB)
        assert await scheduler.filter(pod, "n1") == ["n1"]
        await until(server.all_sent)
        with calls.watching():
            assert await scheduler.bind(pod, "n1") == ""
            await until(lambda: scheduler.is_added(pod, "n1"))
    assert len(listed) > 5
    assert calls.of(listed) == listed


ONE_POD: Final = "core/simulation/one_pod.py"
WITHOUT_A_CHOICE: Final = {
    "core/explaining/remedy.py": "a step says on which node its pod is, and it has no volumes",
    "core/framework/evaluation.py": "nominated pods count where they are nominated, and nothing is reserved for them",
}
"""Modules that suppose pods on nodes that nobody chooses, with the reason why nothing is reserved."""


def test_core_chooses_nodes_and_supposes_pods_there_in_one_place() -> None:
    placing: dict[str, set[str]] = {"choose_nodes": set(), "place": set(), "reserve": set()}
    for path in (ROOT / "core").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            match call:
                case ast.Call(func=ast.Name("choose_nodes") | ast.Attribute(attr="choose_nodes")):
                    placing["choose_nodes"].add(name)
                case ast.Call(func=ast.Attribute(attr="place"), args=[_, _]) if not name.startswith("core/mirror/"):
                    placing["place"].add(name)
                case ast.Call(func=ast.Attribute(attr="reserve"), args=[_, _, _]):
                    placing["reserve"].add(name)
    assert placing == {
        "choose_nodes": {ONE_POD},
        "place": {ONE_POD, *WITHOUT_A_CHOICE},
        "reserve": {ONE_POD},
    }


def test_every_room_is_in_the_table() -> None:
    rooms = {path.parent.name for path in (ROOT / "app").glob("*/__init__.py")} - {"demo"}
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) >= rooms
    assert {path.name for path in (ROOT / "app").glob("*.py")} == {"__init__.py"}


def test_every_room_says_what_is_in_it_and_what_is_not() -> None:
    for path in (ROOT / "app").glob("*/__init__.py"):
        if path.parent.name != "demo":
            assert len(json.dumps(path.read_text().strip()).split("\\n\\n")) == 2, path
