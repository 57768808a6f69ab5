"""What is made from code or from measurements: `python -m tests.tables --write` writes all of it.

The tables of pages, and the schemas of the settings.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec

from app.process.json_text import indented
from app.settings.configuration import configuration_schema
from app.settings.groups import GROUPS
from app.settings.settings import Settings, key_of, variable_of
from app.simulation.responses import CapacityResponse, DrainResponse, LossResponse, RemovalResponse
from core.releases.differences import DIFFERENCES, Difference
from core.releases.release import GATES, RELEASES, Stage, gates_of
from tests import exported_metrics
from tests.bench import memory, report
from tests.bench.command import Size
from tests.bench.report import DEVICES, INTREE, LATEST, Ratio, Report, Row, Section, Times, short
from tests.e2e.binaries import SCHEDULER
from tests.manifests import chart_schema
from tests.markdown import table, with_blocks
from tests.throughput import results as throughput
from tests.throughput.modes import LISTED_NODES
from tests.throughput.results import ANY_NODE, KINDRED, Throughput
from tests.upstream import judges

WITHOUT_AFFINITY: Final = ("plain", "topology-spread")
"""Measured shapes without inter-pod affinity."""
_RATIOS: Final = (
    (
        "in-tree InterPodAffinity / Kindred, for a pod that is like an earlier one",
        ("intree", "", "in-tree to known class"),
    ),
    ("the same for the first pod of its kind", ("intree", "", "in-tree to cold class")),
    (
        "`filter` over HTTP with 5,000 node names / an app that only reads and writes the same bytes",
        ("http", "filter, 5,000 names", "p50"),
    ),
    (
        "`filter` at p99 beside 1,000 watch events a second / beside none",
        ("churn", "filter, 1,000 events a second", "p99 to without"),
    ),
    (
        "a decision with three times the pods on the same nodes / without them",
        ("growth", "3 times the pods on the same nodes", "known class"),
    ),
)
"""What the README says of a ratio -> its section, its row (all if empty), and its name."""


def gains() -> str:
    """Return a table by size of the cluster: pods a second in multiples of the fastest in-tree, CPU and memory.

    Each cell but the memory is the range over the shapes with inter-pod affinity.
    """
    headings = ("cluster", "gain: decide", "decide, listed nodes", "score offload", "full offload")
    costs = ("cost: CPU a pod, in-tree", "decide", "memory of Kindred")
    rows = []
    for run in throughput.read_all():
        shapes = [shape for shape in run.shapes if shape not in WITHOUT_AFFINITY]
        cells = [
            f"{run.nodes:,} nodes, {run.pods_before:,} pods, {run.kubernetes}",
            *(_multiples(run, shapes, mode) for mode in (ANY_NODE, LISTED_NODES, "score-offload", "full-offload")),
            f"{_range([_cpu(run, shape, run.best_in_tree(shape)[0]) for shape in shapes], 2)} ms",
            f"{_range([_cpu(run, shape, ANY_NODE) for shape in shapes], 2)} ms",
            f"{short(_memory(run), 3)} MB",
        ]
        rows.append(cells)
    return table((*headings, *costs), rows)


def speed() -> str:
    """Return a table of five ratios of the benchmarks, with the cost of Kindred's start."""
    bench, intree = report.read(LATEST), report.read(INTREE)
    rows = []
    for text, (section, name, ratio) in _RATIOS:
        found = _rows(intree if section == "intree" else bench, section, name)
        rows.append((text, _range([row.ratios[ratio].value for row in found], 3)))
    (start,) = _rows(bench, "sync", "WatchList")
    ready, peak = short(start.figures["ready, s"], 2), short(start.figures["peak RSS, MB"])
    rows.append(("until Kindred is ready, and its memory then", f"{ready} s, {peak} MB"))
    return table(("times, with 5,000 nodes and 150,000 pods", "ratio"), rows)


def _multiples(run: Throughput, shapes: Iterable[str], mode: str) -> str:
    """Return the range of the multiples of the fastest in-tree, a dash if the mode was not measured."""
    rates = [(run.rate(shape, mode), run.best_in_tree(shape)[1]) for shape in shapes]
    multiples = [rate / base for rate, base in rates if rate is not None]
    return _range(multiples, 2) if multiples else "-"


def _cpu(run: Throughput, shape: str, mode: str) -> float:
    """Return the CPU milliseconds a pod of kube-scheduler, and of Kindred if it runs."""
    parts = [run.median(shape, mode, throughput.cpu_of(each)) for each in (SCHEDULER, KINDRED)]
    return sum(part for part in parts if part is not None)


def _memory(run: Throughput) -> float:
    """Return the megabytes of Kindred with the profile of decide, `full`, once it has read the cluster."""
    (row,) = _rows(report.read(memory.FILE), "memory", str(Size(run.nodes, run.pods_before)))
    return row.figures[memory.figure_of("full")]


def _rows(given: Report, section: str, name: str) -> list[Row]:
    found = given.section(section)
    return [row for row in found.rows if name in {"", row.name}] if found is not None else []


def _range(values: Sequence[float], digits: int) -> str:
    low, high = short(min(values), digits), short(max(values), digits)
    return low if low == high else f"{low} to {high}"


_MAX_LISTED: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "engine": ("naive", "new class", "known class", "both verbs", "naive to new class", "naive to known class"),
        "http": ("Kindred", "floor", "p50", "CPU"),
        "churn": ("answers", "an event's delay", "p50 to without", "p99 to without", "GC pauses, of 5%"),
        "growth": ("new class", "known class", "both verbs"),
        "sync": (
            *("/livez", "ready, s", "peak RSS, MB", "ready, of 15 s", "peak, of 700 MB"),
            *("ready, of 3 s", "CPU, of 3 s", "peak, of 260 MB", "ready, of 10 s", "peak, of 600 MB"),
        ),
        "intree": ("in-tree", "cold class", "known class", "in-tree to cold class", "in-tree to known class"),
    }
)
"""Section -> the headings that the page shows. Of other sections the page shows all."""
_LEFT_OUT: Final = ("events", "gangs", "simulation", "placing", "cache", "explain", "beside", "busy")
"""Sections that are only in the JSON: a developer compares them from run to run."""


def benchmarks() -> str:
    """Return a table for each section that the page shows, and when and on what each report was measured."""
    reports = [report.read(path) for path in (LATEST, INTREE)]
    if reports[0].section("devices") is None:  # a run without Go, or before there was the section
        reports.append(report.read(DEVICES))
    return "\n\n".join(part for given in reports for part in (*map(_section, _rendered(given)), given.measured()))


def _rendered(given: Report) -> Iterable[Section]:
    return (section for section in given.sections if section.name not in _LEFT_OUT)


def _section(section: Section) -> str:
    headings = _headings(section)
    rows = [
        [row.name, *(cells.get(heading, "") for heading in headings)]
        for row in section.rows
        if not (cells := _cells(row)).keys().isdisjoint(headings)
    ]
    return f"**{section.title}**\n\n{table(['', *(_heading(each, section) for each in headings)], rows)}"


def _headings(section: Section) -> list[str]:
    found = dict.fromkeys(heading for row in section.rows for heading in _cells(row))
    rendered = _MAX_LISTED.get(section.name)
    return list(found) if rendered is None else [heading for heading in rendered if heading in found]


def _heading(heading: str, section: Section) -> str:
    """Return a heading with the unit of times. Figures have their unit in the heading, and ratios have none."""
    return f"{heading}, ms" if any(heading in row.times for row in section.rows) else heading


def _cells(row: Row) -> dict[str, str]:
    return {
        **{heading: _times(times) for heading, times in row.times.items()},
        **{heading: short(figure) for heading, figure in row.figures.items()},
        **{heading: _ratio(ratio) for heading, ratio in row.ratios.items()},
    }


def _times(times: Times) -> str:
    return f"{short(times.p50)} / {short(times.p99)}"


def _ratio(ratio: Ratio) -> str:
    value = f"**{short(ratio.value)}**"
    if ratio.low != ratio.high:
        value += f" ({short(ratio.low)} to {short(ratio.high)})"
    return f"{value}; {ratio.bound}{', missed' if ratio.missed else ''}" if ratio.bound else value


def settings() -> str:
    """Return the settings: of each group its title, its reason, and a table with a line for each setting."""
    schema = Settings.model_json_schema()["properties"]
    parts = []
    for group in GROUPS:
        title, _, reason = inspect.cleandoc(group.__doc__ or "").partition("\n\n")
        rows = [
            (
                f"`{key_of(name)}`<br>`{variable_of(name)}`",
                _default(field.get_default()),
                _allowed(schema[name]),
                (field.description or "").replace("\n", " "),
            )
            for name, field in group.model_fields.items()
        ]
        columns = ("key, variable", "default", "allowed", "meaning")
        parts += [f"### {title.removesuffix('.')}", reason, table(columns, rows)]
    return "\n\n".join(parts)


def _default(value: object) -> str:
    if value is None or value in ("", (), {}):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_FORMS: Final[dict[str, str]] = {"array": "names, by commas", "object": "JSON", "boolean": "`true`, `false`"}


def _allowed(schema: dict[str, Any]) -> str:
    for choice in schema.get("anyOf", ()):  # X or none
        if choice.get("type") != "null":
            schema = choice
    match schema:
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values if isinstance(value, str))
        case {"additionalProperties": _}:
            return "`NAME=true` or `NAME=false`, by commas"
        case {"type": [str(kind), *_]} | {"type": "boolean" as kind}:
            return _FORMS[kind]
        case {"type": "integer" | "number"}:
            lowest, highest = schema.get("minimum"), schema.get("maximum")
            return f"{lowest} to {highest}" if highest is not None else f"at least {lowest}"
    return "a file" if schema.get("format") == "path" else "text"


def differences() -> str:
    """Return the table of differences between releases, with default feature gates."""
    rows = [
        (row.where, row.what, "<br>".join(_responses(row)), f"`{row.gate}`" if row.gate else "", row.source)
        for row in DIFFERENCES
    ]
    return table(("plugin", "what", "answer, by default since", "feature gate", "source"), rows)


def _responses(row: Difference) -> Iterator[str]:
    """Yield each behaviour with its first release. If all releases agree, only the gate matters."""
    before = ""
    for release in RELEASES:
        response = row.at(release, gates_of(release))
        if response.text != before:
            yield f"{release}: {response.text}"
        before = response.text


def gates() -> str:
    """Return the table of feature gates."""
    rows = [(f"`{name}`", *(_stage(stages.get(release)) for release in RELEASES)) for name, stages in GATES.items()]
    return table(("feature gate", *map(str, RELEASES)), rows)


def _stage(stage: Stage | None) -> str:
    if stage is None:
        return ""
    return ("on" if stage.default else "off") + (", locked" if stage.locked else "")


PAGES: Final[Mapping[str, Callable[[], Mapping[str, str]]]] = MappingProxyType(
    {
        "README.md": lambda: {"gains": gains(), "speed": speed()},
        "docs/benchmarks.md": lambda: {"bench table": benchmarks(), **throughput.blocks()},
        "docs/configuration.md": lambda: {"settings": settings()},
        "docs/judged.md": judges.blocks,
        "docs/metrics.md": exported_metrics.blocks,
        "docs/versions.md": lambda: {"differences": differences(), "gates": gates()},
    }
)
"""Page -> what makes its blocks, by their names."""


def responses_schema() -> Mapping[str, Any]:
    """Return the JSON schema of the answers to what would happen."""
    references, definitions = msgspec.json.schema_components(
        RESPONSES.values(), schema_hook=lambda _object: {"description": "any value"}, ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What kindred capacity, drain, loss and removal print with -o json",
        "oneOf": [{"title": name, **reference} for name, reference in zip(RESPONSES, references, strict=True)],
        "$defs": definitions,
    }


RESPONSES: Final[Mapping[str, type]] = {
    "capacity": CapacityResponse,
    "drain": DrainResponse,
    "loss": LossResponse,
    "removal": RemovalResponse,
}
"""Command -> what it prints."""
SCHEMAS: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "docs/schemas/kindredconfiguration-v1alpha1.json": lambda: f"{indented(configuration_schema())}\n",
        "docs/schemas/what-if.json": lambda: f"{indented(responses_schema())}\n",
        "manifests/chart/values.schema.json": chart_schema.schema_text,
    }
)
"""File -> what makes its text."""
FILES: Final = (*PAGES, *SCHEMAS)


def written(file: str) -> str:
    """Return the present text of a schema, or a page with the present tables. Raises MarkerError."""
    return SCHEMAS[file]() if file in SCHEMAS else with_blocks(Path(file).read_text("utf-8"), PAGES[file]())


def main(arguments: Sequence[str]) -> int:
    """Name the files that differ, or write them. Return 1 if a file differs and is not written."""
    writes = list(arguments) == ["--write"]
    status = 0
    for file in FILES:
        text = written(file)
        if text != Path(file).read_text("utf-8"):
            sys.stdout.write(f"{file}: {'written' if writes else 'differs'}\n")
            if writes:
                Path(file).write_text(text, "utf-8")
            else:
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
