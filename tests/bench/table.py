"""The tables of docs/benchmarks.md, made from reports."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tests.bench import report
from tests.bench.report import INTREE, LATEST, Ratio, Report, Row, Section, Times
from tests.bench.text import short
from tests.markdown import table

_BLOCK: Final = "bench table"
_SHOWN: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "engine": ("naive", "new class", "known class", "both verbs", "naive to new class", "naive to known class"),
        "http": ("Kindred", "floor", "p50", "CPU"),
        "churn": ("answers", "an event's delay", "p50 to without", "p99 to without", "GC pauses, of 5%"),
        "growth": ("new class", "known class", "both verbs"),
        "sync": ("/livez", "ready, s", "peak RSS, MB", "ready, of 15 s", "peak, of 700 MB"),
        "intree": ("in-tree", "cold class", "known class", "in-tree to cold class", "in-tree to known class"),
    }
)
"""Section -> the headings that the page shows. Of other sections the page shows all."""
_LEFT_OUT: Final = ("events", "gangs", "cache", "explain", "beside", "busy")
"""Sections that are only in the JSON: a developer compares them from run to run."""


def tables(reports: Iterable[Report]) -> str:
    """Return Markdown: a table for each section that the page shows, and when and on what each report was measured."""
    return "\n\n".join(part for given in reports for part in (*map(_table, _shown(given)), _measured(given)))


def blocks() -> dict[str, str]:
    """Return the block of the page: the latest report, and the comparison with in-tree if there is one."""
    return {_BLOCK: tables(report.read(path) for path in (LATEST, INTREE) if path.exists())}


def _shown(given: Report) -> Iterable[Section]:
    return (section for section in given.sections if section.name not in _LEFT_OUT)


def _table(section: Section) -> str:
    headings = _headings(section)
    rows = [
        [row.name, *(cells.get(heading, "") for heading in headings)]
        for row in section.rows
        if not (cells := _cells(row)).keys().isdisjoint(headings)
    ]
    return f"**{section.title}**\n\n{table(['', *(_heading(each, section) for each in headings)], rows)}"


def _headings(section: Section) -> list[str]:
    found = dict.fromkeys(heading for row in section.rows for heading in _cells(row))
    shown = _SHOWN.get(section.name)
    return list(found) if shown is None else [heading for heading in shown if heading in found]


def _heading(heading: str, section: Section) -> str:
    """Return a heading with the unit of times. Figures have their unit in the heading, and ratios have none."""
    return f"{heading}, ms" if any(heading in row.times for row in section.rows) else heading


def _cells(row: Row) -> dict[str, str]:
    return {
        **{heading: _times(times) for heading, times in row.times.items()},
        **{heading: short(figure) for heading, figure in row.figures.items()},
        **{heading: _ratio(ratio) for heading, ratio in row.ratios.items()},
    }


def _times(times: Times) -> str:
    return f"{short(times.p50)} / {short(times.p99)}"


def _ratio(ratio: Ratio) -> str:
    value = f"**{short(ratio.value)}**"
    if ratio.low != ratio.high:
        value += f" ({short(ratio.low)} to {short(ratio.high)})"
    return f"{value}; {ratio.bound}{', missed' if ratio.missed else ''}" if ratio.bound else value


def _measured(given: Report) -> str:
    machine = ", ".join(f"{key} {value}" for key, value in given.machine.items())
    return f"Measured on {given.date} by `{given.command}` at {given.commit or 'no commit'}: {machine}."
