"""Text for people: wrapped sentences, and tables whose widest cells are shortened or wrapped.

There are 80 columns, or the terminal's if it is wider. Sentences stay within 100, as longer lines are hard
to read.
"""

import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Final, Literal

from app.commands.printer import Line, Styled
from app.shown_text import shown

WIDTH: Final = 80
"""Columns if standard output is no terminal, or a narrower one."""
_PROSE: Final = 100
_GAP: Final = "  "
_LEFT_OUT: Final = "..."
Side = Literal["left", "right"]


def line_width() -> int:
    """Return the maximum width of a line."""
    if not sys.stdout.isatty():
        return WIDTH
    return max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)


def prose_width() -> int:
    """Return the maximum width of a line of sentences."""
    return min(line_width(), _PROSE)


def wrapped(text: str, indent: int | None = None, first: str | None = None) -> list[str]:
    """Return text as lines; the first one begins with `first`, without the indent of the others.

    Without an indent, the others have two spaces, so that no data can begin a line. Words are broken only if they must
    be.
    """
    rest = " " * (2 if indent is None else indent)
    begin = first if first is not None else "" if indent is None else rest
    lines = wrap(shown(text), prose_width(), initial_indent=begin, subsequent_indent=rest, break_on_hyphens=False)
    return lines or [begin.rstrip()]


def table(
    heads: Sequence[tuple[str, Side]], rows: Sequence[Sequence[object]], indent: int = 2, *, wide: bool = False
) -> list[Line]:
    """Return a table as lines. The heads have the alignment of their columns. `wide` shortens no cell."""
    texts = [[shown(str(cell)) for cell in row] for row in rows]
    widths = _widths([[head for head, _ in heads], *texts], _room(indent, wide=wide), [0] * len(heads))
    lines = []
    for cells in ([head for head, _ in heads], *texts):
        set_out = [
            shortened(cell, width).rjust(width) if side == "right" else shortened(cell, width).ljust(width)
            for cell, width, (_, side) in zip(cells, widths, heads, strict=True)
        ]
        lines.append(" " * indent + _GAP.join(set_out).rstrip())
    return [Styled(lines[0], dim=True), *lines[1:]]


def wrapped_table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], indent: int = 2, *, wide: bool = False
) -> list[Line]:
    """Return a table as lines, for cells that are sentences. A cell that is too wide is wrapped, unless `wide`.

    Words are broken only if they must be, so that sentences give way to names.
    """
    texts = [list(heads), *([shown(str(cell)) for cell in row] for row in rows)]
    words = [_longest_word(column) for column in zip(*texts, strict=True)]
    widths = _widths(texts, _room(indent, wide=wide), words)
    lines = []
    for cells in texts:
        parts = [
            [cell] if len(cell) <= width else wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip(cells, widths, strict=True)
        ]
        set_out = (_GAP.join(map(str.ljust, line, widths)) for line in zip_longest(*parts, fillvalue=""))
        lines += [" " * indent + line.rstrip() for line in set_out]
    return [Styled(lines[0], dim=True), *lines[1:]]


def _room(indent: int, *, wide: bool) -> int:
    return sys.maxsize if wide else line_width() - indent


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


def shortened(text: str, width: int) -> str:
    """Return text of at most `width` columns, shortened in the middle, because names differ at their ends."""
    if len(text) <= width:
        return text
    kept = max(0, width - len(_LEFT_OUT))
    return (text[: kept - kept // 2] + _LEFT_OUT + (text[-(kept // 2) :] if kept > 1 else ""))[:width]


def counted(number: int, name: str, plural: str = "") -> str:
    """Return `1 node`, `2 nodes`."""
    return f"{number:,} {name if number == 1 else plural or f'{name}s'}"
