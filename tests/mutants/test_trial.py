"""Trials with a tree of a few lines: the found faults, the finding tests, and that only the copy is tested."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.fault import Fault
from tests.mutants.trial import Stage, TrialError, first_failure, judge

PROGRAM: Final = Path(__file__).parent
TESTS: Final = """
import time

from core.limits import LIMIT


def test_the_limit_is_one():
    assert LIMIT != 0


def test_it_is_not_reached_after_a_minute():
    if LIMIT > 1:
        time.sleep(60)
"""
MORE_TESTS: Final = "from app import NAME\n\n\ndef test_the_name_is_not_empty():\n    assert NAME\n"
PATIENT: Final = 120.0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a repository with a package of each kind."""
    files = {
        "app/__init__.py": 'NAME = "kindred"\n',
        "core/__init__.py": "",
        "core/limits.py": "LIMIT = 1\n",
        "tests/__init__.py": "",
        "tests/core/test_limits.py": TESTS,
        "tests/app/test_name.py": MORE_TESTS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    shutil.copytree(PROGRAM, tmp_path / "tests" / "mutants", ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    for arguments in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)  # noqa: S603, S607  # git, as found
    return tmp_path


def test_the_first_test_that_fails_has_found_the_fault(tree: Path) -> None:
    result = judge(tree, "core", _fault("LIMIT = 1", "LIMIT = 0"), [], PATIENT)
    assert (result.stage, result.by) == ("first", "tests/core/test_limits.py::test_the_limit_is_one")


def test_a_module_that_cannot_be_imported_any_more_is_found(tree: Path) -> None:
    result = judge(tree, "core", _fault("LIMIT = 1", "MOST = 1"), [], PATIENT)
    assert result.by == "tests/core/test_limits.py (collection)"


def test_what_the_first_tests_miss_is_left_to_the_suite(tree: Path) -> None:
    result = judge(tree, "app", _fault('"kindred"', '""'), [Stage("suite", ["tests"], PATIENT)], PATIENT)
    assert (result.stage, result.by) == ("suite", "tests/app/test_name.py::test_the_name_is_not_empty")


def test_a_fault_that_no_test_finds_survives(tree: Path) -> None:
    result = judge(tree, "app", _fault('"kindred"', '"k"'), [Stage("suite", ["tests"], PATIENT)], PATIENT)
    assert (result.stage, result.by) == ("", "")


def test_tests_that_do_not_end_have_found_the_fault(tree: Path) -> None:
    result = judge(tree, "core", _fault("LIMIT = 1", "LIMIT = 2"), [], 3.0)
    assert result.by == "timeout"


def test_a_tree_without_a_fault_passes_and_is_left_as_it_was(tree: Path) -> None:
    before = sorted(tree.rglob("*"))
    assert first_failure(tree, None, Stage("control", ["tests"], PATIENT)) == ""
    assert sorted(tree.rglob("*")) == before


def test_a_tree_is_copied_as_it_is_and_not_as_it_was_committed(tree: Path) -> None:
    (tree / "core" / "limits.py").write_text("LIMIT = 0\n", "utf-8")
    by = first_failure(tree, None, Stage("control", ["tests/core"], PATIENT))
    assert by == "tests/core/test_limits.py::test_the_limit_is_one"


def test_nothing_is_told_of_packages_that_are_not_the_copy(tree: Path) -> None:
    shutil.rmtree(tree / "app")  # then Python finds the one that is installed
    with pytest.raises(TrialError, match="app is imported from"):
        first_failure(tree, None, Stage("control", ["tests"], PATIENT))


def test_nothing_is_told_where_no_test_ran(tree: Path) -> None:
    with pytest.raises(TrialError, match="pytest ended with 5"):
        first_failure(tree, None, Stage("control", ["tests", "-k", "no_such_test"], PATIENT))


def _fault(old: str, new: str) -> Fault:
    return Fault(id="planted", breaks="Something.", old=old, new=new, tests=("test_limits.py",))
