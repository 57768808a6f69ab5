"""A file of settings: YAML with a head, `apiVersion` and `kind`, as in Kubernetes. A duplicate key is an error."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml

from app.files import MAX_CONFIGURATION_BYTES, read_file
from app.settings import Settings, SettingsError, key_of

API_VERSION: Final = "kindred.dev/v1alpha1"
KIND: Final = "KindredConfiguration"
HEAD: Final = {"apiVersion": API_VERSION, "kind": KIND}
FIELDS: Final[Mapping[str, str]] = {key_of(name): name for name in Settings.model_fields}
"""Key -> field."""

_BOOLEAN: Final = "tag:yaml.org,2002:bool"
_TRUE_OR_FALSE: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")


class _Loader(yaml.SafeLoader):
    """YAML in which `on`, `off`, `yes` and `no` are text, as in YAML 1.2. `preempt: off` needs this.

    pydantic-settings' own source would read `off` as false, and take the last of two values of a key.
    """


_Loader.yaml_implicit_resolvers = {
    first: [(tag, _TRUE_OR_FALSE if tag == _BOOLEAN else pattern) for tag, pattern in resolvers]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_configuration(path: Path) -> dict[str, Any]:
    """Return field -> value of a file, with types and ranges not checked yet.

    Raises SettingsError with every error and its path.
    """
    try:
        text = read_file(path, MAX_CONFIGURATION_BYTES).decode()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not UTF-8") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> dict[str, Any]:
    """Return field -> value of the text of a file. Raises SettingsError. `name` is the file's name in it."""
    document, duplicates = _loaded(text, name)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(f"{name}: expected keys with values, found {type(document).__name__}")
    problems = [*_head_problems(document), *duplicates]
    known = {**FIELDS, **HEAD}
    problems += [f"{key}: unknown key{meant(str(key), known)}" for key in document if key not in known]
    if problems:
        raise SettingsError("; ".join(f"{name}: {problem}" for problem in problems))
    return {field: document[key] for key, field in FIELDS.items() if document.get(key) is not None}


def meant(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name that is closest to `name`. Empty if none is close."""
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _loaded(text: str, name: str) -> tuple[Any, list[str]]:
    """Return the only document, and an error for each key that a mapping has twice."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return (None, []) if node is None else (loader.construct_document(node), list(_duplicates(node, "", set())))
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{name}: no YAML: {_place(error)}") from None
    except (ValueError, AttributeError):  # their texts quote the value, which may be a URL with a password
        raise SettingsError(f"{name}: no YAML: a value does not fit its type, such as a date in month 13") from None


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "too deep"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


def _duplicates(node: yaml.Node, path: str, visited: set[int]) -> Iterator[str]:
    if id(node) in visited:  # an alias, perhaps of a node that contains it
        return
    visited.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            yield from _duplicates(each, f"{path}[{index}]", visited)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            where = f"{path}.{key.value}" if path else str(key.value)
            line = key.start_mark.line + 1
            if isinstance(key, yaml.ScalarNode) and lines.setdefault(key.value, line) != line:
                yield f"{where}: duplicate key (lines {lines[key.value]} and {line})"
            yield from _duplicates(value, where, visited)


def _head_problems(document: Mapping[object, object]) -> Iterator[str]:
    for key, known in HEAD.items():
        if key not in document:
            yield f"{key}: missing; expected {known}"
        elif document[key] != known:
            yield f"{key}={document[key]!r}: unknown; this version of Kindred reads {known}"
