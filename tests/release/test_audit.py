"""An audit says what is known, and never that nothing is known where nothing was asked."""

import re
from pathlib import Path
from typing import Any

import pytest

from release.audit import CLEAN, LOCKS, ROOT, UNKNOWN, VULNERABLE, UnreachableError, found, main

FINE: dict[str, Any] = {"name": "fine", "version": "1.0", "vulns": []}
BROKEN: dict[str, Any] = {
    "name": "broken",
    "version": "1.0",
    "vulns": [{"id": "CVE-1", "fix_versions": ["1.1", "2.0"]}, {"id": "CVE-2", "fix_versions": []}],
}
SKIPPED: dict[str, Any] = {"name": "skipped", "skip_reason": "not found"}


def auditor(folder: Path, output: str, status: int = 0) -> Path:
    """Make a pip-audit that prints this for every lock, and return its folder."""
    program = folder / "pip-audit"
    program.write_text(f"#!/bin/sh\necho '{output}'\necho 'no connection' >&2\nexit {status}\n")
    program.chmod(0o755)
    return folder


def test_every_vulnerability_is_a_line_with_the_versions_that_have_it_no_more() -> None:
    assert found([FINE, BROKEN]) == ["broken 1.0: CVE-1, fixed in 1.1, 2.0", "broken 1.0: CVE-2, fixed in none"]


@pytest.mark.parametrize(
    ("dependencies", "reason"),
    [
        pytest.param([FINE, SKIPPED], "1 of 2 packages are not known to it, such as skipped", id="one unknown"),
        pytest.param([], "about no package", id="nothing asked"),
    ],
)
def test_a_package_that_the_database_does_not_know_is_not_audited(
    dependencies: list[dict[str, Any]], reason: str
) -> None:
    with pytest.raises(UnreachableError, match=reason):
        found(dependencies)


@pytest.mark.parametrize(
    ("output", "status", "expected"),
    [
        pytest.param('{"dependencies": [{"name": "fine", "version": "1", "vulns": []}]}', 0, CLEAN, id="clean"),
        pytest.param(
            '{"dependencies": [{"name": "x", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": []}]}]}',
            1,
            VULNERABLE,
            id="vulnerable",
        ),
        pytest.param('{"dependencies": [{"name": "x", "skip_reason": "?"}]}', 0, UNKNOWN, id="unknown package"),
        pytest.param("", 1, UNKNOWN, id="no database"),
    ],
)
def test_the_exit_status_tells_known_from_unknown(
    tmp_path: Path, output: str, status: int, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--tools", str(auditor(tmp_path, output, status))]) == expected
    said = capsys.readouterr()
    assert ("NOT AUDITED. osv: " in said.err) == (expected == UNKNOWN)
    assert ("CVE-1" in said.out) == (expected == VULNERABLE)


def test_every_locked_package_is_audited() -> None:
    packages = {
        path.name: set(re.findall(r"^\S+==[^\s;]+", path.read_text(), re.MULTILINE)) for path in ROOT.glob("*.lock")
    }
    assert set(LOCKS) < set(packages)
    assert set.union(*packages.values()) == set.union(*(packages[lock] for lock in LOCKS))
