"""Everything that commands write to standard output and standard error.

Others chose the names and messages, perhaps to act on the terminal or to forge a line. So each line is escaped whole
(app/process/logs.py), also its newlines. Colours are added to escaped lines. Ruff bans `click.echo` everywhere else.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import chain, zip_longest
from pathlib import Path
from textwrap import wrap
from types import TracebackType
from typing import Any, Final, NamedTuple, TextIO, TypeAlias

import click
import msgspec
import yaml
from click.exceptions import NoArgsIsHelpError

from app.process.json_text import encode, indented
from app.process.logs import escaped, escaped_json
from core.explaining.words import counted


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
    _echo(escaped(text, "\n\t"), nl=nl)


def print_error(error: object) -> None:
    """Print an error as one line."""
    print_line(f"Error: {error}", err=True)


def print_problem(error: click.ClickException) -> None:
    """Print an error of click, with the usage of the command for a wrong usage."""
    if isinstance(error, click.MissingParameter | NoArgsIsHelpError):  # have several lines, and nothing of the user
        with _whoever_reads(err=True):
            error.show()
    elif isinstance(error, click.UsageError):
        with _whoever_reads(err=True):
            click.UsageError(escaped(error.format_message()), error.ctx).show()
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


class Part(msgspec.Struct, frozen=True):
    """A paragraph whose items are shown whole or left out, or cut where one has too many lines."""

    items: Sequence[Sequence[Line]]
    title: Line = ""
    tail: Sequence[Line] = ()
    """Lines that end it if it has an item."""
    item: str = "line"
    """The name of an item, to count those that are left out."""
    name: str = ""
    """The name by which the last line of a short text tells what is left out."""
    least: int = 0
    """The number of items that a short text shows at least."""
    most: int = sys.maxsize
    """The number of items that any text shows at most."""
    in_short: bool = True
    """Whether a short text has it."""
    is_extra: bool = False
    """Whether it does not count to the length of a short text."""

    def __iter__(self) -> Iterator[Line]:
        """Yield all lines."""
        return self.lines(self.most, "-o json")

    def lines(self, visible: int, more: str = "-o wide") -> Iterator[Line]:
        """Yield the lines of some items. `more` is the option that shows the others."""
        items = self.items[:visible]
        if items:
            yield from [self.title] if self.title else []
            yield from chain.from_iterable(items)
            left = len(self.items) - len(items)
            yield from [f"  ... and {counted(left, f'more {self.item}')}, see {more}"] if left else []
            yield from self.tail


MOST_LINES: Final = 25
"""Lines of a short text, with the empty ones."""
_MOST_OF_AN_ITEM: Final = 5


def shortened(parts: Sequence[Part]) -> Iterator[Line]:
    """Return the parts in at most MOST_LINES lines: of long parts only the first items. The last line names the rest.

    Where that is not enough, long items are cut. There are more lines only if those that are always shown need them.
    """
    visible = [len(each.items) if each.in_short else 0 for each in parts]
    are_cut = False
    while True:
        texts = [[*each.lines(number)] for each, number in zip(parts, visible, strict=True)]
        left_out = dict.fromkeys(each.name for each, text in zip(parts, texts, strict=True) if each.items and not text)
        last = wrapped(f"-o wide shows more: {', '.join(left_out)}", 2, "") if left_out else []
        counting = [text for each, text in zip(parts, texts, strict=True) if not each.is_extra]
        spare = [place for place, each in enumerate(parts) if visible[place] > each.least and not each.is_extra]
        if len([*paragraphs([*counting, last])]) <= MOST_LINES or (are_cut and not spare):
            return paragraphs([*texts, last])
        if spare:
            visible[max(spare, key=lambda place: (visible[place], len(texts[place])))] -= 1
        else:
            parts, are_cut = [*map(_with_short_items, parts)], True


def _with_short_items(part: Part) -> Part:
    if part.is_extra:
        return part
    items = [
        each if len(each) <= _MOST_OF_AN_ITEM else [*each[: _MOST_OF_AN_ITEM - 1], "    ..."] for each in part.items
    ]
    return msgspec.structs.replace(part, items=items)


def laid_out(lines: Iterable[Line]) -> str:
    """Return lines with their colours, as they are printed on a terminal."""
    return "\n".join(map(_laid_out, lines))


def _laid_out(line: Line) -> str:
    if isinstance(line, str):
        return escaped(line)
    return click.style(escaped(line.text), fg=line.fg, bold=line.bold or None, dim=line.dim or None) + escaped(
        line.rest
    )


def _echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    with _whoever_reads(err=err):
        click.echo(text, nl=nl, err=err, color=False if os.environ.get("NO_COLOR") else None)


@contextmanager
def _whoever_reads(*, err: bool) -> Iterator[None]:
    """Write within the block to standard output or error. Raises _CannotWriteError for standard output."""
    stream = sys.stderr if err else sys.stdout
    try:
        yield
    except OSError as error:
        _write_to_nobody(stream)
        if not (err or isinstance(error, BrokenPipeError)):  # who reads a pipe has enough, and the status still says it
            raise _CannotWriteError(f"standard output: {error.strerror}") from None


class _CannotWriteError(click.ClickException):
    exit_code = 2
    """As for any other error."""


def _write_to_nobody(stream: TextIO) -> None:
    """Discard what is written to a stream from now on, and what its buffer still has, which is flushed at the end."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, stream.fileno())
    os.close(nobody)


def open_closed_streams() -> None:
    """Open standard streams that the caller has closed: Python has None then, which nobody expects."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # until the end


# There are 80 columns, or the terminal's if it is wider. Sentences stay within 100, as longer lines are hard to read.

WIDTH: Final = 80
"""Columns if standard output is no terminal, or a narrower one."""
_PROSE: Final = 100
_GAP: Final = "  "


def line_width() -> int:
    """Return the maximum width of a line."""
    if not sys.stdout.isatty():
        return WIDTH
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def prose_width() -> int:
    """Return the maximum width of a line of sentences."""
    return min(line_width(), _PROSE)


def wrapped(
    text: str, indent: int | None = None, first: str | None = None, *, whole_within: int | None = None
) -> list[str]:
    """Return text as lines; the first one begins with `first`, without the indent of the others.

    Without an indent, the others have two spaces, so that no data can begin a line. Words are broken only if they must
    be; never for text to copy, which has a width of its own, `whole_within`.
    """
    rest = " " * (2 if indent is None else indent)
    begin = first if first is not None else "" if indent is None else rest
    lines = wrap(
        escaped(text),
        whole_within or prose_width(),
        initial_indent=begin,
        subsequent_indent=rest,
        break_long_words=whole_within is None,
        break_on_hyphens=False,
    )
    return lines or [begin.rstrip()]


def styled(lines: Iterable[str], fg: str | None = None, *, bold: bool = False) -> Iterator[Line]:
    """Yield lines with one look."""
    return (Styled(line, fg=fg, bold=bold) for line in lines)


def labelled(label: str, text: str, width: int = 10) -> list[str]:
    """Return text as lines, behind a label in a column of `width`."""
    return wrapped(text, width, label.ljust(width))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], indent: int = 2, *, wide: bool = False) -> list[Line]:
    """Return a table as lines. A head that begins with `>`, which is not shown, aligns its column at the right.

    A cell that is too wide is wrapped, unless `wide`. Words are broken only if they must be, so that sentences give way
    to names.
    """
    texts = [[head.removeprefix(">") for head in heads], *([escaped(str(cell)) for cell in row] for row in rows)]
    words = [_longest_word(column) for column in zip(*texts, strict=True)]
    widths = _widths(texts, sys.maxsize if wide else line_width() - indent, words)
    align = [str.rjust if head.startswith(">") else str.ljust for head in heads]
    lines = []
    for cells in texts:
        parts = [
            [cell] if len(cell) <= width else wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip(cells, widths, strict=True)
        ]
        for line in zip_longest(*parts, fillvalue=""):
            set_out = (put(part, width) for put, part, width in zip(align, line, widths, strict=True))
            lines.append(" " * indent + _GAP.join(set_out).rstrip())
    return [Styled(lines[0], dim=True), *lines[1:]]


def _widths(rows: Sequence[Sequence[str]], room: int, least: Sequence[int]) -> list[int]:
    """Return the widths of the columns: their widest cells, or less for the widest columns of a table that is too wide.

    A column is narrowed below its `least` width only if nothing else is left.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for _ in range(sum(widths) + len(_GAP) * (len(widths) - 1) - room):
        spare = [width if width > floor else 0 for width, floor in zip(widths, least, strict=True)]
        of = spare if any(spare) else widths
        widths[of.index(max(of))] -= 1
    return widths


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=0)


class OutputFormat(Enum):
    """The output formats of commands, `-o`, as kubectl has them."""

    TABLE = "table"
    WIDE = "wide"
    """A table with more columns, without shortening any."""
    JSON = "json"
    YAML = "yaml"
    NAME = "name"
    """A line `pod/NAME` or `node/NAME` for each object."""


FORMATS: Final = tuple(OutputFormat)
NO_NAMES: Final = (OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSON, OutputFormat.YAML)
"""For commands whose output is not about a list of pods or nodes."""


def print_output(
    output: OutputFormat, value: object, text: Callable[..., Iterable[Line]], names: Iterable[str] = ()
) -> None:
    """Print a value: a struct, or decoded JSON. `text` returns the lines of `table`, and with `wide=True` of `wide`.

    `names` are the output of the format `name`, as from `pod_name`. Without names that is nothing, not even a newline.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_value(output, value)
        case OutputFormat.NAME:
            for name in names:
                print_line(name)
        case OutputFormat.TABLE | OutputFormat.WIDE:
            print_lines(text(wide=output is OutputFormat.WIDE))


def print_value(output: OutputFormat, value: object) -> None:
    """Print a value as JSON, or as YAML."""
    print_document(escaped_json(indented(value)) if output is OutputFormat.JSON else yaml_text(value))


def yaml_text(value: object) -> str:
    """Return a value as YAML with exactly the contents of its JSON, without a newline at the end.

    Raises UnicodeEncodeError for half of a surrogate pair.
    """
    plain: Any = msgspec.json.decode(encode(value))
    text: str = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return escaped(text.rstrip(), "\n")


def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Represent text for YAML; in double quotes, where escapes have an effect, if a character has to be escaped."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if escaped(text) != text else None)


class _Dumper(yaml.SafeDumper):
    """A YAML dumper without raw control characters, and without a line that begins with a part of a text."""

    def write_double_quoted(self, text: str, split: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002  # the library's
        super().write_double_quoted(text, split=False)


_Dumper.add_representer(str, represent_text)


def pod_name(full_name: str) -> str:
    """Return `pod/NAME` for NAMESPACE/NAME: kubectl leaves out the namespace."""
    return f"pod/{full_name.rpartition('/')[2]}"


def node_name(name: str) -> str:
    """Return `node/NAME`."""
    return f"node/{name}"


_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Upper bound in seconds, unit with its sign, and the smaller unit for the rest; 0 to leave out the rest."""


def age_text(seconds: float | None) -> str:
    """Return `61s`, `2m5s`, `3h`, `8d`; `<unknown>` for None, `<invalid>` for a time in the future.

    Source: k8s.io/apimachinery pkg/util/duration/duration.go, HumanDuration. It allows two seconds in the future,
    because clocks differ.
    """
    if seconds is None:
        return "<unknown>"
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(0, whole)
    for bound, unit, sign, smaller, smaller_sign in _STEPS:
        if whole < bound:
            rest = whole % unit // smaller if smaller else 0
            return f"{whole // unit}{sign}" + (f"{rest}{smaller_sign}" if rest else "")
    return f"{whole // _YEAR}y"
