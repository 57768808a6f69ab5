"""The lock files pin every requirement with hashes, and name no index."""

import json
import re
import tomllib
from pathlib import Path

import pytest

LOCKS = ["requirements.lock", "requirements-load.lock", "requirements-dev.lock"]
OF_BUILD = "requirements-build.lock"
"""The build backend, without the packages that the project needs to run."""
OF_DOCS = "requirements-docs.lock"
"""The documentation site's packages, which `make docs` adds to those of the development lock."""
OF_RELEASE = "requirements-release.lock"
"""Tools of `make release` and `make lock AUDIT=yes`, which have their own environment."""


@pytest.mark.parametrize("lock", [*LOCKS, OF_BUILD, OF_DOCS, OF_RELEASE])
def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    requirements = re.split(r"\n(?=\S)", Path(lock).read_text("utf-8").strip())
    assert len(requirements) > (10 if lock in LOCKS else 1)
    for requirement in requirements:
        assert re.match(r"[\w.-]+==\S+", requirement)
        assert "--hash=sha256:" in requirement


@pytest.mark.parametrize("lock", [*LOCKS, OF_BUILD, OF_DOCS, OF_RELEASE])
def test_a_lock_names_no_index_and_no_address(lock: str) -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ ", Path(lock).read_text("utf-8"))


def test_the_locks_hold_every_dependency_of_the_project() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    for lock in LOCKS:
        locked = set(re.findall(r"^([\w.-]+)==", Path(lock).read_text("utf-8"), re.MULTILINE))
        assert declared <= locked


def test_no_two_locks_pin_different_versions() -> None:
    locks = [*LOCKS[:-1], OF_BUILD, LOCKS[-1]]
    pinned = [re.findall(r"^([\w.-]+)==(\S+)", Path(lock).read_text("utf-8"), re.MULTILINE) for lock in locks]
    versions = dict(pinned[-1])
    for lock in pinned:
        assert {name: versions[name] for name, _ in lock} == dict(lock)


@pytest.mark.parametrize("lock", [OF_DOCS, OF_RELEASE])
def test_locks_of_other_tools_keep_the_versions_of_the_development_lock(lock: str) -> None:
    of_all, of_tools = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", Path(each).read_text("utf-8"), re.MULTILINE))
        for each in (LOCKS[-1], lock)
    )
    shared = of_all.keys() & of_tools.keys()
    assert shared
    assert {name: of_all[name] for name in shared} == {name: of_tools[name] for name in shared}


def packages_of_npm() -> dict[str, dict[str, object]]:
    lock = json.loads(Path("tests/web/package-lock.json").read_text("utf-8"))
    assert lock["lockfileVersion"] == 3
    found: dict[str, dict[str, object]] = lock["packages"]
    return {path: package for path, package in found.items() if path}


def test_every_package_of_npm_is_pinned_and_hashed() -> None:
    packages = packages_of_npm()
    assert len(packages) > 10
    for path, package in packages.items():
        assert package["version"], path
        assert str(package["integrity"]).startswith("sha512-"), path


def test_the_lock_of_npm_names_no_registry() -> None:
    assert Path("tests/web/.npmrc").read_text("utf-8").splitlines().count("omit-lockfile-registry-resolved=true") == 1
    for path, package in packages_of_npm().items():
        about_the_package = {key: value for key, value in package.items() if key != "funding"}  # sponsors
        assert "resolved" not in package, path
        assert "://" not in json.dumps(about_the_package), path


def test_no_package_of_npm_is_for_one_platform_alone() -> None:
    """A registry without binaries for other platforms would make a lock without them, and `npm ci` would fail."""
    for path, package in packages_of_npm().items():
        assert not {"os", "cpu", "libc", "optionalDependencies"} & package.keys(), path


def test_the_lock_of_npm_is_that_of_its_package() -> None:
    package = json.loads(Path("tests/web/package.json").read_text("utf-8"))
    locked = json.loads(Path("tests/web/package-lock.json").read_text("utf-8"))["packages"][""]
    assert locked["devDependencies"] == package["devDependencies"]
    assert "dependencies" not in package
