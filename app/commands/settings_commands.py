"""The settings on the command line: a flag for each, and `kindred config print`."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

import click

from app.commands.output_format import NO_NAMES, OutputFormat, print_output
from app.commands.shared_options import output_option
from app.commands.text_columns import wrapped_table
from app.configuration import (
    FILE_VARIABLE,
    Configuration,
    effective,
    flag_of,
    load_configuration,
)
from app.json_text import encode
from app.settings import Settings, SettingsError, variable_of

_SHORT: Final[Mapping[str, tuple[str, ...]]] = {"listen_host": ("--host",), "listen_port": ("--port",)}
"""Shorter names of flags that people type."""
OF_ANSWERS: Final = ("profile", "kubernetes", "feature_gates")
"""The settings of commands that evaluate a dump."""
OF_EXPLANATIONS: Final = (*OF_ANSWERS, "scheduler_config")
"""The settings of commands that explain a dump, or a cluster that they list."""
_HEAD: Final = "# The effective settings, as a file for --config; behind each value where it is from.\n"


class AnswerFlags(TypedDict):
    """The flags of OF_ANSWERS."""

    profile: str | None
    kubernetes: str | None
    feature_gates: str | None


class ExplanationFlags(AnswerFlags):
    """The flags of OF_EXPLANATIONS."""

    scheduler_config: str | None


def flags_of_answers(options: AnswerFlags) -> Mapping[str, str | None]:
    """Return the flags of OF_ANSWERS out of all options of a command."""
    return {
        "profile": options["profile"],
        "kubernetes": options["kubernetes"],
        "feature_gates": options["feature_gates"],
    }


def flags_of_explanations(options: ExplanationFlags) -> Mapping[str, str | None]:
    """Return the flags of OF_EXPLANATIONS out of all options of a command."""
    return {**flags_of_answers(options), "scheduler_config": options["scheduler_config"]}


def settings_options(names: Sequence[str] = tuple(Settings.model_fields)) -> list[click.Parameter]:
    """Return the option of the file, and one for each of the settings."""
    path = click.Path(path_type=Path, dir_okay=False)
    summary = f"File of settings, YAML ({FILE_VARIABLE}); the environment and flags win over it."
    return [click.Option(["--config"], type=path, help=summary), *map(_option, names)]


def _option(name: str) -> click.Option:
    field = Settings.model_fields[name]
    sentence = re.split(r"\.(?=\s|$)", field.description or "", maxsplit=1)[0]  # spec.schedulerName is one word
    summary = sentence.replace("\n", " ").replace("`", "")
    default = _text(field.get_default())
    shown = f"  [default: {default}]" if default else ""
    names = [flag_of(name), *_SHORT.get(name, ()), name]
    return click.Option(names, metavar="VALUE", help=f"{summary} ({variable_of(name)}).{shown}")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}={str(each).lower()}" for name, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


@click.group("config")
def config_group() -> None:
    """Look at the settings."""


@config_group.command("print", params=settings_options())
@output_option(NO_NAMES, OutputFormat.YAML)
def print_command(*, output: OutputFormat, config: Path | None, **flags: str | None) -> None:
    """Print the effective settings, with their defaults and where each is from, and end with 2 if any is wrong."""
    try:
        configuration = load_configuration(config, flags)
    except SettingsError as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(2) from None
    warn_of_unknown_variables(configuration)
    shown = effective(configuration.settings, configuration.sources)
    if output is not OutputFormat.YAML:
        print_output(output, shown, partial(_settings_text, shown))
        return
    click.echo(_HEAD + "".join(_yaml_line(key, **entry) for key, entry in shown.items()), nl=False)


def warn_of_unknown_variables(configuration: Configuration) -> None:
    """Warn on standard error of variables that look like a setting, and are none."""
    for variable in configuration.unknown_variables:
        click.echo(f"Warning: unknown variable {variable}", err=True)


def _settings_text(shown: Mapping[str, Mapping[str, Any]], *, wide: bool) -> str:
    rows = [(key, encode(entry["value"]).decode(), entry["source"]) for key, entry in shown.items()]
    return "\n".join(wrapped_table(("SETTING", "VALUE", "SOURCE"), rows, 0, wide=wide))


def _yaml_line(key: str, value: object, source: str) -> str:
    return f"{key}: {encode(value).decode()}  # {source}\n"  # JSON is YAML, too, and stays on its line
