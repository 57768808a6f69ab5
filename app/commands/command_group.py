"""A group of commands whose help has the whole first sentence of each. Click cuts it to one line."""

import sys

import click


class CommandGroup(click.Group):
    """A group whose subgroups are of the same class."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its first sentence, wrapped if it is long."""
        rows = [(name, self.commands[name].get_short_help_str(limit=sys.maxsize)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
