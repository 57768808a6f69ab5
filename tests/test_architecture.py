"""docs/architecture.md lists every room, and the real call paths through the rooms."""

import ast
import asyncio
import json
import re
from collections.abc import Iterator
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


LOOPS: Final = {
    "core/explaining/remedy.py: add_copy": "the pods of a node go with the node to its copy",
    "core/framework/evaluation.py: FitChecks.failure_with": "nominated pods count where they are nominated",
    "core/gangs/attempts.py: Search.step": "the search back tries one place after another, and takes them back",
    "core/gangs/packing.py: FewestDomains._in_used_ones.place": "a member is tried again with one more domain",
    "core/gangs/packing.py: FewestDomains.place": "the best placement is taken again, and judged no more",
    "core/gangs/placing.py: Attempt._place_again": "places are kept that were found before the mirror changed",
    "core/gangs/placing.py: Placer.may_fit_now": "the places of the last attempt are taken again, to judge one member",
    "core/simulation/placing.py: in_turn": "each pod gets the best node beside those before it",
}
"""The loops that suppose pods on nodes, outside of the fork itself, with what they are for."""


def loops_that_place(node: ast.AST, path: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the functions that have a loop in which a pod is supposed on a node."""
    for child in ast.iter_child_nodes(node):
        inner = (*names, child.name) if isinstance(child, ast.FunctionDef | ast.ClassDef) else names
        is_loop = isinstance(child, ast.For | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
        if is_loop and any(map(supposes, ast.walk(child))):
            yield f"{path}: {'.'.join(inner)}"
        else:
            yield from loops_that_place(child, path, inner)


def supposes(node: ast.AST) -> bool:
    """Return whether this is a call that supposes a pod on a node."""
    match node:
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args):
            return name in {"place_best", "place_on"} or (name == "place" and len(args) == len(("pod", "node")))
    return False


def test_core_has_one_loop_that_gives_pods_their_best_nodes() -> None:
    """The others are named, with the reason why they are none."""
    paths = {str(path.relative_to(ROOT)): path for path in (ROOT / "core").rglob("*.py")}
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items() if "core/mirror/" not in name}
    assert {loop for name, tree in trees.items() for loop in loops_that_place(tree, name)} == {*LOOPS}
    assert {name for name, tree in trees.items() if any(map(takes_pods_in_turn, ast.walk(tree)))} == {
        "core/gangs/attempts.py",
        "core/gangs/packing.py",
        "core/simulation/placing.py",
    }


def takes_pods_in_turn(node: ast.AST) -> bool:
    """Return whether this is a call of the one loop."""
    match node:
        case ast.Call(func=ast.Name("in_turn")):
            return True
    return False


def test_every_room_is_in_the_table() -> None:
    rooms = {path.parent.name for path in (ROOT / "app").glob("*/__init__.py")} - {"demo"}
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) >= rooms
    assert {path.name for path in (ROOT / "app").glob("*.py")} == {"__init__.py"}


def test_every_room_says_what_is_in_it_and_what_is_not() -> None:
    for path in (ROOT / "app").glob("*/__init__.py"):
        if path.parent.name != "demo":
            assert len(json.dumps(path.read_text().strip()).split("\\n\\n")) == 2, path
