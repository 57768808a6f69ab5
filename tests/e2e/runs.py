"""Runs of the end-to-end tests by release of Kubernetes, in runs.json, from which docs/versions.md has its table.

KINDRED_E2E_RECORD=1 lets a run write its row. A row says what was run: the names of files, or of those left out.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).with_name("runs.json")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the tests beside the programs of a release."""

    kubernetes: str
    date: str
    commit: str
    files: Sequence[str]
    """Names of test files; none where most were run, and `left_out` has the others."""
    left_out: Sequence[str]
    passed: int
    failed: int
    skipped: int


def is_recorded() -> bool:
    """Return whether this run is to be kept."""
    return bool(os.environ.get("KINDRED_E2E_RECORD"))


def recorded() -> Mapping[str, Run]:
    """Return release, such as `v1.37.1` -> its latest run."""
    return {run.kubernetes: run for run in msgspec.json.decode(FILE.read_bytes(), type=list[Run])}


def record(kubernetes: str, files: Sequence[str], passed: int, failed: int, skipped: int) -> None:
    """Keep a run in place of the one before of the same release."""
    left_out = {path.name for path in FILE.parent.glob("test_*.py")} - set(files)
    most = len(left_out) < len(set(files))
    run = Run(
        kubernetes=kubernetes,
        date=datetime.now(UTC).date().isoformat(),
        commit=_commit(),
        files=[] if most else sorted(set(files)),
        left_out=sorted(left_out) if most else [],
        passed=passed,
        failed=failed,
        skipped=skipped,
    )
    runs = {**(recorded() if FILE.exists() else {}), kubernetes: run}
    encoded = msgspec.json.encode([runs[each] for each in sorted(runs)])
    FILE.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def table() -> Iterator[str]:
    """Yield the lines of the table of what was run."""
    yield "| programs | end-to-end tests | passed | failed | skipped | on | commit |"
    yield "|---|---|---|---|---|---|---|"
    for run in recorded().values():
        results = f"{run.passed} | {run.failed} | {run.skipped}"
        yield f"| {run.kubernetes} | {_part(run)} | {results} | {run.date} | {run.commit} |"


def _part(run: Run) -> str:
    names = ", ".join(f"`{name}`" for name in run.files or run.left_out)
    if run.files:
        return names
    return f"all but {names}" if names else "all"


def _commit() -> str:
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=FILE.parent, capture_output=True, text=True, check=True)  # noqa: S603  # our own
    return done.stdout.strip()
