"""The command line of `kindred`: all commands, their help, and their errors."""

import gc
import importlib
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click

from app import __version__
from app.commands.output import open_closed_streams, print_fault, print_line, print_problem
from app.process.logs import TextLines

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "capacity": (
        "what_if.capacity",
        "Print how many more pods fit: replicas of a manifest, a workload or a pod, and what stops the next one.",
    ),
    "config": ("config_commands", "Print the effective settings, defaults included, and the source of each."),
    "doctor": (
        "doctor.command",
        "Check a registration or a running service, and print errors with their fixes.",
    ),
    "drain": ("what_if.drain", "Print what `kubectl drain` would refuse and evict, and where the pods would go."),
    "explain": ("explain", "Explain why a pod fits on nodes or does not, also under suppositions."),
    "filter": ("filter", "Print the ExtenderFilterResult for a pod, without a server."),
    "loss": (
        "what_if.loss",
        "Print which zone can fail: what its workloads keep, and which of its pods find no place elsewhere.",
    ),
    "pending": (
        "pending",
        "Print the pending pods, the oldest first: how many nodes each fits on now, and why not on the others.",
    ),
    "rbac": ("rbac", "Print the minimal roles that Kindred needs with these settings, and their bindings."),
    "removal": (
        "what_if.removal",
        "Print which nodes could go, with all their pods placed elsewhere, and what is in the way of the others.",
    ),
    "serve": ("serve", "Serve the extender over HTTP, for a live cluster or for a dump."),
    "status": (
        "status",
        "Print the state of a running service: readiness, release, mirror, leader, cache and last decision.",
    ),
    "units": (
        "units",
        "Print the units (groups of pods that are placed all or none), their members by state, and why they wait.",
    ),
    "why": ("explain", "Explain why a pod fits on nodes or does not, also under suppositions."),
}
"""Command -> its module, and the first sentence of its help.

A command is imported when it runs: all of them take a second of CPU, which `--help` and completion need not wait for.
"""
_INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells say it: neither yes nor no."""


class CommandGroup(click.Group):
    """A group of commands that are imported when they run. Its help has the whole first sentence of each."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the signature of the library
        """Return the names of the commands."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            # Imports leave next to no garbage, and the collector takes a fifth of their time to look for it.
            gc.disable()
            module = importlib.import_module(f"app.commands.{COMMANDS[cmd_name][0]}")
            gc.freeze()
            gc.enable()
            self.add_command(getattr(module, f"{cmd_name}_command"))
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its first sentence, wrapped if it is long."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401  # the signature of the library
        """Run the program, and end it. Errors of Click quote the command line, so they go through the printer."""
        open_closed_streams()
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
            status = _INTERRUPTED
        sys.exit(status)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="kindred")
def main() -> None:
    """Serve a kube-scheduler extender that decides exactly as kube-scheduler's own plugins."""


def kubectl_plugin() -> None:
    """Run as `kubectl kindred`, under the name that kubectl looks for in PATH."""
    main(prog_name="kubectl kindred")


if __name__ == "__main__":
    main(prog_name="kindred")
