"""The settings on the command line: a flag for each, and warnings about their sources."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypedDict

import click

from app.commands.printer import print_line
from app.configuration import FILE_VARIABLE, Configuration, flag_of, load_configuration
from app.settings import Settings, variable_of

OF_ANSWERS: Final = ("profile", "kubernetes", "feature_gates")
"""The settings of commands that evaluate a dump."""
OF_EXPLANATIONS: Final = (*OF_ANSWERS, "scheduler_config")
"""The settings of commands that explain a dump or a listed cluster."""


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
    summary = f"File of settings, YAML ({FILE_VARIABLE}); the environment and flags override it."
    return [click.Option(["--config"], type=path, help=summary), *map(_option, names)]


def _option(name: str) -> click.Option:
    sentence = re.split(r"\.(?=\s|$)", Settings.model_fields[name].description or "", maxsplit=1)[
        0
    ]  # spec.schedulerName is one word
    summary = " ".join(sentence.replace("`", "").split())
    default = _text(Settings.model_fields[name].get_default())
    shown = f"  [default: {default}]" if default else ""
    return click.Option([flag_of(name), name], metavar="VALUE", help=f"{summary} ({variable_of(name)}).{shown}")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}={str(each).lower()}" for name, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def loaded_settings(config: Path | None, flags: Mapping[str, object]) -> Settings:
    """Print the warnings about the settings, and return the settings. Raises SettingsError."""
    configuration = load_configuration(config, flags)
    warn(configuration)
    return configuration.settings


def warn(configuration: Configuration) -> None:
    """Print the warnings of a configuration on standard error."""
    for variable in configuration.unknown_variables:
        print_line(f"Warning: unknown variable {variable}", err=True)
