"""The invalidation table for people: the cells that each event invalidates, by kind; in full with `wide`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Final

from app.commands.printer import Line, Styled
from core.equivalence.invalidation_table import TableRow

_BY_KIND: Final[Mapping[str, int]] = {"OPERATION": 9, "PLUGIN": 31, "SCOPE": 9, "WHEN": 23}
"""Columns below the heading of each kind, with their widths: 80 columns with the indent and the gaps."""
_ALL: Final[Mapping[str, int]] = {
    "OPERATION": 19,
    "KIND": 21,
    "PLUGIN": 31,
    "SCOPE": 21,
    "WHEN": 32,
    "BECAUSE": 44,
}
_GAP: Final = "  "


def invalidation_text(rows: Sequence[TableRow], *, wide: bool) -> Iterator[Line]:
    """Return the rules by kind. A wide text is one table, with the reasons and the design's names of plugins."""
    return _wide(rows) if wide else _by_kind(rows)


def _by_kind(rows: Sequence[TableRow]) -> Iterator[Line]:
    widths = list(_BY_KIND.values())
    yield from _lines([*_BY_KIND], widths, _GAP)
    for kind, rules in groupby(rows, lambda row: row.kind):
        yield Styled(kind, bold=True)
        for row in rules:
            cells = [", ".join(row.operations), row.plugin, row.scope, row.when or "always"]
            yield from _lines(cells, widths, _GAP)


def _wide(rows: Sequence[TableRow]) -> Iterator[str]:
    widths = list(_ALL.values())
    yield from _lines([*_ALL], widths)
    for row in rows:
        keys = f" ({', '.join(row.design_keys)})" if row.design_keys else ""
        operations, when = ", ".join(row.operations), row.when or "always"
        yield from _lines([operations, row.kind, row.plugin + keys, row.scope, when, row.because], widths)


def _lines(cells: Sequence[str], widths: Sequence[int], indent: str = "") -> Iterator[str]:
    """Yield the lines of one row. A cell that is too wide continues on the next line."""
    parts = [wrap(cell, width, break_on_hyphens=False) for cell, width in zip(cells, widths, strict=True)]
    for line in zip_longest(*parts, fillvalue=""):
        yield indent + _GAP.join(map(str.ljust, line, widths)).rstrip()
