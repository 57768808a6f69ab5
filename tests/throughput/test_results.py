"""Runs: medians over their rounds, and the file that they are kept in."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.throughput.results import default_path, read
from tests.throughput.runs import RUN, cell


def test_shapes_and_modes_are_in_the_order_of_the_run_and_programs_in_their_own() -> None:
    assert RUN.shapes == ["affinity", "plain"]
    assert RUN.modes == ["in-tree", "decide-any-node", "ceiling"]
    assert RUN.programs == ["kube-scheduler", "Kindred", "kube-apiserver"]


def test_a_rate_is_the_median_of_the_rounds() -> None:
    assert RUN.rate("affinity", "in-tree") == 20.0


def test_what_was_not_measured_has_no_rate() -> None:
    assert RUN.rate("plain", "decide-any-node") is None


def test_a_program_that_did_not_run_is_not_counted_as_none_of_the_time() -> None:
    assert RUN.median("affinity", "in-tree", lambda each: each.cpu_ms.get("Kindred")) is None


def test_every_attempt_that_chose_no_node_has_failed() -> None:
    assert cell("plain", "decide", 10.0).failed_attempts == 0
    several = msgspec.structs.replace(RUN.cells[0], attempts={"scheduled": 300, "unschedulable": 2, "error": 5})
    assert several.failed_attempts == 7


def test_a_run_is_read_as_it_was_written_but_for_digits(tmp_path: Path) -> None:
    run = msgspec.structs.replace(RUN, cells=[cell("plain", "decide", 123.456789, kindred=0.5)])
    (tmp_path / "run.json").write_bytes(run.encode())
    kept = read(tmp_path / "run.json")
    assert kept.cells[0].pods_per_second == 123.5
    assert msgspec.structs.replace(kept, cells=[]) == msgspec.structs.replace(run, cells=[])


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"date": "2026-01-02"}))
    with pytest.raises(msgspec.ValidationError, match="missing required field `command`"):
        read(tmp_path / "run.json")


def test_each_size_and_each_further_release_has_a_file() -> None:
    assert default_path(2000).parts[-3:] == ("docs", "bench", "throughput-2000.json")
    assert default_path(2000, "v1.37.1").name == "throughput-2000-v1.37.1.json"
