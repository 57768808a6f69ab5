"""The README's figures, from the committed measurements: `python -m tests.readme_figures --write` puts them there."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tests.bench import report
from tests.bench.live import say
from tests.bench.report import INTREE, LATEST, ROOT, Report, Row
from tests.bench.text import short
from tests.e2e.binaries import SCHEDULER
from tests.throughput.results import IN_TREE, KINDRED, Throughput, read_all
from tests.throughput.table import ANY_NODE, cpu_of

README: Final = ROOT / "README.md"
THROUGHPUT: Final = ROOT / "docs" / "throughput.md"
WITHOUT_AFFINITY: Final = ("plain", "topology-spread")
"""Shapes of docs/throughput.md that have no inter-pod affinity."""
DECIDE: Final = "decide"


def gains() -> str:
    """Return a table: multiples of in-tree's pods a second and CPU time a pod, by size of the cluster and registration.

    Each cell is the range over the shapes with inter-pod affinity.
    """
    heading = "| | decide, any node | decide | score offload | full offload | CPU a pod, in-tree | decide, any node |"
    lines = [heading, "|---|---|---|---|---|---|---|"]
    for run in sorted(read_all(), key=lambda run: run.nodes):
        shapes = [shape for shape in run.shapes if shape not in WITHOUT_AFFINITY]
        cells = [
            *(_multiples(run, shapes, mode) for mode in (ANY_NODE, DECIDE)),
            *(_offload(run.nodes, mode) for mode in ("score-offload", "full-offload")),
            *(f"{_range(_cpu(run, shapes, mode), 2)} ms" for mode in (IN_TREE, ANY_NODE)),
        ]
        lines.append(f"| {run.nodes:,} nodes, {run.pods_before:,} pods | {' | '.join(cells)} |")
    return "\n".join(lines)


def speed() -> str:
    """Return a table of five ratios of the benchmarks, with what Kindred takes to start."""
    bench, intree = report.read(LATEST), report.read(INTREE)
    plugin = _rows(intree, "intree")
    start = _row(bench, "sync", "WatchList").figures
    ratios = {
        "in-tree InterPodAffinity to Kindred, for a known class": _of(plugin, "in-tree to known class"),
        "the same for a new class": _of(plugin, "in-tree to cold class"),
        "`filter` over HTTP with 5,000 names, to an app that only reads and writes the same bytes": _of(
            [_row(bench, "http", "filter, 5,000 names")], "p50"
        ),
        "`filter` at p99 under 1,000 events a second, to none": _of(
            [_row(bench, "churn", "filter, 1,000 events a second")], "p99 to without"
        ),
        "three times the pods on the same nodes": _of(
            [_row(bench, "growth", "3 times the pods on the same nodes")], "known class"
        ),
    }
    lines = ["| 5,000 nodes, 150,000 pods | |", "|---|---|", *(f"| {name} | {text} |" for name, text in ratios.items())]
    ready, memory = start["ready, s"], start["peak RSS, MB"]
    return "\n".join([*lines, f"| from the start to ready; memory | {short(ready, 2)} s; {short(memory)} MB |"])


BLOCKS: Final[dict[str, Callable[[], str]]] = {"gains": gains, "speed": speed}


def in_text(text: str) -> str:
    """Return a text with each block between its markers. Raises ValueError if a block is not there once."""
    for name, make in BLOCKS.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found or begin in rest or end in after:
            raise ValueError(f"the text needs {begin} and {end}, once and in this order")
        text = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return text


def outside(text: str) -> str:
    """Return what a text has outside of the blocks."""
    for name in BLOCKS:
        text = re.sub(f"<!-- {name}: begin -->.*?<!-- {name}: end -->", "", text, flags=re.DOTALL)
    return text


def _multiples(run: Throughput, shapes: Iterable[str], mode: str) -> str:
    rates = [(run.rate(shape, mode), run.rate(shape, IN_TREE)) for shape in shapes]
    return _range([rate / base for rate, base in rates if rate is not None and base], 2)


def _cpu(run: Throughput, shapes: Iterable[str], mode: str) -> list[float]:
    """Return the milliseconds a pod of kube-scheduler, and of Kindred where it runs."""
    parts = [[run.median(shape, mode, cpu_of(program)) for program in (SCHEDULER, KINDRED)] for shape in shapes]
    return [sum(part for part in each if part is not None) for each in parts]


def _offload(nodes: int, mode: str) -> str:
    """Read the multiples of an older run, of which docs/throughput.md has the tables alone."""
    _, _, section = THROUGHPUT.read_text().partition("## Score offload and full offload")
    _, _, size = section.partition(f"### {nodes:,} nodes")
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in size.split("\n### ")[0].splitlines() if "|" in line
    ]
    if not rows:
        return "-"
    column = rows[0].index(mode)
    return _range([float(found[1]) for row in rows if (found := re.search(r"\(([\d.]+)\)", row[column]))], 2)


def _rows(given: Report, section: str) -> Sequence[Row]:
    return next(each for each in given.sections if each.name == section).rows


def _row(given: Report, section: str, name: str) -> Row:
    return next(row for row in _rows(given, section) if row.name == name)


def _of(rows: Iterable[Row], ratio: str) -> str:
    return _range([row.ratios[ratio].value for row in rows], 3)


def _range(values: Sequence[float], digits: int) -> str:
    low, high = short(min(values), digits), short(max(values), digits)
    return low if low == high else f"{low} to {high}"


if __name__ == "__main__":
    say(in_text(README.read_text()))
    if sys.argv[1:] == ["--write"]:
        README.write_text(in_text(README.read_text()))
