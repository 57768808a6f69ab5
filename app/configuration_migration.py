"""Migrates a plain file of settings: adds the head, and turns quoted numbers and booleans into YAML ones.

The rest of the text stays, comments included. Two lines at the head and some quotes do not need a library that writes
YAML with comments, such as ruamel.yaml.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml
from pydantic import ValidationError

from app.configuration_file import FIELDS, HEAD, Loader, accepted, parse
from app.json_text import encode
from app.settings import SettingsError

_TEXT: Final = "tag:yaml.org,2002:str"


class _Edit(NamedTuple):
    """Text that replaces a part of the file."""

    begin: int
    end: int
    text: str


def migrated(text: str, name: str) -> str:
    """Return the text of a file with apiVersion and kind, and with numbers as numbers. Errors call the file `name`.

    A text with a head is returned unchanged. Raises SettingsError for a text that is invalid before or after.
    """
    before = parse(text, name)
    node = yaml.compose(text, Loader)
    if isinstance(node, yaml.MappingNode):
        if not before.plain and node.value:
            return text
        if node.flow_style:
            raise SettingsError(f"{name}: {{...}} around all settings cannot be migrated: write one key on each line")
        for edit in sorted(_edits(node), reverse=True):
            text = text[: edit.begin] + edit.text + text[edit.end :]
    else:  # nothing, or comments alone
        text += ("" if text.endswith("\n") or not text else "\n") + "".join(_head(""))
    parse(text, name)  # the types may be wrong in the new form: the error names them
    return text


def _edits(node: yaml.MappingNode) -> Iterator[_Edit]:
    begin = node.start_mark.index
    yield _Edit(begin, begin, (" " * node.start_mark.column).join([*_head(""), ""]))
    for key, value in node.value:
        if isinstance(value, yaml.ScalarNode) and value.tag == _TEXT:
            typed = _typed(FIELDS[key.value], value.value)
            if typed is not None:
                yield _Edit(value.start_mark.index, value.end_mark.index, typed)


def _head(indent: str) -> list[str]:
    return [f"{indent}{key}: {value}\n" for key, value in HEAD.items()]


def _typed(name: str, text: str) -> str | None:
    """Return the YAML form of a number or a boolean that is written as text ("8888", yes). None for other text."""
    try:
        value = accepted(name, text)
    except ValidationError:
        return None
    return encode(value).decode() if isinstance(value, int | float) else None
