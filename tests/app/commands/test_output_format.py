"""The formats of -o: what each of them prints of the same value."""

from typing import Any

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from app.commands.options import output_option
from app.commands.output import (
    NO_NAMES,
    Line,
    OutputFormat,
    Styled,
    node_name,
    pod_name,
    print_output,
    yaml_text,
)


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


def test_yaml_of_decoded_json_is_that_of_the_struct() -> None:
    assert yaml_text(AS_JSON) == yaml_text(FOUND)


@pytest.mark.parametrize(
    "text", ["a\u202eb", "a\nb\n", "a\u00a0b", "\x1b[7m", "a\x85b\u2028c", "\U000e0101", "x y " * 60]
)
def test_yaml_with_escapes_has_the_same_value_and_one_line(text: str) -> None:
    found = yaml_text({text: [text]})
    assert yaml.safe_load(found) == {text: [text]}
    assert found.replace("\n", "").isprintable()


def test_no_names_are_no_lines() -> None:
    @click.command()
    @output_option()
    def empty(output: OutputFormat) -> None:
        print_output(output, [], text)

    assert run(empty, "-o", "name").stdout == ""


def test_another_format_is_refused_with_those_that_there_are() -> None:
    result = run(found, "-o", "xml")
    assert result.exit_code == 2
    assert "'xml' is not one of 'table', 'wide', 'json', 'yaml', 'name'" in result.stderr


def test_a_command_without_names_has_no_such_format_and_may_have_another_default() -> None:
    assert run(without_names).stdout == run(found, "-o", "json").stdout
    result = run(without_names, "-o", "name")
    assert result.exit_code == 2
    assert "'name' is not one of 'table', 'wide', 'json', 'yaml'." in result.stderr


def test_colours_are_for_terminals_whose_user_wants_them() -> None:
    assert run(found, color=True).stdout == "\x1b[1mPOD\x1b[0m\n"
    assert run(found, color=True, env={"NO_COLOR": "1"}).stdout == "POD\n"
    assert run(found).stdout == "POD\n"
