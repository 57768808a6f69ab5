"""What a service or a dump answers, as a command prints it: as it is, as YAML, or as text for people."""

import os
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import click
import yaml

from app.commands.text_columns import WIDTH
from app.json_text import decode, indented

Output: TypeAlias = Literal["table", "json", "yaml"]
OUTPUT_OPTION: Final = click.option(
    "--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)


def print_answer(answer: bytes, output: Output, text: Callable[[], str]) -> None:
    """Print an answer, which is JSON; its text in colours where there is a terminal whose user wants them."""
    match output:
        case "json":
            shown = indented(decode(answer))
        case "yaml":
            shown = yaml.safe_dump(decode(answer), sort_keys=False, allow_unicode=True, width=WIDTH).rstrip()
        case "table":
            shown = text()
    click.echo(shown, color=False if os.environ.get("NO_COLOR") else None)
