"""`make pythons`: which interpreters are found, and the report for missing ones."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import pythons

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the machine look as if it had no interpreter: not on PATH, in pyenv, or by uv."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    return tmp_path


def python(path: Path, version: str) -> Path:
    """Write a program that prints the version of a release."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_classifiers_name_the_supported_releases() -> None:
    assert {"3.11", HERE} <= set(pythons.supported())


def test_an_interpreter_on_the_path_comes_first(machine: Path) -> None:
    expected = python(machine / "bin" / "python3.12", "3.12")
    python(machine / "pyenv" / "versions" / "3.12.9" / "bin" / "python", "3.12")
    assert pythons.find("3.12") == expected


def test_a_shim_of_pyenv_that_does_not_run_is_passed_over_for_the_newest_release(machine: Path) -> None:
    shim = machine / "bin" / "python3.12"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    python(machine / "pyenv" / "versions" / "3.12.9" / "bin" / "python", "3.12")
    expected = python(machine / "pyenv" / "versions" / "3.12.10" / "bin" / "python", "3.12")
    assert pythons.find("3.12") == expected


def test_an_interpreter_of_another_release_is_none(machine: Path) -> None:
    python(machine / "bin" / "python3.12", "3.13")
    assert pythons.find("3.12") is None


def test_uv_is_asked_last(machine: Path) -> None:
    expected = python(machine / "elsewhere" / "python", "3.13")
    uv = machine / "venv" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(f'#!/bin/sh\n[ "$1 $2" = "python find" ] && echo {expected}\n')
    uv.chmod(0o755)
    assert pythons.find("3.13") == expected


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ({"3.11": "passed", "3.12": "not found"}, 0),
        ({"3.11": "passed", "3.12": "failed: mypy, status 1"}, 1),
        ({"3.11": "not found", "3.12": "not found"}, 1),
    ],
)
def test_each_release_is_named_and_a_failure_is_the_status(
    monkeypatch: pytest.MonkeyPatch, results: dict[str, str], status: int
) -> None:
    asked: list[tuple[str, ...]] = []

    def tried(version: str, arguments: tuple[str, ...]) -> str:
        asked.append(arguments)
        return results[version]

    monkeypatch.setattr(pythons, "supported", lambda: [*results])
    monkeypatch.setattr(pythons, "tried", tried)
    done = CliRunner().invoke(pythons.main, ["tests/core", "-x"])
    assert (done.exit_code, done.stdout.splitlines()) == (
        status,
        [f"Python {each}: {results[each]}" for each in results],
    )
    assert asked == [("tests/core", "-x")] * len(results)
