"""The formats of `-o`, as kubectl has them, and printing a value in one of them.

A command passes the value for JSON and YAML, a function for the text of `table` and `wide`, and the names.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, Protocol

import msgspec
import yaml

from app.commands.printer import Line, print_document, print_line, print_lines
from app.commands.text_columns import WIDTH
from app.json_text import encode, indented
from app.shown_text import shown, shown_json


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
    """Makes the text of `table`, and of `wide`."""

    def __call__(self, *, wide: bool) -> Iterable[Line]:
        """Return the lines."""
        ...


def print_output(output: OutputFormat, value: object, text: Text, names: Iterable[str] = ()) -> None:
    """Print a value: a struct, or decoded JSON. `names` are the output of the format `name`, as from `pod_name`.

    Without names, `name` prints nothing, not even an empty line.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_value(output, value)
        case OutputFormat.NAME:
            for name in names:
                print_line(name)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            print_lines(text(wide=output is OutputFormat.WIDE))


def print_value(output: OutputFormat, value: object) -> None:
    """Print a value as JSON, or as YAML."""
    print_document(shown_json(indented(value)) if output is OutputFormat.JSON else yaml_text(value))


def yaml_text(value: object) -> str:
    """Return a value as YAML with exactly the contents of its JSON, without a newline at the end.

    Raises UnicodeEncodeError for half of a surrogate pair.
    """
    plain: Any = msgspec.json.decode(encode(value))
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return shown(text.rstrip(), "\n")


def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Represent text for YAML; in double quotes, where escapes have an effect, if a character has to be escaped."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if shown(text) != text else None)


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without raw control characters, and without a line that begins with a part of a text."""

    def write_double_quoted(self, text: str, split: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  # the library's
        """Write a text on one line."""
        super().write_double_quoted(text, split=False)


_Dumper.add_representer(str, represent_text)


def pod_name(full_name: str) -> str:
    """Return `pod/NAME` for NAMESPACE/NAME: kubectl leaves out the namespace."""
    return f"pod/{full_name.rpartition('/')[2]}"


def node_name(name: str) -> str:
    """Return `node/NAME`."""
    return f"node/{name}"
