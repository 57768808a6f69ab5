"""The plot of a report, as SVG, which is the same for the same report.

`python -m tests.bench.plot` draws the plot of the latest report again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from tests.bench import report
from tests.bench.report import INTREE, LATEST, Report, Section, Times
from tests.bench.text import short

_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "plain": "no affinity",
        "anti_self_host": "anti-affinity\nby host",
        "aff_zone_prefanti_host": "affinity by zone,\nanti by host",
        "pref_mix": "four preferred\nterms",
    }
)
_IN_TREE: Final = "in-tree (a run of its own)"
_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "naive": "#b3b3b3",
        _IN_TREE: "#d1605e",
        "new class": "#e7a04a",
        "known class": "#3b6fb6",
        "both verbs": "#4c9f70",
        "floor": "#b3b3b3",
        "Kindred": "#3b6fb6",
    }
)
_GREY: Final = "#777777"
_MILLISECONDS: Final = "ms"
_BAR_TEXT: Final = 7.5
_ROOM: Final = 1.8  # factor by which a logarithmic axis exceeds its highest bar, for the text on the bar


def write(given: Report, path: Path) -> None:
    """Draw a panel for each section of a report. The in-tree plugin's times are drawn if they have a report."""
    in_tree = report.read(INTREE).section("intree") if INTREE.exists() else None
    with style():
        _figure(given, in_tree).savefig(path, metadata={"Date": None})


@contextmanager
def style() -> Iterator[None]:
    """Draw everything in the block in the style of all plots of docs/bench."""
    with mpl.rc_context(
        {
            "svg.hashsalt": "kindred",  # ids are the same in each run
            "svg.fonttype": "path",  # a reader's fonts have other widths
            "font.family": "DejaVu Sans",  # comes with matplotlib
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.titlesize": 10.5,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "legend.frameon": False,
            "legend.fontsize": 8.5,
        }
    ):
        yield


def _figure(given: Report, in_tree: Section | None) -> Figure:
    """Make the figure. Its background is white, so that it is readable on dark pages, too."""
    found = [(panel, section) for name, panel in _PANELS.items() if (section := given.section(name)) is not None]
    lines = (len(found) + 1) // 2
    figure = Figure(figsize=(10, 3.9 * lines), layout="constrained", facecolor="white")
    places = figure.subplots(lines, 2, squeeze=False).flat if found else ()
    for axes, each in zip_longest(places, found):
        if each is None:
            axes.set_axis_off()
        else:
            panel, section = each
            panel(axes, section, in_tree)
    return figure


def _engine(axes: Axes, section: Section, in_tree: Section | None) -> None:
    others = {row.name: row.times for row in in_tree.rows} if in_tree is not None else {}
    bars: dict[str, list[float | None]] = {"naive": [], _IN_TREE: [], "new class": [], "known class": []}
    for row in section.rows:
        found = {**row.times, _IN_TREE: others.get(row.name, {}).get("in-tree")}
        for name, values in bars.items():
            times = found.get(name)
            values.append(times.p50 if times is not None else None)
    _grouped(axes, [_KINDS.get(row.name, row.name) for row in section.rows], bars)
    _logarithmic(axes, "kind of pod")
    axes.set_title("One decision: filter and score all nodes (p50)")
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.2), columnspacing=1.2, handlelength=1.2)


def _http(axes: Axes, section: Section, _: Section | None) -> None:
    rows = [row for row in section.rows if "p99" in row.ratios and "cache off" not in row.name]  # without CPU
    labels = [row.name.replace(", ", "\n", 1).replace(" whole nodes", "\nwhole nodes") for row in rows]
    sides = ("floor", "Kindred")
    _grouped(axes, labels, {side: [row.times[side].p50 for row in rows] for side in sides}, text=False)
    for position, row in enumerate(rows):
        _whiskers(axes, position, [row.times[side] for side in sides])
        highest = max(row.times[side].p99 for side in sides)
        axes.text(position, highest * 1.15, f"{row.ratios['p50'].value:.1f}x", ha="center", fontweight="bold")
    _logarithmic(axes, "verb and request")
    axes.set_title("HTTP against a bare ASGI app (p50, tick p99)")
    axes.tick_params(axis="x", labelsize=7.5)
    axes.legend(ncols=2, loc="upper left")


def _growth(axes: Axes, section: Section, _: Section | None) -> None:
    *line, crowded = [row for row in section.rows if row.times]  # the last row has the nodes of the second one
    usual = line[1]
    nodes = [row.figures["nodes"] for row in line]
    for name in ("new class", "both verbs", "known class"):
        axes.plot(nodes, [row.times[name].p50 for row in line], marker="o", color=_COLOURS[name], label=name)
        _hollow(axes, [crowded.figures["nodes"]], [crowded.times[name].p50], _COLOURS[name])
    known = usual.times["known class"].p50 / usual.figures["nodes"]
    axes.plot(nodes, [known * count for count in nodes], ":", color=_GREY, label="linear")
    _hollow(axes, [], [], _GREY, f"{crowded.figures['pods'] / usual.figures['pods']:g} times the pods")
    axes.set_xscale("log")
    axes.set_xticks(nodes, [f"{count:,.0f}" for count in nodes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    _logarithmic(axes, f"nodes, with {usual.figures['pods'] / usual.figures['nodes']:g} pods each")
    axes.set_title("One decision as the cluster grows (p50)")
    axes.legend(loc="lower right")


def _hollow(axes: Axes, x: Sequence[float], y: Sequence[float], colour: str, label: str | None = None) -> None:
    axes.plot(x, y, "D", color=colour, markerfacecolor="none", markersize=8, label=label)


def _churn(axes: Axes, section: Section, _: Section | None) -> None:
    quiet, churning = section.rows[:2]
    sides = {"no events": quiet, churning.name.removeprefix("filter, "): churning}
    bars = {name: [row.times["answers"].p50, row.times["answers"].p99] for name, row in sides.items()}
    _grouped(axes, ["p50", "p99"], bars)
    highest = max(max(values) for values in bars.values())
    for position, ratio in enumerate(churning.ratios.values()):
        bound = f" (at most {ratio.at_most:g})" if ratio.at_most is not None else ""
        axes.text(position, highest * 1.15, f"{ratio.value:.2f}x{bound}", ha="center", fontweight="bold")
    axes.set_ylim(0, highest * 1.3)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_xlabel("percentile")
    axes.set_ylabel(_MILLISECONDS)
    axes.set_title("filter by HTTP while pods change")
    axes.legend(loc="center left")


_PANELS: Final[Mapping[str, Callable[[Axes, Section, Section | None], None]]] = MappingProxyType(
    {"engine": _engine, "http": _http, "growth": _growth, "churn": _churn}
)


def _grouped(
    axes: Axes, labels: Sequence[str], bars: Mapping[str, Sequence[float | None]], *, text: bool = True
) -> None:
    """Draw a group of bars for each label. None is no bar. A name without bars is left out."""
    shown = {name: values for name, values in bars.items() if any(value is not None for value in values)}
    for number, (name, values) in enumerate(shown.items()):
        there = {_place(position, number, len(shown)): value for position, value in enumerate(values) if value}
        colour = _COLOURS.get(name, _COLOURS["floor" if number == 0 else "Kindred"])
        drawn = axes.bar(list(there), list(there.values()), width=0.8 / len(shown), color=colour, label=name)
        if text:
            axes.bar_label(drawn, [short(value, 2) for value in there.values()], fontsize=_BAR_TEXT, padding=1)
    axes.set_xticks(range(len(labels)), labels)
    axes.tick_params(axis="x", length=0)


def _whiskers(axes: Axes, position: int, times: Sequence[Times]) -> None:
    """Mark the p99 above each bar of a group."""
    for number, each in enumerate(times):
        place = _place(position, number, len(times))
        axes.plot([place, place], [each.p50, each.p99], color=_GREY, linewidth=1)
        axes.plot([place], [each.p99], "_", color=_GREY, markersize=8)


def _place(position: int, number: int, count: int) -> float:
    return position + (number - (count - 1) / 2) * 0.8 / count


def plain_numbers() -> FuncFormatter:
    """Write the numbers of a logarithmic axis without powers of ten."""
    return FuncFormatter(lambda value, _: f"{value:g}")


def _logarithmic(axes: Axes, x: str) -> None:
    """Name both axes, and make the time axis logarithmic."""
    axes.set_xlabel(x)
    axes.set_ylabel(_MILLISECONDS)
    axes.set_yscale("log")
    axes.set_ylim(top=axes.get_ylim()[1] * _ROOM)
    axes.yaxis.set_major_formatter(plain_numbers())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", color="#e5e5e5")


if __name__ == "__main__":
    write(report.read(LATEST), LATEST.with_suffix(".svg"))
