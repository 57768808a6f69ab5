"""`kindred filter`: the results of the server without a server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from app import __version__
from app.commands.cli import main
from app.commands.options import EXIT_ERROR, EXIT_OK
from app.main import create_service
from app.settings.settings import Settings
from tests.app.asgi import ask
from tests.app.dump.dumps import as_json, kinded, listed, load
from tests.app.questions import AFFINITY_RULES, NEAR_WEB, ZONE
from tests.builders import make_namespace, make_node, make_pod

DEMO = Path(str(resources.files("app") / "demo"))
DUMP = listed(
    *kinded(
        *(make_node(name).label(ZONE, name[0]) for name in ("a1", "b1", "c1")),
        *(make_pod(f"web-{number}").label("app", "web").on(node) for number, node in enumerate(("a1", "a1", "b1"))),
        make_namespace("default"),
    )
)
LOADED = "Loaded 3 nodes, 3 pods, 1 namespaces\n"
WANTS_WEB = make_pod("p").required_affinity(NEAR_WEB)
LIKES_WEB = make_pod("p").preferred_affinity(10, NEAR_WEB)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return saved(tmp_path, "dump.json", as_json(DUMP))


@pytest.fixture
def pod(tmp_path: Path) -> str:
    return saved(tmp_path, "pod.json", WANTS_WEB.json())


def saved(folder: Path, name: str, text: bytes) -> str:
    (folder / name).write_bytes(text)
    return str(folder / name)


def kindred(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


# The answers.


def test_filter_prints_the_result_over_all_nodes(dump: str, pod: str) -> None:
    result = kindred("filter", "--snapshot", dump, "--pod", pod)
    assert json.loads(result.stdout) == {
        "Nodes": None,
        "NodeNames": ["a1", "b1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"c1": AFFINITY_RULES},
        "Error": "",
    }
    assert list(json.loads(result.stdout)) == [
        "Nodes",
        "NodeNames",
        "FailedNodes",
        "FailedAndUnresolvableNodes",
        "Error",
    ]
    assert (result.exit_code, result.stderr) == (0, LOADED)


def test_the_profile_says_which_plugins_answer(dump: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PROFILE", "NodePorts")
    pod = saved(tmp_path, "p", WANTS_WEB.node_selector({ZONE: "a"}).json())
    by_profile = {
        profile: json.loads(kindred("filter", "--snapshot", dump, "--pod", pod, *profile.split()).stdout)["NodeNames"]
        for profile in ("", "--profile affinity", "--profile MatchNodeSelector", "--profile full")
    }
    assert by_profile == {
        "": ["a1", "b1", "c1"],
        "--profile affinity": ["a1", "b1"],
        "--profile MatchNodeSelector": ["a1"],
        "--profile full": [],
    }


@pytest.mark.parametrize("request_file", sorted((DEMO / "requests").iterdir()), ids=lambda path: path.stem)
def test_the_demo_answers_its_requests_as_the_server_does(request_file: Path, tmp_path: Path) -> None:
    body = request_file.read_bytes()
    question = json.loads(body)
    pod = saved(tmp_path, "p", json.dumps(question["Pod"]).encode())
    result = kindred("filter", "--demo", "--pod", pod, "--nodes", ",".join(question["NodeNames"]))
    app = create_service(Settings(), load((DEMO / "cluster.json").read_bytes())[0], None).app
    assert ask(app, "POST", "/filter", body).json() == json.loads(result.stdout)
    assert result.exit_code == 0


def test_nodes_out_of_the_partition_fail(dump: str, pod: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINDRED_PARTITION", '{"out":["a1"]}')
    result = json.loads(kindred("filter", "--snapshot", dump, "--pod", pod).stdout)
    assert result["NodeNames"] == ["b1"]
    assert result["FailedAndUnresolvableNodes"]["a1"] == "node(s) out of the scheduler's partition"


# Where the input comes from.


@pytest.mark.parametrize(
    "text",
    [as_json(DUMP), yaml.safe_dump(DUMP).encode(), yaml.safe_dump_all(DUMP["items"]).encode()],
    ids=["json", "yaml", "yaml-documents"],
)
@pytest.mark.parametrize("from_stdin", [False, True], ids=["file", "stdin"])
def test_a_dump_is_read_in_every_form(text: bytes, from_stdin: bool, pod: str, tmp_path: Path) -> None:  # noqa: FBT001 - one of two cases
    snapshot = "-" if from_stdin else saved(tmp_path, "dump", text)
    result = kindred("filter", "--snapshot", snapshot, "--pod", pod, stdin=text if from_stdin else b"")
    assert json.loads(result.stdout)["NodeNames"] == ["a1", "b1"]
    assert (result.exit_code, result.stderr) == (0, LOADED)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param(["--nodes", "c1,a1"], ["c1", "a1"], id="a-list"),
        pytest.param(["--nodes", "c1", "--nodes", "a1,b1"], ["c1", "a1", "b1"], id="repeated"),
        pytest.param(["--nodes", ",b1,,"], ["b1"], id="spare-commas"),
        pytest.param([], ["a1", "b1", "c1"], id="left-out"),
        pytest.param(["--nodes", "ghost"], ["ghost"], id="unknown"),
    ],
)
def test_nodes_are_asked_about_in_the_order_given(
    options: list[str], expected: list[str], dump: str, tmp_path: Path
) -> None:
    pod = saved(tmp_path, "p", LIKES_WEB.json())
    result = json.loads(kindred("filter", "--snapshot", dump, "--pod", pod, *options).stdout)
    assert expected == [*result["NodeNames"], *result["FailedAndUnresolvableNodes"]]


# The command itself.


def test_version_is_printed() -> None:
    assert kindred("--version").stdout == f"kindred, version {__version__}\n"


def test_the_shell_completes_by_the_variable_that_the_page_names() -> None:
    assert "_KINDRED_COMPLETE=bash_source" in Path("docs/commands.md").read_text("utf-8")
    environment = {**os.environ, "COMP_WORDS": "kindred conf", "COMP_CWORD": "1"}
    ran = subprocess.run(  # noqa: S603  # our own program
        [Path(sys.executable).parent / "kindred"],
        env={**environment, "_KINDRED_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("plain,config\n", "")


PAGES = Path("docs")
JUDGING = ("explain", "why", "status", "doctor")
"""Commands whose answer may be no; all others are done, or in error."""


def commands(
    group: click.Group = main, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words and the command of each, groups included."""
    yield before, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


ALL = dict(commands())
LEAVES = [words for words, command in ALL.items() if not isinstance(command, click.Group)]
each_command = pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "kindred")


def table() -> list[list[str]]:
    """Return the rows of the page's table, without its head."""
    section = (PAGES / "commands.md").read_text("utf-8").partition("## Exit status\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_has_every_command_once() -> None:
    named = [name for names, *_ in table() for name in re.findall(r"`([^`]+)`", names)]
    assert sorted(named) == sorted(" ".join(words) for words in LEAVES)


def test_only_commands_that_judge_and_serve_end_with_1() -> None:
    with_no = {name for names, _, no, _ in table() if no for name in re.findall(r"`([^`]+)`", names)}
    assert {*JUDGING, "serve"} == with_no
    assert all(error for *_, error in table())


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_wrong_usage_ends_with_2(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "--no-such-option"])
    assert (result.exit_code, result.stdout) == (EXIT_ERROR, "")
    assert "--no-such-option" in result.stderr


# Help.


@each_command
def test_no_sentence_of_a_help_is_cut(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "--help"], terminal_width=60)
    assert result.exit_code == EXIT_OK
    usage, _, rest = result.stdout.partition("\n\n")
    assert usage.startswith("Usage:")
    assert "..." not in rest
