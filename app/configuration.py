"""Where the settings come from: a file, the environment, flags; each wins over those before it, key by key.

A key of the file is the field's name as Kubernetes writes names (`listenPort`), in the environment KINDRED_LISTEN_PORT,
as a flag --listen-port.
"""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from app.settings import PREFIX, Settings, SettingsError, WrongTogetherError, variable_of

FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
DEFAULT: Final = "default"
_SERVICE_LINKS: Final = re.compile(rf"{PREFIX}(\w+_)?(PORT(_\d+_\w+)?|SERVICE_\w+)")
"""Variables that Kubernetes sets for Services that are called kindred, or kindred-something."""
_TESTS: Final = (f"{PREFIX}TEST_", f"{PREFIX}E2E_", f"{PREFIX}LOAD_")


class Configuration(NamedTuple):
    """The settings, with their sources and warnings."""

    settings: Settings
    sources: Mapping[str, str]
    """Field -> where its value is from: the name of a flag, a variable or a file; fields with their default are not in
    it."""
    unknown_variables: tuple[str, ...]
    """Variables that begin as ours do and are none, with what they may have been meant to be; most likely slips."""


def load_configuration(file: Path | None = None, flags: Mapping[str, object] | None = None) -> Configuration:
    """Read the settings: file, environment, then flags, of which those that are None were not given.

    Without `file`, KINDRED_CONFIG names it, if it is set. Raises SettingsError, which names all that is wrong.
    """
    path = file or _named_file()
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    if path is not None:
        of_file = _read(path)
        values.update(of_file)
        sources.update({name: f"{path}: {key_of(name)}" for name in of_file})
    of_environment = EnvSettingsSource(Settings)()
    values.update(of_environment)
    sources.update({name: variable_of(name) for name in of_environment})
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    values.update(given)
    sources.update({name: flag_of(name) for name in given})
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError("; ".join(_problems(error, sources))) from None
    return Configuration(settings, sources, tuple(_unknown_variables()))


def effective(settings: Settings, sources: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return key -> `value`, as JSON has it, and `source`, as Configuration has it."""
    values = settings.model_dump(mode="json")
    return {key_of(name): {"value": value, "source": sources.get(name, DEFAULT)} for name, value in values.items()}


def key_of(name: str) -> str:
    """Return the name of a field in the file."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def flag_of(name: str) -> str:
    """Return the name of a field on the command line."""
    return "--" + name.replace("_", "-")


_FIELDS: Final[Mapping[str, str]] = {key_of(name): name for name in Settings.model_fields}


def _named_file() -> Path | None:
    named = os.environ.get(FILE_VARIABLE)
    return Path(named) if named else None


def _read(path: Path) -> dict[str, Any]:
    """Return field -> value of a file. Raises SettingsError."""
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not UTF-8") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise SettingsError(f"{path}: no YAML: {_place(error)}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SettingsError(f"{path}: expected keys with values, found {type(document).__name__}")
    unknown = [f"{path}: {key}: unknown key{_meant(str(key), _FIELDS)}" for key in document if key not in _FIELDS]
    if unknown:
        raise SettingsError("; ".join(unknown))
    return {_FIELDS[key]: value for key, value in document.items() if value is not None}


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "too deep"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


def _meant(name: str, known: Mapping[str, str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _problems(error: ValidationError, sources: Mapping[str, str]) -> Iterator[str]:
    for problem in error.errors():
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, WrongTogetherError):
            yield _problem(cause.name, cause.value, str(cause), sources)
        else:
            yield _problem(str(problem["loc"][0]), problem["input"], problem["msg"], sources)


def _problem(name: str, value: object, rule: str, sources: Mapping[str, str]) -> str:
    """Return what is wrong with a field, which is called as where it came from calls it, and as variable otherwise."""
    shown = str(value) if isinstance(value, Path) else value
    return f"{sources.get(name) or variable_of(name)}={shown!r}: {rule}"


def _unknown_variables() -> Iterator[str]:
    known = {variable_of(name): name for name in Settings.model_fields} | {FILE_VARIABLE: ""}
    for variable in sorted(os.environ):
        ours = variable.startswith(PREFIX) and not variable.startswith(_TESTS)
        if ours and variable not in known and not _SERVICE_LINKS.fullmatch(variable):
            yield variable + _meant(variable, known)
