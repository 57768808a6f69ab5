"""The measurement of memory takes each profile, and the kept one has the clusters of the README."""

from tests.bench import memory, report
from tests.bench.command import Size
from tests.throughput import results


def test_memory_is_measured_with_each_profile() -> None:
    section = memory.measure([Size(20, 200)])
    (row,) = section.rows
    assert row.name == "20 nodes / 200 pods"
    assert row.figures.keys() == {"affinity: peak RSS, MB", "full: peak RSS, MB"}
    assert all(20 < megabytes < 500 for megabytes in row.figures.values())


def test_the_kept_measurement_has_each_cluster_of_the_throughput() -> None:
    (section,) = report.read(memory.FILE).sections
    clusters = {str(Size(run.nodes, run.pods_before)) for run in results.read_all()}
    assert clusters <= {row.name for row in section.rows}
