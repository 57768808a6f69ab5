"""Output of scheduler_perf, and the table of a run."""

import json
from pathlib import Path

import pytest

from tests.throughput.perf_results import PerfCell, PerfError, SchedulerPerf, default_path, read, table, throughput

CASE = "SchedulingPodAffinity/5000Nodes"
RUN = SchedulerPerf(
    "2026-01-02",
    "python -m tests.e2e.scheduler_perf",
    "0123abcd",
    {"CPUs": "2"},
    "v1.36.3",
    [
        PerfCell(CASE, "in-tree", 10.0, 11.0, 600.0),
        PerfCell(CASE, "in-tree", 20.0, 21.0, 500.0),
        PerfCell(CASE, "decide-any-node", 90.0, 95.0, 100.0),
        PerfCell(CASE, "ceiling", 120.0, 130.0, 90.0),
        PerfCell("SchedulingPodAntiAffinity/5000Nodes", "decide-any-node", 80.0, 85.0, 100.0),
    ],
)


def items(*found: dict[str, object]) -> bytes:
    return json.dumps({"version": "v1", "dataItems": list(found)}).encode()


def test_the_throughput_is_found_among_other_data() -> None:
    content = items(
        {"data": {"Average": 3.5}, "unit": "ms", "labels": {"Metric": "scheduler_scheduling_attempt_duration_seconds"}},
        {"data": {"Average": 84.3, "Perc50": 90.0}, "unit": "pods/s", "labels": {"Metric": "SchedulingThroughput"}},
    )
    assert throughput(content) == {"Average": 84.3, "Perc50": 90.0}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{}", id="a benchmark that failed"),
        pytest.param(items(), id="no data"),
        pytest.param(b'{"version": "v1", "dataItems": null}', id="null"),
        pytest.param(items({"data": None, "unit": "", "labels": {"Name": "x"}}), id="over within a second"),
    ],
)
def test_output_without_a_throughput_is_an_error(content: bytes) -> None:
    with pytest.raises(PerfError, match="no SchedulingThroughput among"):
        throughput(content)


def test_the_table_has_a_row_for_each_workload_with_ratios() -> None:
    assert table(RUN) == (
        """\
| average pods per second | in-tree | decide-any-node | ceiling |
| --- | --- | --- | --- |
| SchedulingPodAffinity/5000Nodes | 15.0 | 90.0 (6.00 of in-tree, 0.75 of the ceiling) | 120 |
| SchedulingPodAntiAffinity/5000Nodes | - | 80.0 | - |

scheduler_perf of Kubernetes v1.36.3, measured on 2026-01-02 by `python -m tests.e2e.scheduler_perf` at 0123abcd: \
CPUs 2."""
    )


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(RUN.encode())
    assert read(tmp_path / "run.json") == RUN


def test_each_further_release_has_a_file() -> None:
    assert [default_path().name, default_path("v1.37.1").name] == ["scheduler-perf.json", "scheduler-perf-v1.37.1.json"]
