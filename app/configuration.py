"""The sources of the settings: a file, the environment, flags. For each key, the last source that sets it wins.

A field has three names: `healthPort` in the file, KINDRED_HEALTH_PORT in the environment, and --health-port as a flag.
app/configuration_file.py has the format of the file.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from app.configuration_file import HEAD, KIND, meant, read_configuration
from app.settings import PREFIX, Settings, SettingsError, WrongTogetherError, is_quoted, key_of, variable_of

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
    path = file or _named_file()
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


def changed(shown: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the entries of `effective` with a value other than the default."""
    defaults = effective(Settings.model_construct(), {})
    return {key: entry for key, entry in shown.items() if entry["value"] != defaults[key]["value"]}


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


def _named_file() -> Path | None:
    named = os.environ.get(FILE_VARIABLE)
    return Path(named) if named else None


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
    shown = f"={str(value) if isinstance(value, Path) else value!r}" if is_quoted(name) else ""
    where = sources.get(name) or variable_of(name)
    if where.endswith(f": {key_of(name)}"):  # the source is a file, whose values have a path
        where = ".".join((where, *within))
    return f"{where}{shown}: {rule}"


def _unknown_variables() -> Iterator[str]:
    known = {variable_of(name): name for name in Settings.model_fields} | {FILE_VARIABLE: ""}
    for variable in sorted(os.environ):
        ours = variable.startswith(PREFIX) and not variable.startswith(_TESTS)
        if ours and variable not in known and not _SERVICE_LINKS.fullmatch(variable):
            yield variable + meant(variable, known)
