"""A command line that runs in this process."""

from click.testing import CliRunner, Result

from app.commands.cli import main


def kindred(*arguments: object, stdin: bytes = b"") -> Result:
    """Run the command with these arguments."""
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin)
