"""Exit statuses are uniform, and docs/commands.md has one table of them; no help text is cut."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app.commands.cli import main
from app.commands.options import EXIT_ERROR, EXIT_OK

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
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_sentence_of_a_help_is_cut(words: tuple[str, ...], width: int) -> None:
    result = CliRunner().invoke(main, [*words, "--help"], terminal_width=width)
    assert result.exit_code == EXIT_OK
    usage, _, rest = result.stdout.partition("\n\n")
    assert usage.startswith("Usage:")
    assert "..." not in rest
