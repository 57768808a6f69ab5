"""The results of the doctor: findings with their fixes, skipped checks, and the report of both."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from app.commands.output import Line, Styled, prose_width, wrapped
from app.settings.settings import key_of, variable_of
from core.explaining.words import counted

HANDBOOK: Final = "docs/register.md"
DECIDE: Final = "docs/decide.md"
BEHAVIOUR: Final = "docs/architecture.md"
VERSIONS: Final = "docs/versions.md"
RUN: Final = "docs/run.md"
SETTINGS: Final = "docs/configuration.md"
EXTENDER_TYPE: Final = "kube-scheduler config/v1 types.go (Extender)"


class Severity(Enum):
    """The severity of a finding."""

    ERROR = "error"
    """Pods are placed wrongly or not at all, or a rule is not enforced."""
    WARNING = "warning"
    """The registration works, but not well: late, with too much weight, unsafe."""
    INFO = "info"
    """A fact to check. If it is intended, there is nothing to do."""


class Finding(msgspec.Struct, frozen=True):
    """A problem, with the check that found it."""

    id: str
    severity: Severity
    where: str
    message: str
    fix: str
    reference: str


class Problem(NamedTuple):
    """A finding of a check. `fix` is the text to write or the step to take; empty if there is none."""

    severity: Severity
    where: str
    message: str
    fix: str


error: Final = partial(Problem, Severity.ERROR)
warning: Final = partial(Problem, Severity.WARNING)
info: Final = partial(Problem, Severity.INFO)


def setting(name: str, value: object = None) -> str:
    """Return a setting as people write it: its key in the file, the value if given, and its variable."""
    written = key_of(name) if value is None else f"{key_of(name)}: {value}"
    return f"{written} ({variable_of(name)})"


class Skipped(msgspec.Struct, frozen=True):
    """A skipped check, and the input that it needs."""

    id: str
    needs: str


class Summary(msgspec.Struct, frozen=True):
    """Findings by severity, and skipped checks."""

    errors: int
    warnings: int
    infos: int
    skipped: int


class Report(msgspec.Struct, frozen=True):
    """The report: the findings, the worst first, and the skipped checks."""

    inputs: dict[str, str]
    findings: Sequence[Finding]
    skipped: Sequence[Skipped]
    summary: Summary


def report(inputs: dict[str, str], findings: Sequence[Finding], skipped: Sequence[Skipped]) -> Report:
    """Put findings in order and count them."""
    order = list(Severity)
    counts = Counter(finding.severity for finding in findings)
    summary = Summary(counts[Severity.ERROR], counts[Severity.WARNING], counts[Severity.INFO], len(skipped))
    return Report(inputs, sorted(findings, key=lambda finding: order.index(finding.severity)), skipped, summary)


_TITLES: Final = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.INFO: "Good to know"}
_COLOURS: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def report_text(report: Report, *, wide: bool) -> Iterator[Line]:
    """Yield the report as lines."""
    width = sys.maxsize if wide else prose_width()
    for name, value in report.inputs.items():
        yield from wrapped(f"{name}: {value}", 2, "", whole_within=width)
    for severity, findings in groupby(report.findings, lambda finding: finding.severity):
        yield ""
        yield Styled(_TITLES[severity], fg=_COLOURS[severity], bold=True)
        for finding in findings:
            yield from _finding(finding, width)
    if report.skipped:
        yield ""
        yield Styled("Not checked", bold=True)
        for needs, number in Counter(each.needs for each in report.skipped).items():
            yield from wrapped(f"without {needs}: {counted(number, 'check')}", 4, "  ", whole_within=width)
    count = report.summary
    yield ""
    yield (
        f"{counted(count.errors, 'error')}, {counted(count.warnings, 'warning')}, {count.infos} to know, "
        f"{counted(count.skipped, 'check')} not made"
    )


def _finding(finding: Finding, width: int) -> Iterator[Line]:
    yield Styled(f"  {finding.id}", bold=True, rest=f"  {finding.where}" if finding.where else "")
    yield from wrapped(finding.message, 4, whole_within=width)
    if finding.fix:
        yield from wrapped(f"fix: {finding.fix}", 9, "    ", whole_within=width)
    yield from wrapped(f"see: {finding.reference}", 9, "    ", whole_within=width)
