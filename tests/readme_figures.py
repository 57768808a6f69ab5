"""The README's figures, from the committed measurements."""

from collections.abc import Iterable, Sequence
from typing import Final

from tests.bench import memory, report
from tests.bench.command import Size
from tests.bench.report import INTREE, LATEST, Report, Row
from tests.bench.text import short
from tests.e2e.binaries import SCHEDULER
from tests.throughput.modes import LISTED_NODES
from tests.throughput.results import IN_TREE, KINDRED, Throughput, read_all
from tests.throughput.table import ANY_NODE, cpu_of

WITHOUT_AFFINITY: Final = ("plain", "topology-spread")
"""Measured shapes without inter-pod affinity."""


def gains() -> str:
    """Return a table by size of the cluster: pods a second in multiples of in-tree, CPU and memory.

    Each cell but the memory is the range over the shapes with inter-pod affinity.
    """
    heading = (
        "| cluster | gain: decide | decide, listed nodes | score offload | full offload "
        "| cost: CPU a pod, in-tree | decide | memory of Kindred |"
    )
    lines = [heading, "|---|---|---|---|---|---|---|---|"]
    for run in sorted(read_all(), key=lambda run: run.nodes):
        shapes = [shape for shape in run.shapes if shape not in WITHOUT_AFFINITY]
        cells = [
            *(_multiples(run, shapes, mode) for mode in (ANY_NODE, LISTED_NODES, "score-offload", "full-offload")),
            *(f"{_range(_cpu(run, shapes, mode), 2)} ms" for mode in (IN_TREE, ANY_NODE)),
            f"{short(_memory(run), 3)} MB",
        ]
        lines.append(f"| {run.nodes:,} nodes, {run.pods_before:,} pods | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed() -> str:
    """Return a table of five ratios of the benchmarks, with the cost of Kindred's start."""
    bench, intree = report.read(LATEST), report.read(INTREE)
    plugin = _rows(intree, "intree")
    start = _row(bench, "sync", "WatchList").figures
    ratios = {
        "in-tree InterPodAffinity / Kindred, for a pod that is like an earlier one": _of(
            plugin, "in-tree to known class"
        ),
        "the same for the first pod of its kind": _of(plugin, "in-tree to cold class"),
        "`filter` over HTTP with 5,000 node names / an app that only reads and writes the same bytes": _of(
            [_row(bench, "http", "filter, 5,000 names")], "p50"
        ),
        "`filter` at p99 beside 1,000 watch events a second / beside none": _of(
            [_row(bench, "churn", "filter, 1,000 events a second")], "p99 to without"
        ),
        "a decision with three times the pods on the same nodes / without them": _of(
            [_row(bench, "growth", "3 times the pods on the same nodes")], "known class"
        ),
    }
    heading = "| times, with 5,000 nodes and 150,000 pods | ratio |"
    lines = [heading, "|---|---|", *(f"| {name} | {text} |" for name, text in ratios.items())]
    ready, memory = f"{short(start['ready, s'], 2)} s", f"{short(start['peak RSS, MB'])} MB"
    return "\n".join([*lines, f"| until Kindred is ready, and its memory then | {ready}, {memory} |"])


def blocks() -> dict[str, str]:
    """Return name -> the table of that name."""
    return {"gains": gains(), "speed": speed()}


def _multiples(run: Throughput, shapes: Iterable[str], mode: str) -> str:
    rates = [(run.rate(shape, mode), run.rate(shape, IN_TREE)) for shape in shapes]
    return _range([rate / base for rate, base in rates if rate is not None and base], 2)


def _cpu(run: Throughput, shapes: Iterable[str], mode: str) -> list[float]:
    """Return the CPU milliseconds a pod of kube-scheduler, and of Kindred if it runs."""
    parts = [[run.median(shape, mode, cpu_of(program)) for program in (SCHEDULER, KINDRED)] for shape in shapes]
    return [sum(part for part in each if part is not None) for each in parts]


def _memory(run: Throughput) -> float:
    """Return the megabytes of Kindred with the profile of decide, `full`, once it has read the cluster."""
    row = _row(report.read(memory.FILE), "memory", str(Size(run.nodes, run.pods_before)))
    return row.figures[memory.figure_of("full")]


def _rows(given: Report, section: str) -> Sequence[Row]:
    return next(each for each in given.sections if each.name == section).rows


def _row(given: Report, section: str, name: str) -> Row:
    return next(row for row in _rows(given, section) if row.name == name)


def _of(rows: Iterable[Row], ratio: str) -> str:
    return _range([row.ratios[ratio].value for row in rows], 3)


def _range(values: Sequence[float], digits: int) -> str:
    low, high = short(min(values), digits), short(max(values), digits)
    return low if low == high else f"{low} to {high}"
