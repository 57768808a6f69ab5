"""What commands share: exit statuses (docs/commands.md has them), options, flags of settings, and errors as a line."""

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from app.api_server.credentials import ConfigurationError
from app.commands.admin_client import CannotAskError
from app.commands.output import FORMATS, OutputFormat, print_error, print_line
from app.explain.explain_request import ExplainError
from app.feeds.dump_text import SnapshotError
from app.objects.decode import DecodeError
from app.scheduler_configuration.validation import UnreadableError
from app.settings.configuration import FILE_VARIABLE, Configuration, flag_of, load_configuration
from app.settings.settings import Settings, SettingsError, text_of, variable_of

EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_ERROR: Final = 2

_ERRORS: Final = (
    CannotAskError,
    ConfigurationError,
    DecodeError,
    ExplainError,
    SettingsError,
    SnapshotError,
    UnreadableError,
)


def exit_with_error(error: object) -> NoReturn:
    """Print one line on standard error, and end with EXIT_ERROR."""
    print_error(error)
    sys.exit(EXIT_ERROR)


Command = TypeVar("Command", bound=Callable[..., None])


def with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Give a command options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def output_option(
    formats: Sequence[OutputFormat] = FORMATS, default: OutputFormat = OutputFormat.TABLE
) -> Callable[[Command], Command]:
    """Give a command `-o` with these formats. Its parameter is `output`, an OutputFormat."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice([each.value for each in formats]),
        default=default.value,
        show_default=True,
        help="Format of the output.",
        callback=lambda _context, _parameter, value: OutputFormat(value),
    )


def given_options(names: Collection[str]) -> list[str]:
    """Return the options of the running command that the command line has, of some parameters."""
    context = click.get_current_context()
    given = [each for each in context.command.params if each.name in names]
    return [
        each.opts[0] for each in given if context.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE
    ]


def refuse_options(names: Collection[str], rule: str) -> None:
    """Reject options of the running command that a rule excludes, with its reason. Raises UsageError."""
    for option in given_options(names):
        raise click.UsageError(f"{option} is {rule}.")


OF_RESPONSES: Final = ("profile", "kubernetes", "feature_gates")
"""The settings of commands that evaluate a dump."""
OF_EXPLANATIONS: Final = (*OF_RESPONSES, "scheduler_config")
"""The settings of commands that explain a dump or a listed cluster."""


def settings_options(names: Sequence[str] = tuple(Settings.model_fields), **defaults: str) -> list[click.Parameter]:
    """Return the option of the file, and one for each of the settings. `defaults` are those of the command."""
    path = click.Path(path_type=Path, dir_okay=False)
    summary = f"File of settings, YAML ({FILE_VARIABLE}); the environment and flags override it."
    return [click.Option(["--config"], type=path, help=summary), *(_option(name, defaults.get(name)) for name in names)]


def _option(name: str, default: str | None) -> click.Option:
    sentence, *_ = re.split(
        r"\.(?=\s|$)", Settings.model_fields[name].description or ""
    )  # spec.schedulerName is a word
    summary = " ".join(sentence.replace("`", "").split())
    default = _text(Settings.model_fields[name].get_default()) if default is None else default
    rendered = f"  [default: {default}]" if default else ""
    return click.Option([flag_of(name), name], metavar="VALUE", help=f"{summary} ({variable_of(name)}).{rendered}")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, Mapping):
        return ",".join(f"{name}={str(each).lower()}" for name, each in value.items())
    return text_of(value)


def loaded_settings(options: Mapping[str, Any], names: Sequence[str]) -> Settings:
    """Return the settings of a command's options, and print the warnings about them. Raises SettingsError."""
    configuration = load_configuration(options["config"], {name: options[name] for name in names})
    warn(configuration)
    return configuration.settings


def explaining_settings(options: Mapping[str, Any]) -> Settings:
    """Return the settings by which a dump or a listed cluster is explained. Raises SettingsError.

    There is no service whose rules apply. So every rule of kube-scheduler does, unless a setting says otherwise.
    """
    settings = loaded_settings(options, OF_EXPLANATIONS)
    is_given = options["config"] or os.environ.get(FILE_VARIABLE) or os.environ.get(variable_of("profile"))
    return settings if is_given or options["profile"] else settings.model_copy(update={"profile": "full"})


def warn(configuration: Configuration) -> None:
    """Print the warnings of a configuration on standard error."""
    for variable in configuration.unknown_variables:
        print_line(f"Warning: unknown variable {variable}", err=True)


@contextmanager
def clear_errors(*further: type[Exception]) -> Iterator[None]:
    """Turn an error of the input, or one of `further`, into one line on standard error and EXIT_ERROR.

    The attribute `rules` of an error has more lines.
    """
    expected: tuple[type[Exception], ...] = (*_ERRORS, *further)
    try:
        yield
    except UnicodeEncodeError:
        exit_with_error("an argument is not UTF-8")
    except expected as error:
        print_error(error)
        for line in getattr(error, "rules", ()):
            print_line(line, err=True)
        sys.exit(EXIT_ERROR)
