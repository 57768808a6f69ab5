"""A section as text for a terminal: the only format in which the benchmark prints results."""

from collections.abc import Sequence
from itertools import groupby
from math import floor, log10

from tests.bench.report import Ratio, Row, Section, Times


def section_text(section: Section) -> str:
    """Return the title, a table for rows of the same headings, and the notes."""
    lines = [f"== {section.title}"]
    for headings, rows in groupby(section.rows, _headings):
        lines += _table([("", *headings), *map(_cells, rows)])
    return "\n".join([*lines, *(f"  {note}" for note in section.notes)])


def times_text(times: Times) -> str:
    """Return p50 / p99 in milliseconds."""
    return f"{short(times.p50)} / {short(times.p99)} ms"


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio with its range over the rounds, and its bounds."""
    noise = f" [{short(ratio.low)}..{short(ratio.high)}]" if ratio.low != ratio.high else ""
    bound = f" ({ratio.bound}{': MISSED' if ratio.missed else ''})" if ratio.bound else ""
    return f"{short(ratio.value)}x{noise}{bound}"


def _headings(row: Row) -> tuple[str, ...]:
    return (*row.times, *row.figures, *row.ratios)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        *map(times_text, row.times.values()),
        *map(short, row.figures.values()),
        *map(ratio_text, row.ratios.values()),
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [
        [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        for cells in rows
    ]
    return ["  " + "  ".join(cells).rstrip() for cells in aligned]


def short(value: float, significant: int = 3) -> str:
    """Return a number with `significant` digits, at most four behind the point, and separated thousands."""
    digits = max(0, min(4, significant - 1 - floor(log10(abs(value))))) if value else 0
    return f"{value:,.{digits}f}"
