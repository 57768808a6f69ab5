"""Exit statuses are uniform, and docs/commands.md has one table of them; no help text is cut."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.exit_status import EXIT_ERROR, EXIT_NO, EXIT_OK
from app.settings import Settings

PAGES = Path("docs")
NOBODY = "http://127.0.0.1:1"
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


def test_no_other_page_has_a_table_of_exit_statuses() -> None:
    assert [
        page
        for page in PAGES.glob("*.md")
        if re.search(r"^\| *exit status", page.read_text("utf-8"), re.IGNORECASE | re.MULTILINE)
    ] == []


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_wrong_usage_ends_with_2(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*words, "--no-such-option"])
    assert (result.exit_code, result.stdout) == (EXIT_ERROR, "")
    assert "--no-such-option" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["explain", "shop/web", "--server", NOBODY], id="explain"),
        pytest.param(["pending", "--server", NOBODY], id="pending"),
        pytest.param(["status", "--server", NOBODY], id="status"),
        pytest.param(["units", "--server", NOBODY], id="units"),
        pytest.param(["why", "web", "--kubeconfig", "absent"], id="why"),
        pytest.param(["doctor", "--scheduler-config", "absent"], id="doctor"),
        pytest.param(["serve", "--config", "absent"], id="serve"),
        pytest.param(["config", "--config", "absent"], id="config"),
        pytest.param(["rbac", "--config", "absent"], id="rbac"),
        pytest.param(["filter", "--demo", "--config", "absent", "--pod", "-"], id="filter"),
    ],
)
def test_a_service_or_a_file_that_is_not_there_ends_with_2_and_one_line(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == EXIT_ERROR
    (line,) = (line for line in result.stderr.splitlines() if line.startswith("Error: "))
    assert len(line) > len("Error: ")


def test_the_three_statuses() -> None:
    assert (EXIT_OK, EXIT_NO, EXIT_ERROR) == (0, 1, 2)


# Help.


@each_command
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_sentence_of_a_help_is_cut(words: tuple[str, ...], width: int) -> None:
    result = CliRunner().invoke(main, [*words, "--help"], terminal_width=width)
    assert result.exit_code == EXIT_OK
    usage, _, rest = result.stdout.partition("\n\n")
    assert usage.startswith("Usage:")
    assert "..." not in rest


@each_command
def test_every_option_says_what_it_is_in_a_whole_sentence(words: tuple[str, ...]) -> None:
    for parameter in ALL[words].params:
        if isinstance(parameter, click.Option):
            said = (parameter.help or "").partition("  [default")[0]
            assert re.search(r"[.)]$", said), f"{parameter.opts}: {said}"
            assert said.count("(") == said.count(")"), f"{parameter.opts}: {said}"


def test_the_help_of_a_setting_names_others_as_the_file_does() -> None:
    names = [name for name in Settings.model_fields if "_" in name]
    for option in ALL["serve",].params:
        for name in names:
            assert not re.search(rf"\b{name}\b", getattr(option, "help", "") or ""), option.opts
