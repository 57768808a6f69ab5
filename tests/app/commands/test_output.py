"""What is printed: lines that are escaped whole, with our own colours, and documents with lines of their own."""

import io
import sys
from collections.abc import Iterable
from typing import Any

import click
import msgspec
import pytest
import yaml
from click import unstyle
from click.testing import CliRunner, Result

from app.commands.options import output_option
from app.commands.output import (
    NO_NAMES,
    WIDTH,
    Line,
    OutputFormat,
    Styled,
    age_text,
    laid_out,
    line_width,
    node_name,
    paragraphs,
    pod_name,
    print_document,
    print_output,
    prose_width,
    table,
    wrapped,
    yaml_text,
)

BAD = "a\n\x1b[7m\u202e"
RENDERED = r"a\n\x1b[7m\u202e"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (BAD, RENDERED),
        (Styled(BAD, bold=True), f"\x1b[1m{RENDERED}\x1b[0m"),
        (Styled(BAD, fg="red", dim=True, rest=BAD), f"\x1b[31m\x1b[2m{RENDERED}\x1b[0m{RENDERED}"),
    ],
    ids=["plain", "styled", "rest"],
)
def test_a_line_is_escaped_whole_and_coloured_afterwards(line: Line, expected: str) -> None:
    assert laid_out([line]) == expected


def test_paragraphs_have_an_empty_line_between_them() -> None:
    assert [*paragraphs([["a", "b"], [], ["c"], iter(())])] == ["a", "b", "", "c"]


def test_a_document_keeps_its_lines_and_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_document("if x:\n\ty\x9b\n", nl=False)
    assert capsys.readouterr().out == "if x:\n\ty\\x9b\n"


class Found(msgspec.Struct, frozen=True):
    """What a command has found."""

    pod: str
    nodes: dict[int, str | None]
    raw: msgspec.Raw = msgspec.Raw(b'{"a":[1]}')


FOUND = Found("shop/wéb", {1: "yes", 2: None})
AS_JSON = {"pod": "shop/wéb", "nodes": {"1": "yes", "2": None}, "raw": {"a": [1]}}


def text(*, wide: bool) -> list[Line]:
    return [Styled("POD  NODES" if wide else "POD", bold=True)]


@click.command()
@output_option()
def found(output: OutputFormat) -> None:
    """Print what is found."""
    print_output(output, FOUND, text, (pod_name("shop/wéb"), node_name("n1")))


@click.command()
@output_option(NO_NAMES, OutputFormat.JSON)
def without_names(output: OutputFormat) -> None:
    """Print what has no names."""
    print_output(output, FOUND, text)


def run(command: click.Command, *arguments: str, **how: Any) -> Result:  # noqa: ANN401  # as CliRunner.invoke
    return CliRunner().invoke(command, arguments, **how)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], "POD\n", id="default"),
        pytest.param(["-o", "table"], "POD\n", id="table"),
        pytest.param(["--output", "wide"], "POD  NODES\n", id="wide"),
        pytest.param(["-o", "name"], "pod/wéb\nnode/n1\n", id="name"),
    ],
)
def test_text_is_as_the_format_says(arguments: list[str], expected: str) -> None:
    result = run(found, *arguments)
    assert (result.exit_code, result.output) == (0, expected)


def test_json_is_indented_by_two_spaces() -> None:
    result = run(found, "-o", "json")
    assert result.stdout.startswith('{\n  "pod": "shop/wéb",\n  "nodes": {\n    "1": "yes",')
    assert msgspec.json.decode(result.stdout) == AS_JSON


def test_yaml_has_what_json_has_in_the_same_order() -> None:
    result = run(found, "-o", "yaml")
    assert result.stdout.startswith("pod: shop/wéb\nnodes:\n  '1': 'yes'\n")
    assert yaml.safe_load(result.stdout) == AS_JSON


@pytest.mark.parametrize(
    "text", ["a\u202eb", "a\nb\n", "a\u00a0b", "\x1b[7m", "a\x85b\u2028c", "\U000e0101", "x y " * 60]
)
def test_yaml_with_escapes_has_the_same_value_and_one_line(text: str) -> None:
    found = yaml_text({text: [text]})
    assert yaml.safe_load(found) == {text: [text]}
    assert found.replace("\n", "").isprintable()


def test_a_command_without_names_has_no_such_format_and_may_have_another_default() -> None:
    assert run(without_names).stdout == run(found, "-o", "json").stdout
    result = run(without_names, "-o", "name")
    assert result.exit_code == 2
    assert "'name' is not one of 'table', 'wide', 'json', 'yaml'." in result.stderr


def test_colours_are_for_terminals_whose_user_wants_them() -> None:
    assert run(found, color=True).stdout == "\x1b[1mPOD\x1b[0m\n"
    assert run(found, color=True, env={"NO_COLOR": "1"}).stdout == "POD\n"
    assert run(found).stdout == "POD\n"


def texts(lines: Iterable[Line]) -> list[str]:
    return unstyle(laid_out(lines)).splitlines()


class Terminal(io.StringIO):
    """Standard output where a person sits."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("columns", "line", "prose"), [("60", 80, 80), ("80", 80, 80), ("90", 90, 90), ("200", 200, 100)]
)
def test_a_wider_terminal_has_wider_lines_but_sentences_stay_readable(
    monkeypatch: pytest.MonkeyPatch, columns: str, line: int, prose: int
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    assert (line_width(), prose_width()) == (line, prose)


def test_a_pipe_has_80_columns_whatever_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "200")
    assert (line_width(), prose_width()) == (80, 80)


def test_a_word_that_is_too_long_is_broken_and_whole() -> None:
    lines = wrapped("x" * 253, 4, "")
    assert max(map(len, lines)) == WIDTH
    assert "".join(lines).replace(" ", "") == "x" * 253


def test_the_widest_columns_give_way_until_the_table_fits() -> None:
    heads = ["A", "B", ">C"]
    lines = texts(table(heads, [("a" * 300, "b" * 60, 12345), ("n", "", 7)]))
    a, b, c = lines[1].split()
    assert (len(lines[1]), len(a), len(b), c) == (WIDTH, 34, 35, "12345")
    assert ["".join(lines[1:]).count(letter) for letter in "ab"] == [300, 60]
    assert lines[-1] == f"  n{' ' * 76}7"


def test_sentences_go_on_below_in_their_column() -> None:
    rows = [("n1", "as short as it can be", "word " * 30), ("n2", "", "fits")]
    lines = texts(table(("NODE", "THEN", "NOW"), rows))
    assert lines[0] == "  NODE  THEN                   NOW"
    assert lines[1].startswith("  n1    as short as it can be  word word")
    assert {line[:31] for line in lines[2:-1]} == {" " * 31}
    assert lines[-1] == "  n2                           fits"
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(lines).count("word") == 30


def test_sentences_give_way_to_names() -> None:
    name = "a-name-of-forty-five-characters-that-is-whole"
    lines = texts(table(("NODE", "NOW"), [(name, "word " * 9)]))
    assert [line.strip() for line in lines[1:]] == [f"{name}  {'word ' * 6}".strip(), "word word word"]


def test_escapes_count_for_the_width() -> None:
    assert wrapped("\x1b" * 60, 0) == ["\\x1b" * 20] * 3
    assert texts(table(("N",), [("\n" * 200,)]))[1][-4:] == "\\n\\n"


MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # The cases of k8s.io/apimachinery pkg/util/duration/duration_test.go, TestHumanDuration.
        (1, "1s"),
        (70, "70s"),
        (190, "3m10s"),
        (70 * MINUTE, "70m"),
        (47 * HOUR, "47h"),
        (49 * HOUR, "2d1h"),
        (8 * DAY + 2 * HOUR, "8d"),
        (367 * DAY, "367d"),
        (2 * YEAR + 25 * DAY, "2y25d"),
        (8 * YEAR + 2 * DAY, "8y"),
        # The bounds between two forms.
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY, "2d"),
        (8 * DAY - 1, "7d23h"),
        (2 * YEAR, "2y"),
        (8 * YEAR - 1, "7y364d"),
    ],
)
def test_an_age_has_the_form_that_kubectl_gives_it(seconds: float, expected: str) -> None:
    assert age_text(seconds) == expected
