"""Which runs of the end-to-end tests are kept, and what the table says of them."""

from pathlib import Path

import pytest

from tests.e2e import runs


@pytest.fixture(autouse=True)
def _own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "FILE", tmp_path / "runs.json")
    monkeypatch.setattr(runs, "_commit", lambda: "c0ffee")
    (tmp_path / "test_one.py").touch()
    (tmp_path / "test_two.py").touch()


def test_a_run_of_a_part_names_its_files_and_a_run_of_all_does_not() -> None:
    runs.record("v1.37.1", ["test_two.py", "test_two.py"], 3, 0, 1)
    runs.record("v1.34.1", ["test_one.py", "test_two.py"], 5, 1, 0)
    files = {version: run.files for version, run in runs.recorded().items()}
    assert files == {"v1.34.1": [runs.ALL], "v1.37.1": ["test_two.py"]}
    first, second = [*runs.table()][2:]
    assert first.startswith("| v1.34.1 | all | 5 | 1 | 0 | ")
    assert second.startswith("| v1.37.1 | `test_two.py` | 3 | 0 | 1 | ")
    assert second.endswith(" | c0ffee |")


def test_a_later_run_takes_the_place_of_the_one_before_of_its_release() -> None:
    runs.record("v1.37.1", ["test_one.py"], 1, 0, 0)
    runs.record("v1.37.1", ["test_two.py"], 2, 0, 0)
    (run,) = runs.recorded().values()
    assert (run.files, run.passed) == (["test_two.py"], 2)


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("", False)], ids=["wanted", "not wanted"])
def test_a_run_is_kept_where_that_is_wanted(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001  # a row of the table
    monkeypatch.setenv("KINDRED_E2E_RECORD", value)
    assert runs.is_recorded() == expected
