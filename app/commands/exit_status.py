"""Exit statuses, the same for every command: docs/commands.md has them."""

import sys
from typing import Final, NoReturn

import click

EXIT_OK: Final = 0
"""The command completed with a positive result."""
EXIT_NO: Final = 1
"""The command completed with a negative result: the pod fits nowhere, or something differs, is not ready or has
errors."""
EXIT_ERROR: Final = 2
"""The command could not complete: wrong usage, or the input or the service is missing or wrong."""


def exit_with_error(error: object) -> NoReturn:
    """Print one line on standard error, and end with EXIT_ERROR."""
    click.echo(f"Error: {error}", err=True)
    sys.exit(EXIT_ERROR)
