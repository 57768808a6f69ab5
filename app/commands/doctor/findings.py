"""The results of the doctor: findings with their fixes, skipped checks, and the report of both."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from app.scheduler_configuration.schema import Finding, Severity
from app.settings import key_of, variable_of

HANDBOOK: Final = "docs/register.md"
DECIDE: Final = "docs/decide.md"
BEHAVIOUR: Final = "docs/architecture.md"
VERSIONS: Final = "docs/versions.md"
SETTINGS: Final = "docs/configuration.md"
EXTENDER_TYPE: Final = "kube-scheduler config/v1 types.go (Extender)"


class Problem(NamedTuple):
    """A finding of a check. `fix` is the text to write or the step to take; empty if there is none."""

    severity: Severity
    where: str
    message: str
    fix: str


def setting(name: str, value: object = None) -> str:
    """Return a setting as people write it: its key in the file, the value if given, and its variable."""
    written = key_of(name) if value is None else f"{key_of(name)}: {value}"
    return f"{written} ({variable_of(name)})"


class NotChecked(NamedTuple):
    """A skipped check, and the input that it needs."""

    needs: str


class Skipped(msgspec.Struct, frozen=True):
    """A check that was skipped, or made in part."""

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
    """The checked sources."""
    findings: Sequence[Finding]
    skipped: Sequence[Skipped]
    summary: Summary


def report(inputs: dict[str, str], findings: Sequence[Finding], skipped: Sequence[Skipped]) -> Report:
    """Put findings in order and count them."""
    order = list(Severity)
    counts = {severity: sum(finding.severity is severity for finding in findings) for severity in Severity}
    return Report(
        inputs=inputs,
        findings=tuple(sorted(findings, key=lambda finding: order.index(finding.severity))),
        skipped=tuple(skipped),
        summary=Summary(
            errors=counts[Severity.ERROR],
            warnings=counts[Severity.WARNING],
            infos=counts[Severity.INFO],
            skipped=len(skipped),
        ),
    )


def error(where: str, message: str, fix: str) -> Problem:
    """Return a problem of that severity."""
    return Problem(Severity.ERROR, where, message, fix)


def warning(where: str, message: str, fix: str) -> Problem:
    """Return a problem of that severity."""
    return Problem(Severity.WARNING, where, message, fix)


def info(where: str, message: str, fix: str) -> Problem:
    """Return a problem of that severity."""
    return Problem(Severity.INFO, where, message, fix)
