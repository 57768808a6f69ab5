"""Options that several commands have in common, given to a command in one line."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Command = TypeVar("Command", bound=Callable[..., None])


def with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Give a command options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
