"""A group of commands: its help, and its errors.

The help has the whole first sentence of each command. Click cuts it to one line.
"""

import logging
import sys
from typing import Any, NoReturn

import click

from app.commands.printer import print_fault, print_line, print_problem
from app.logs import TextLines


class CommandGroup(click.Group):
    """A group whose subgroups are of the same class."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its first sentence, wrapped if it is long."""
        rows = [(name, self.commands[name].get_short_help_str(limit=sys.maxsize)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401  # the signature of the library
        """Run the program, and end it. Errors of Click quote the command line, so they go through the printer."""
        sys.excepthook = print_fault
        if logging.lastResort is not None:  # the handler of commands, which do not configure logging
            logging.lastResort.setFormatter(TextLines())
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            print_problem(error)
            status = error.exit_code
        except click.Abort:
            print_line("Aborted!", err=True)
            status = 1
        sys.exit(status)
