"""Where the runs of tests.e2e.throughput and tests.e2e.scheduler_perf are kept."""

from pathlib import Path

import pytest

from tests.e2e import scheduler_perf, throughput
from tests.e2e.load_shapes import GANG_SIZE, PLAIN, SHAPES

FOLDER = ("docs", "bench")


def kept(path: Path | None) -> str:
    """Return the name of a file of docs/bench, another path as it is, and nothing for none."""
    return "" if path is None else path.name if path.parts[-3:-1] == FOLDER else str(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "throughput-500.json"),
        (["--nodes", "5000", "--rounds", "1"], "throughput-5000.json"),
        (["--kubernetes", "v1.37.1"], "throughput-500-v1.37.1.json"),
        (["--modes", "in-tree,ceiling"], ""),
        (["--shapes", "plain"], ""),
        (["--pods", "50"], ""),
        (["--profiles", "profiles"], ""),
        (["--gangs", "2"], ""),
        (["--set", "KINDRED_EQUIVALENCE_CACHE=false"], ""),
        (["--pods", "50", "--output", "here.json"], "here.json"),
    ],
)
def test_a_run_of_all_shapes_in_all_modes_is_kept(arguments: list[str], expected: str) -> None:
    assert kept(throughput.output_of(throughput.read_options(arguments))) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "scheduler-perf.json"),
        (["--kubernetes", "v1.37.1", "--rounds", "3"], "scheduler-perf-v1.37.1.json"),
        (["--cases", "*/500Nodes"], ""),
        (["--modes", "in-tree"], ""),
        (["--set", "KINDRED_EQUIVALENCE_CACHE=false"], ""),
        (["--cases", "*/500Nodes", "--output", "here.json"], "here.json"),
    ],
)
def test_a_run_of_all_workloads_in_all_modes_is_kept(arguments: list[str], expected: str) -> None:
    assert kept(scheduler_perf.output_of(scheduler_perf.read_options(arguments))) == expected


def test_a_size_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        throughput.read_options(["--nodes", "1000"])
    assert "invalid choice: 1000 (choose from 500, 2000, 5000)" in capsys.readouterr().err


def test_the_gangs_are_spread_evenly_between_the_measured_pods_and_each_stays_together() -> None:
    plan = throughput.Plan(throughput.SIZES[500], SHAPES, [], rounds=1, pods=4, settings={}, gangs=2)
    names = [made["metadata"]["name"] for made in plan.pods_of(PLAIN, "kindred")]
    first, second = ([f"gang-{number}-{index}" for index in range(GANG_SIZE)] for number in (0, 1))
    assert ["plain-0", *first, "plain-1", "plain-2", *second, "plain-3"] == names
