"""Everything that commands write to standard output and standard error.

Others chose the names and messages, perhaps to act on the terminal or to forge a line. So each line is escaped whole
(app/shown_text.py), also its newlines. Colours are added to escaped lines. Ruff bans `click.echo` everywhere else.
"""

import os
import traceback
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, TypeAlias

import click

from app.shown_text import shown


class Styled(NamedTuple):
    """A line with a look, and a rest without one."""

    text: str
    fg: str | None = None
    bold: bool = False
    dim: bool = False
    rest: str = ""


Line: TypeAlias = str | Styled


def print_lines(lines: Iterable[Line], *, err: bool = False) -> None:
    """Print lines, which have colours on a terminal."""
    _echo(laid_out(lines), err=err)


def print_line(line: Line, *, err: bool = False) -> None:
    """Print one line."""
    print_lines([line], err=err)


def print_document(text: str, *, nl: bool = True) -> None:
    """Print a text that has lines and tabs of its own, such as YAML or a script."""
    _echo(shown(text, "\n\t"), nl=nl)


def print_progress(text: str) -> None:
    """Replace the line of the terminal, which the next line replaces again."""
    _echo(f"\r\033[K{shown(text)}", nl=False, err=True)


def print_error(error: object) -> None:
    """Print an error as one line."""
    print_line(f"Error: {error}", err=True)


def print_problem(error: click.ClickException) -> None:
    """Print an error of click, with the usage of the command for a wrong usage."""
    if isinstance(error, click.MissingParameter):  # has several lines, and nothing of the user
        error.show()
    elif isinstance(error, click.UsageError):
        click.UsageError(shown(error.format_message()), error.ctx).show()
    else:
        print_error(error.format_message())


def print_fault(kind: type[BaseException], fault: BaseException, raised_at: TracebackType | None) -> None:
    """Print an exception that nothing handled, as sys.excepthook does."""
    first, *others = "".join(traceback.format_exception(kind, fault, raised_at)).split("\n")
    print_lines([first, *(f"  {each}" for each in others if each)], err=True)  # the message may have lines of its own


def paragraphs(blocks: Iterable[Iterable[Line]]) -> Iterator[Line]:
    """Yield the lines of blocks, with an empty line between two. A block without lines is left out."""
    filled = [lines for block in blocks if (lines := [*block])]
    for index, lines in enumerate(filled):
        yield from ([""] if index else [])
        yield from lines


def laid_out(lines: Iterable[Line]) -> str:
    """Return lines with their colours, as they are printed on a terminal."""
    return "\n".join(map(_laid_out, lines))


def _laid_out(line: Line) -> str:
    if isinstance(line, str):
        return shown(line)
    return click.style(shown(line.text), fg=line.fg, bold=line.bold or None, dim=line.dim or None) + shown(line.rest)


def _echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    click.echo(text, nl=nl, err=err, color=False if os.environ.get("NO_COLOR") else None)
