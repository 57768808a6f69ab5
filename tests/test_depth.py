"""The depth of random tests: the default, the full depth, and multiples of it."""

import os
import subprocess
import sys

import pytest

_ASK = "from tests.depth import tries, use_depth; from hypothesis import settings; use_depth(); "
_ASK += "print(tries(default=7, full=40), settings().max_examples, settings().stateful_step_count, settings().deadline)"


@pytest.mark.parametrize(
    ("depth", "printed"),
    [
        pytest.param("", "7 60 20 None", id="default"),
        pytest.param("1", "40 100 20 None", id="full"),
        pytest.param("20", "800 2000 50 None", id="multiple"),
        pytest.param("0.001", "1 1 20 None", id="never-nothing"),
    ],
)
def test_the_depth_says_how_much_is_tried(depth: str, printed: str) -> None:
    environment = {**os.environ, "KINDRED_TEST_DEPTH": depth}
    done = subprocess.run([sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - our own program
    assert printed == done.stdout.strip()


def test_a_depth_that_is_no_number_ends_the_run() -> None:
    environment = {**os.environ, "KINDRED_TEST_DEPTH": "deep"}
    done = subprocess.run([sys.executable, "-c", _ASK], env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    assert done.returncode == 1
    assert "KINDRED_TEST_DEPTH is a multiple of the full depth, such as 1 or 20, not 'deep'" in done.stderr


@pytest.mark.parametrize(
    ("file", "is_deep"),
    [
        pytest.param("tests/properties/test_remedies.py", True, id="asks-for-tries"),
        pytest.param("tests/core/objects/test_labels.py", True, id="hypothesis"),
        pytest.param("tests/core/test_node_sample.py", False, id="neither"),
    ],
)
def test_what_tries_more_at_the_full_depth_is_marked(
    file: str,
    is_deep: bool,  # noqa: FBT001 - a column of the table
) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "deep", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    assert (f"{file}::" in done.stdout) is is_deep
