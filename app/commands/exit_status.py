"""Exit statuses, the same for every command: docs/commands.md has them."""

import sys
from collections.abc import Iterable
from typing import Final, NoReturn

from app.commands.printer import print_error, print_line

EXIT_OK: Final = 0
"""The command completed with a positive result."""
EXIT_NO: Final = 1
"""The command completed with a negative result: the pod fits nowhere, or something differs, is not ready or has
errors."""
EXIT_ERROR: Final = 2
"""The command could not complete: wrong usage, or the input or the service is missing or wrong."""


def exit_with_error(error: object, further: Iterable[str] = ()) -> NoReturn:
    """Print one line on standard error, and further ones below it, and end with EXIT_ERROR."""
    print_error(error)
    for line in further:
        print_line(line, err=True)
    sys.exit(EXIT_ERROR)
