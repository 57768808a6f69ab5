"""The command line as a whole: one table of exit statuses (docs/commands.md), and no help that is cut."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app import __version__
from app.commands.cli import COMMANDS, main
from app.commands.options import EXIT_ERROR, EXIT_OK
from tests.app.commands.invoked import kindred


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
JUDGING = ("explain", "why", "status", "doctor", "capacity", "drain", "loss", "removal")
"""Commands whose answer may be no; all others are done, or in error."""


each_command = pytest.mark.parametrize("name", COMMANDS)


def table() -> list[list[str]]:
    """Return the rows of the page's table, without its head."""
    section = (PAGES / "commands.md").read_text("utf-8").partition("## Exit status\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_has_every_command_once() -> None:
    named = [name for names, *_ in table() for name in re.findall(r"`([^`]+)`", names)]
    assert sorted(named) == sorted(COMMANDS)


def test_only_commands_that_judge_and_serve_end_with_1() -> None:
    with_no = {name for names, _, no, _ in table() if no for name in re.findall(r"`([^`]+)`", names)}
    assert {*JUDGING, "serve"} == with_no
    assert all(error for *_, error in table())


@each_command
def test_wrong_usage_ends_with_2(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--no-such-option"])
    assert (result.exit_code, result.stdout) == (EXIT_ERROR, "")
    assert "--no-such-option" in result.stderr


# Standard output and error of a shell.


@pytest.mark.parametrize(
    ("line", "status", "error"),
    [
        pytest.param("explain data/queue-0 --demo 2>&1 | true", 0, "", id="closed-pipe-and-yes"),
        pytest.param("explain data/queue-3 --demo 2>&1 | true", 1, "", id="closed-pipe-and-no"),
        pytest.param("rbac >/dev/full", 2, "Error: standard output: No space left on device\n", id="full"),
        pytest.param("rbac 2>/dev/full >/dev/full", 2, "", id="both-full"),
        pytest.param("status --server http://127.0.0.1:9 >&- 2>&-", 2, "", id="closed-and-error"),
        pytest.param("loss --no-such-option 2>&1 | true", 2, "", id="closed-pipe-and-wrong-usage"),
        pytest.param("explain 2>/dev/full", 2, "", id="full-and-wrong-usage"),
        pytest.param("explain -f - --demo <&- 2>&-", 2, "", id="closed-input"),
        pytest.param("explain data/queue-3 --demo >&- 2>&-", 1, "", id="closed-and-no"),
    ],
)
def test_the_status_is_the_answer_whoever_reads(line: str, status: int, error: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m app.commands.cli {line}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603, S607  # ours
    assert (found.returncode, found.stdout, found.stderr) == (status, "", error)


# Help.


def test_the_program_alone_prints_its_help() -> None:
    result = CliRunner().invoke(main, [])
    assert (result.exit_code, result.stdout) == (EXIT_ERROR, "")
    assert result.stderr == CliRunner().invoke(main, ["--help"]).stdout


def test_the_help_has_the_first_sentence_of_each_command() -> None:
    with click.Context(main) as context:
        found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    reported = {name: command.get_short_help_str(limit=sys.maxsize) for name, command in found.items() if command}
    assert reported == {name: sentence for name, (_, sentence) in COMMANDS.items()}


def test_nothing_is_collected_while_a_command_is_imported() -> None:
    code = (
        "import gc, click; from app.commands.cli import main; before = gc.get_stats(); "
        "main.get_command(click.Context(main), 'serve'); "
        "assert gc.get_stats() == before and gc.isenabled() and gc.get_freeze_count() > 100_000"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603  # our own code


def test_the_help_of_the_program_imports_no_command() -> None:
    code = (
        "import sys, click; from app.commands.cli import main; main.get_help(click.Context(main)); "
        "print([name for name in sys.modules if name in ('app.commands.serve', 'fastapi', 'numpy')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"  # noqa: S603  # our own program


@each_command
def test_no_sentence_of_a_help_is_cut(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"], terminal_width=60)
    assert result.exit_code == EXIT_OK
    usage, _, rest = result.stdout.partition("\n\n")
    assert usage.startswith("Usage:")
    assert "..." not in rest
