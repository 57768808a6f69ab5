"""docs/versions.md agrees with the code's tables."""

from core.releases import DIFFERENCES, GATES, RELEASES
from tests import versions_table
from tests.e2e import binaries, runs


def test_the_tables_are_those_of_the_code() -> None:
    page = versions_table.PAGE.read_text("utf-8")
    assert versions_table.written(page) == page, "python -m tests.versions_table --write"


def test_every_difference_and_every_gate_has_a_row() -> None:
    rows = [line for line in versions_table.differences_table() if line.startswith("|")]
    assert len(rows) == 2 + len(DIFFERENCES)
    gates = list(versions_table.gates_table())
    assert len(gates) == 2 + len(GATES)
    assert {line.count(" |") for line in gates if "---" not in line} == {1 + len(RELEASES)}


def test_the_page_names_every_known_release() -> None:
    text = versions_table.PAGE.read_text("utf-8").partition("## ")[0]
    assert all(str(release) in text for release in RELEASES)


def test_the_table_of_runs_has_a_row_for_each_release_that_was_run_and_for_no_other() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in runs.table()][2:]
    assert rows == sorted(runs.recorded())
    assert set(rows) <= set(binaries.RELEASES.values())


def test_a_run_says_what_was_run_and_of_files_that_there_are() -> None:
    there = {path.name for path in runs.FILE.parent.glob("test_*.py")}
    for run in runs.recorded().values():
        assert not (run.files and run.left_out)
        assert {*run.files, *run.left_out} <= there
        assert run.passed > 0
