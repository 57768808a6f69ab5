"""Which runs of the end-to-end tests are kept, and what the table says of them."""

from pathlib import Path

import pytest

from tests.e2e import runs


@pytest.fixture(autouse=True)
def _own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FILE", tmp_path / "runs.json")
    monkeypatch.setattr(runs, "_commit", lambda: "c0ffee")
    for name in ("test_one.py", "test_two.py", "test_three.py"):
        (tmp_path / name).touch()


def test_a_run_of_a_part_names_its_files_and_one_of_most_names_the_others() -> None:
    runs.record("v1.37.1", ["test_two.py", "test_two.py"], 3, 0, 1)
    runs.record("v1.34.1", ["test_one.py", "test_two.py", "test_three.py"], 5, 1, 0)
    runs.record("v1.35.4", ["test_one.py", "test_two.py"], 5, 0, 0)
    parts = [line.split(" | ", 2) for line in runs.table()][2:]
    assert [part for _, part, _ in parts] == ["all", "all but `test_three.py`", "`test_two.py`"]
    assert [version for version, _, _ in parts] == ["| v1.34.1", "| v1.35.4", "| v1.37.1"]
    assert parts[0][2].startswith("5 | 1 | 0 | ")
    assert parts[2][2].endswith(" | c0ffee |")


def test_a_later_run_takes_the_place_of_the_one_before_of_its_release() -> None:
    runs.record("v1.37.1", ["test_one.py"], 1, 0, 0)
    runs.record("v1.37.1", ["test_two.py"], 2, 0, 0)
    (run,) = runs.recorded().values()
    assert (run.files, run.passed) == (["test_two.py"], 2)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("", False)], ids=["wanted", "not wanted"])
def test_a_run_is_kept_where_that_is_wanted(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001  # a row of the table
    monkeypatch.setenv("KINDRED_E2E_RECORD", value)
    assert runs.is_recorded() == expected
