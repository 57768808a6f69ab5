"""The command line of `kindred`: all commands, their help, and their errors."""

import logging
import sys
from typing import Any, NoReturn

import click

from app import __version__
from app.commands.config_commands import config_command
from app.commands.doctor.command import doctor_command
from app.commands.explain import explain_command
from app.commands.filter import filter_command
from app.commands.output import print_fault, print_line, print_problem
from app.commands.pending import pending_command
from app.commands.rbac import rbac_command
from app.commands.serve import serve_command
from app.commands.status import status_command
from app.commands.units import units_command
from app.commands.why.command import why_command
from app.process.logs import TextLines


class CommandGroup(click.Group):
    """A group whose help has the whole first sentence of each command. Click cuts it to one line."""

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


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kindred")
def main() -> None:
    """Serve a kube-scheduler extender that decides exactly as kube-scheduler's own plugins."""


for _command in (
    config_command,
    doctor_command,
    explain_command,
    filter_command,
    pending_command,
    rbac_command,
    serve_command,
    status_command,
    units_command,
    why_command,
):
    main.add_command(_command)


def kubectl_plugin() -> None:
    """Run as `kubectl kindred`, under the name that kubectl looks for in PATH."""
    main(prog_name="kubectl kindred")


if __name__ == "__main__":
    main(prog_name="kindred")
