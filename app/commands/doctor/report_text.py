"""The report for people: the worst first. Wide, each sentence is on one line."""

import sys
from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap
from typing import Final

from app.commands.doctor.findings import Report
from app.commands.printer import Line, Styled
from app.commands.text_columns import prose_width
from app.scheduler_configuration.schema import Finding, Severity
from app.shown_text import shown

_TITLES: Final = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.INFO: "Good to know"}
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def report_text(report: Report, *, wide: bool, verbose: bool = False) -> Iterator[Line]:
    """Return the report as lines, which have colours on a terminal.

    `verbose`: list the skipped checks instead of their number.
    """
    return _lines(report, sys.maxsize if wide else prose_width(), verbose=verbose)


def _lines(report: Report, width: int, *, verbose: bool) -> Iterator[Line]:
    for name, value in report.inputs.items():
        yield from _wrapped(f"{name}: {value}", "  ", width, first="")
    for severity, findings in groupby(report.findings, lambda finding: finding.severity):
        yield ""
        yield Styled(_TITLES[severity], fg=_COLOURS[severity], bold=True)
        for finding in findings:
            yield from _finding(finding, width)
    if report.skipped:
        yield ""
        yield Styled("Not checked", bold=True)
        for needs in dict.fromkeys(each.needs for each in report.skipped):
            checks = [each.id for each in report.skipped if each.needs == needs]
            told = ", ".join(checks) if verbose else _count(len(checks), "check")
            yield from _wrapped(f"without {needs}: {told}", "    ", width, first="  ")
    yield ""
    yield summary(report)


def _finding(finding: Finding, width: int) -> Iterator[Line]:
    yield Styled(f"  {finding.id}", bold=True, rest=f"  {finding.where}" if finding.where else "")
    yield from _wrapped(finding.message, "    ", width)
    if finding.fix:
        yield from _wrapped(f"fix: {finding.fix}", "         ", width, first="    ")
    yield from _wrapped(f"see: {finding.reference}", "         ", width, first="    ")


def summary(report: Report) -> str:
    """Return the last line."""
    count = report.summary
    named = [
        _count(count.errors, "error"),
        _count(count.warnings, "warning"),
        f"{count.infos} to know",
        f"{_count(count.skipped, 'check')} not made",
    ]
    return ", ".join(named)


def _count(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _wrapped(text: str, indent: str, width: int, first: str | None = None) -> list[str]:
    lines = wrap(
        shown(text),
        width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [indent]
