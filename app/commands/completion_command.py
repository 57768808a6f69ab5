"""`kindred completion`: scripts for completion in shells. Click makes the scripts and the completions."""

from collections.abc import Iterator, Sequence
from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from app.commands.printer import print_document

_PROGRAM: Final = "kindred"
_VARIABLE: Final = "_KINDRED_COMPLETE"
"""The variable that Click's script sets when it runs the program for completions."""
_FILES, _NO_FILES = ":0", ":4"
"""The last line for kubectl: whether the shell also offers files (cobra's ShellCompDirective)."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that completes commands and options of kindred in a shell.

    \b
    bash:  source <(kindred completion bash)
    zsh:   source <(kindred completion zsh)
    fish:  kindred completion fish | source
    """  # noqa: D301  # Click keeps the lines of a paragraph that begins with \b
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell}: Click has no completion for this shell.")
    root = click.get_current_context().find_root().command
    print_document(kind(root, {}, _PROGRAM, _VARIABLE).source())


def kubectl_completions(root: click.Command, words: Sequence[str]) -> Iterator[str]:
    """Yield the output of `kubectl_complete-kindred` for the words after `kubectl kindred`. The last one is incomplete.

    Source: kubectl's pkg/cmd/plugin/plugin_completion.go, which runs this program from PATH.
    """
    *before, begun = words or [""]
    found = ShellComplete(root, {}, _PROGRAM, _VARIABLE).get_completions(before, begun)
    yield from (each.value for each in found if each.type == "plain")
    yield _NO_FILES if all(each.type == "plain" for each in found) else _FILES
