"""The plot of the runs in docs/bench, as SVG: `python -m tests.throughput.plot`. Same runs, same file."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from tests.bench.plot import plain_numbers, style
from tests.bench.report import FOLDER
from tests.bench.text import short
from tests.throughput.results import PROGRAMS, Throughput, read_all

PLOT: Final = FOLDER / "throughput.svg"
_MODES: Final = MappingProxyType(
    {
        "in-tree": "#d1605e",
        "score-offload": "#e7c04a",
        "full-offload": "#e7a04a",
        "decide": "#7ea6d8",
        "decide-any-node": "#3b6fb6",
        "ceiling": "#b3b3b3",
    }
)
_COLOURS: Final = MappingProxyType(dict(zip(PROGRAMS, ("#d1605e", "#3b6fb6", "#b3b3b3", "#dddddd"), strict=True)))
_OTHER: Final = "#4c9f70"
_GREY: Final = "#777777"
_WIDTH: Final = 0.85  # of a group of bars


def write(runs: Sequence[Throughput], path: Path) -> None:
    """Draw a line of two panels for each run: pods per second, and CPU time a pod. There must be a run."""
    with style():
        figure = Figure(figsize=(12, 3.8 * len(runs)), layout="constrained", facecolor="white")
        places = figure.subplots(len(runs), 2, squeeze=False, width_ratios=(2, 1))
        for (rates, cpu), run in zip(places, runs, strict=True):
            _rates(rates, run)
            _cpu(cpu, run)
        figure.savefig(path, metadata={"Date": None})


def _rates(axes: Axes, run: Throughput) -> None:
    """Draw the rates of each shape, and on each bar how many times it is that of the first mode."""
    modes = run.modes
    for number, mode in enumerate(modes):
        width = _WIDTH / len(modes)
        bars = {
            position + (number - (len(modes) - 1) / 2) * width: (rate, run.rate(shape, modes[0]))
            for position, shape in enumerate(run.shapes)
            if (rate := run.rate(shape, mode)) is not None
        }
        heights = [rate for rate, _ in bars.values()]
        drawn = axes.bar(list(bars), heights, width=width, color=_MODES.get(mode, _OTHER), label=mode)
        texts = [short(rate / base, 2) if number and base else "" for rate, base in bars.values()]
        axes.bar_label(drawn, texts, fontsize=6, padding=1)
    axes.set_xticks(range(len(run.shapes)), [shape.replace("-", "-\n", 1) for shape in run.shapes])
    axes.tick_params(axis="x", length=0)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color="#e5e5e5")
    cluster = f"{run.nodes:,} nodes, {run.pods_before:,} pods, {run.kubernetes}"
    axes.set_xlabel("shape of the pods")
    axes.set_ylabel("pods per second")
    axes.set_title(f"{cluster} (on the bars: times {modes[0]})")
    axes.legend(ncols=len(modes), loc="upper center", bbox_to_anchor=(0.5, -0.22), columnspacing=1.2, handlelength=1.2)


def _cpu(axes: Axes, run: Throughput) -> None:
    """Draw the CPU time a pod of each mode, by program: the mean over the shapes."""
    modes = run.modes
    lefts = [0.0] * len(modes)
    for program in run.programs:
        values = [_mean(run, mode, program) for mode in modes]
        axes.barh(range(len(modes)), values, left=lefts, color=_COLOURS[program], label=program, height=0.7)
        lefts = [left + value for left, value in zip(lefts, values, strict=True)]
    for position, total in enumerate(lefts):
        axes.text(total, position, f" {short(total, 2)}", va="center", fontsize=7.5, color=_GREY)
    axes.set_yticks(range(len(modes)), modes)
    axes.invert_yaxis()
    axes.set_xlim(right=max(lefts) * 1.12)
    axes.grid(axis="x", color="#e5e5e5")
    axes.set_xlabel("CPU a pod, ms")
    axes.set_ylabel("mode")
    axes.set_title("CPU a pod, mean of the shapes")
    axes.legend(ncols=len(run.programs), loc="upper center", bbox_to_anchor=(0.4, -0.22), columnspacing=1.0)


def _mean(run: Throughput, mode: str, program: str) -> float:
    values = [run.median(shape, mode, lambda cell: cell.cpu_ms.get(program)) for shape in run.shapes]
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else 0.0


if __name__ == "__main__":
    kept = read_all()
    if not kept:
        sys.exit(f"{FOLDER}: no throughput-*.json to draw")
    write(kept, PLOT)
