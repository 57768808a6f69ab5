"""What a program of a release prints is returned, and a failure is an error that has it."""

from pathlib import Path

import pytest

from release.checkout import ReleaseError
from release.programs import run, succeeds


def test_what_a_program_prints_is_returned_and_it_has_the_environment(tmp_path: Path) -> None:
    assert run(["sh", "-c", 'echo "$EPOCH in $(pwd)"'], tmp_path, {"EPOCH": "7"}) == f"7 in {tmp_path}\n"


def test_the_end_of_what_a_failed_program_said_is_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"exit status 3\n(?s:.*)line 30$") as raised:
        run(["sh", "-c", 'for i in $(seq 30); do echo "line $i" >&2; done; exit 3'], tmp_path)
    assert "line 11\n" in str(raised.value)
    assert "line 10\n" not in str(raised.value)


def test_a_program_that_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"^absent-program: No such file or directory$"):
        run(["absent-program", "build"], tmp_path)


@pytest.mark.parametrize(("program", "expected"), [("true", True), ("false", False)])
def test_success_is_exit_status_0(program: str, expected: bool) -> None:  # noqa: FBT001  # a row
    assert succeeds([program]) == expected
