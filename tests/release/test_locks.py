"""The lock files pin every requirement with hashes, and name no index. An audit says what is known of them."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from release.audit import CLEAN, LOCKS, ROOT, UNKNOWN, VULNERABLE, UnreachableError, found, main

TEXTS: Final = {path.name: path.read_text("utf-8") for path in sorted(Path().glob("requirements*.lock"))}
DEV: Final = "requirements-dev.lock"
OF_THE_PROJECT: Final = ("requirements.lock", "requirements-devices.lock", "requirements-load.lock", DEV)
OF_OTHER_TOOLS: Final = ("requirements-docs.lock", "requirements-release.lock")
"""For environments that also have packages of their own. All others are a part of the development lock."""
NPM: Final[dict[str, Any]] = json.loads(Path("tests/web/package-lock.json").read_text("utf-8"))


def pinned(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", TEXTS[lock], re.MULTILINE))


@pytest.mark.parametrize("lock", TEXTS)
def test_every_requirement_is_pinned_and_hashed_and_no_index_is_named(lock: str) -> None:
    requirements = re.split(r"\n(?=\S)", TEXTS[lock].strip())
    assert len(requirements) > (10 if lock in OF_THE_PROJECT else 1)
    for requirement in requirements:
        assert re.match(r"[\w.-]+==\S+", requirement)
        assert "--hash=sha256:" in requirement
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ ", TEXTS[lock])


def test_the_locks_hold_every_dependency_of_the_project_in_one_version() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    versions = pinned(DEV)
    for lock in TEXTS:
        shared = pinned(lock).keys() & versions.keys() if lock in OF_OTHER_TOOLS else pinned(lock).keys()
        assert declared <= shared or lock not in OF_THE_PROJECT
        assert {name: versions[name] for name in shared} == {name: pinned(lock)[name] for name in shared} != {}


def test_every_package_of_npm_is_pinned_and_hashed_for_all_platforms_and_names_no_registry() -> None:
    package = json.loads(Path("tests/web/package.json").read_text("utf-8"))
    packages = {path: each for path, each in NPM["packages"].items() if path}
    assert NPM["lockfileVersion"] == 3
    assert NPM["packages"][""]["devDependencies"] == package["devDependencies"]
    assert "dependencies" not in package
    assert len(packages) > 10
    assert Path("tests/web/.npmrc").read_text("utf-8").splitlines().count("omit-lockfile-registry-resolved=true") == 1
    for path, each in packages.items():
        assert each["version"], path
        assert str(each["integrity"]).startswith("sha512-"), path
        # A registry without binaries for other platforms would make a lock without them, and `npm ci` would fail.
        assert not {"resolved", "os", "cpu", "libc", "optionalDependencies"} & each.keys(), path
        assert "://" not in json.dumps({**each, "funding": ""}), path


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
    stated = capsys.readouterr()
    assert ("NOT AUDITED. osv: " in stated.err) == (expected == UNKNOWN)
    assert ("CVE-1" in stated.out) == (expected == VULNERABLE)


def test_every_locked_package_is_audited() -> None:
    packages = {
        path.name: set(re.findall(r"^\S+==[^\s;]+", path.read_text(), re.MULTILINE)) for path in ROOT.glob("*.lock")
    }
    assert set(LOCKS) < set(packages)
    assert set.union(*packages.values()) == set.union(*(packages[lock] for lock in LOCKS))
