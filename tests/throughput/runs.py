"""A run made up for the tests: two shapes in three modes, two rounds of the first cell."""

from typing import Final

from tests.throughput.results import SCHEDULED, Cell, Throughput


def cell(shape: str, mode: str, rate: float, *, kindred: float | None = None, failed: int = 0) -> Cell:
    """Return a cell of 300 pods."""
    cpu = {"kube-scheduler": 1000 / rate, **({} if kindred is None else {"Kindred": kindred}), "kube-apiserver": 2.5}
    attempts = {SCHEDULED: 300, **({"error": failed} if failed else {})}
    return Cell(shape, mode, 300, rate, cpu, 500 / rate, attempts)


RUN: Final = Throughput(
    "2026-01-02",
    "python -m tests.e2e.throughput",
    "0123abcd",
    {"CPU": "one", "CPUs": "2"},
    "v1.36.3",
    5000,
    50_000,
    {},
    [
        cell("affinity", "in-tree", 10.0),
        cell("affinity", "in-tree", 30.0),
        cell("affinity", "decide-any-node", 200.0, kindred=1.25, failed=3),
        cell("affinity", "ceiling", 400.0),
        cell("plain", "in-tree", 50.0),
        cell("plain", "ceiling", 1000.0),
    ],
)
