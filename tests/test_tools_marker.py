"""The marker `tools`: which tests have it, and the summary of a run that deselects them."""

import subprocess
import sys
from collections import Counter

import pytest

from tests.tools_marker import summary


def pytest_of(*arguments: str) -> str:
    """Run pytest on two small files, one of a tool; give what it printed."""
    files = ["tests/load/test_memory.py", "tests/test_depth.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *files]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own program


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["in-one-process", "with-xdist"])
def test_a_run_without_the_tools_names_their_files(workers: list[str]) -> None:
    printed = pytest_of("-m", "not tools", *workers)
    assert "8 self-tests of tools were deselected; `make test-all` runs them:" in printed
    assert "tests/load: test_memory.py (8)" in printed


def test_a_run_with_all_tests_says_nothing_of_them() -> None:
    printed = pytest_of("--collect-only")
    assert "tests/load/test_memory.py::" in printed
    assert "deselected" not in printed


def test_the_summary_has_a_line_for_each_folder() -> None:
    assert summary(Counter()) == []
    assert summary(Counter({"tests/b/test_2.py": 1, "tests/a/test_3.py": 4, "tests/a/test_1.py": 2})) == [
        "7 self-tests of tools were deselected; `make test-all` runs them:",
        "  tests/a: test_1.py (2), test_3.py (4)",
        "  tests/b: test_2.py (1)",
    ]
