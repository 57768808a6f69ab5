"""The lock files pin every requirement with hashes, and name no index."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

TEXTS: Final = {path.name: path.read_text("utf-8") for path in sorted(Path().glob("requirements*.lock"))}
DEV: Final = "requirements-dev.lock"
OF_THE_PROJECT: Final = ("requirements.lock", "requirements-load.lock", DEV)
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
