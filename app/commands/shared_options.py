"""Options that several commands share: adding them to a command, and rejecting them."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import click
from click.core import ParameterSource

from app.commands.output_format import FORMATS, OutputFormat

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


def refuse_options(names: Collection[str], rule: str) -> None:
    """Reject options of the running command that a rule excludes, with its reason. Raises UsageError."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} is {rule}.")
