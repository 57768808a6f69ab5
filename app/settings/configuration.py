"""The settings from their sources: a file, which is YAML with a head as in Kubernetes, the environment, and flags.

For each key, the last source that sets it wins. A field has three names: `healthPort` in the file,
KINDRED_HEALTH_PORT in the environment, and --health-port as a flag.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from app.process.files import MAX_CONFIGURATION_BYTES, read_file
from app.process.yaml_traps import YamlTrapError, refuse_traps
from app.settings.settings import PREFIX, Settings, SettingsError, WrongTogetherError, is_quoted, key_of, variable_of

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
        refuse_traps(text, _Loader)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            return (None, []) if node is None else (loader.construct_document(node), list(_duplicates(node, "", set())))
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{name}: no YAML: {_place(error)}") from None
    except YamlTrapError as error:
        raise SettingsError(f"{name}: no YAML: {error}") from None
    except (ValueError, AttributeError, LookupError):  # their texts quote the value, which may be a URL with a password
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


FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
DEFAULT: Final = "default"
SCHEMA_ADDRESS: Final = "https://kindred.dev/schemas/kindredconfiguration-v1alpha1.json"
_SERVICE_LINKS: Final = re.compile(rf"{PREFIX}(\w+_)?(PORT(_\d+_\w+)?|SERVICE_\w+)")
"""Variables that Kubernetes sets for Services named `kindred` or `kindred-*`."""
_TESTS: Final = (f"{PREFIX}TEST_", f"{PREFIX}E2E_", f"{PREFIX}LOAD_")


class Configuration(NamedTuple):
    """The settings, with their sources and warnings."""

    settings: Settings
    sources: Mapping[str, str]
    """Field -> the source of its value: the name of a flag, a variable or a file. A field with its default has no
    entry."""
    unknown_variables: tuple[str, ...]
    """Variables with Kindred's prefix that are no settings, each with the setting that may be meant. Most are typos."""


def load_configuration(file: Path | None = None, flags: Mapping[str, object] | None = None) -> Configuration:
    """Read the settings: file, environment, then flags. A flag that is None was not given.

    Without `file`, KINDRED_CONFIG names the file, if it is set. Raises SettingsError, which names every error.
    """
    named = os.environ.get(FILE_VARIABLE)
    path = file or (Path(named) if named else None)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for found, source_of in (
        ({} if path is None else read_configuration(path), lambda name: f"{path}: {key_of(name)}"),
        (EnvSettingsSource(Settings)(), variable_of),
        (given, flag_of),
    ):
        values.update(found)
        sources.update({name: source_of(name) for name in found})
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError("; ".join(_problems(error, sources))) from None
    return Configuration(settings, sources, tuple(_unknown_variables()))


def effective(settings: Settings, sources: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return key -> `value` in its JSON form, and `source` as in Configuration."""
    values = settings.model_dump(mode="json")
    return {key_of(name): {"value": value, "source": sources.get(name, DEFAULT)} for name, value in values.items()}


def changed(rendered: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the entries of `effective` with a value other than the default."""
    defaults = effective(Settings.model_construct(), {})
    return {key: entry for key, entry in rendered.items() if entry["value"] != defaults[key]["value"]}


def configuration_schema() -> dict[str, Any]:
    """Return the JSON schema of a file of settings, for editors and for tools that check files before use."""
    schema = Settings.model_json_schema(by_alias=True, mode="serialization")
    head = {key: {"const": value} for key, value in HEAD.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ADDRESS,
        **schema,
        "title": KIND,
        "description": "Settings of Kindred: `kindred serve --config FILE`, or KINDRED_CONFIG.",
        "required": [*HEAD],
        "properties": {**head, **schema["properties"]},
    }


def flag_of(name: str) -> str:
    """Return the flag of a field."""
    return "--" + name.replace("_", "-")


def _problems(error: ValidationError, sources: Mapping[str, str]) -> Iterator[str]:
    for problem in error.errors():
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, WrongTogetherError):
            yield _problem(cause.name, cause.value, str(cause), sources)
        else:
            name, *within = map(str, problem["loc"])
            yield _problem(name, problem["input"], problem["msg"], sources, within)


def _problem(name: str, value: object, rule: str, sources: Mapping[str, str], within: Sequence[str] = ()) -> str:
    """Return the error of a field. It names the field as the source does, or else by its variable."""
    rendered = f"={str(value) if isinstance(value, Path) else value!r}" if is_quoted(name) else ""
    where = sources.get(name) or variable_of(name)
    if where.endswith(f": {key_of(name)}"):  # the source is a file, whose values have a path
        where = ".".join((where, *within))
    return f"{where}{rendered}: {rule}"


def _unknown_variables() -> Iterator[str]:
    known = {variable_of(name): name for name in Settings.model_fields} | {FILE_VARIABLE: ""}
    for variable in sorted(os.environ):
        ours = variable.startswith(PREFIX) and not variable.startswith(_TESTS)
        if ours and variable not in known and not _SERVICE_LINKS.fullmatch(variable):
            yield variable + meant(variable, known)
