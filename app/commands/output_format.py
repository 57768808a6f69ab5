"""The formats of `-o`, as kubectl has them, and printing a value in one of them.

A command passes the value for JSON and YAML, a function for the text of `table` and `wide`, and the names.
"""

import os
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Protocol

import click
import msgspec
import yaml

from app.commands.text_columns import WIDTH
from app.json_text import encode, indented


class OutputFormat(Enum):
    """The output formats of commands."""

    TABLE = "table"
    """Text in lines of 80 columns, or of the terminal's where that is wider."""
    WIDE = "wide"
    """The same with more columns, without shortening any."""
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    """A line `pod/NAME` or `node/NAME` for each object."""


FORMATS: Final = tuple(OutputFormat)
NO_NAMES: Final = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSON, OutputFormat.YAML)
"""For commands whose output is not about a list of pods or nodes."""


class Text(Protocol):
    """Makes the text of `table`, and of `wide`; click removes the colours where there is no terminal."""

    def __call__(self, *, wide: bool) -> str:
        """Return the lines, without a newline at the end."""
        ...


def print_output(output: OutputFormat, value: object, text: Text, names: Iterable[str] = ()) -> None:
    """Print a value: a struct, or decoded JSON. `names` are the output of the format `name`, as from `pod_name`.

    Without names, `name` prints nothing, not even an empty line.
    """
    match output:
        case OutputFormat.JSON:
            _echo(indented(value))
        case OutputFormat.YAML:
            _echo(yaml_text(value))
        case OutputFormat.NAME:
            for name in names:
                _echo(name)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            _echo(text(wide=output is OutputFormat.WIDE))


def yaml_text(value: object) -> str:
    """Return a value as YAML with exactly the contents of its JSON, without a newline at the end.

    Raises UnicodeEncodeError for half of a surrogate pair.
    """
    plain: Any = msgspec.json.decode(encode(value))
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=WIDTH).rstrip()


def pod_name(full_name: str) -> str:
    """Return `pod/NAME` for NAMESPACE/NAME: kubectl leaves out the namespace."""
    return f"pod/{full_name.rpartition('/')[2]}"


def node_name(name: str) -> str:
    """Return `node/NAME`."""
    return f"node/{name}"


def _echo(line: str) -> None:
    click.echo(line, color=False if os.environ.get("NO_COLOR") else None)
