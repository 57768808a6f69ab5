"""The runs in docs/bench as tables in Markdown, for docs/benchmarks.md."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tests.bench.report import FOLDER
from tests.bench.text import short
from tests.throughput import perf_results, results
from tests.throughput.perf_results import SchedulerPerf
from tests.throughput.results import CEILING, IN_TREE, Cell, Throughput

ANY_NODE: Final = "decide-any-node"
_NONE: Final = "-"
_SCHEDULER_PERF: Final = "scheduler-perf"
_RUNS: Final = ("throughput-500", "throughput-2000", "throughput-5000")
"""Files of docs/bench, without `.json`. Also the names of the blocks in the page."""
_CPU_OF: Final = "throughput-5000"
"""The run whose CPU time the page shows: there the modes differ most."""


def blocks() -> dict[str, str]:
    """Return name -> the tables of the run of that name. Raises OSError, msgspec.DecodeError."""
    of_upstream = perf_table(perf_results.read(perf_results.default_path()))
    return {_SCHEDULER_PERF: of_upstream, **{name: _of_run(name) for name in _RUNS}}


def _of_run(name: str) -> str:
    return tables(results.read(FOLDER / f"{name}.json"), with_cpu=name == _CPU_OF)


def tables(run: Throughput, *, with_cpu: bool = True) -> str:
    """Return the tables of pods per second and of CPU time, with what they are of."""
    before = f"{run.nodes:,} nodes, {run.pods_before:,} pods there before, kube-scheduler {run.kubernetes}"
    parts = [before, _rates(run), *([_cpu(run)] if with_cpu else []), *_failed(run), _measured(run)]
    return "\n\n".join(parts)


def _rates(run: Throughput) -> str:
    """Behind each figure: how many times it is that of in-tree. Last column: decide-any-node divided by the ceiling."""
    compares = ANY_NODE in run.modes and CEILING in run.modes
    headings = ["pods per second", *run.modes, *([f"{ANY_NODE} to {CEILING}"] if compares else [])]
    lines = []
    for shape in run.shapes:
        cells = [_rate(run.rate(shape, mode), run.rate(shape, IN_TREE), mode) for mode in run.modes]
        if compares:
            cells.append(_quotient(run.rate(shape, ANY_NODE), run.rate(shape, CEILING)))
        lines.append([shape, *cells])
    return _table(headings, lines)


def _rate(rate: float | None, base: float | None, mode: str) -> str:
    if rate is None:
        return _NONE
    return short(rate) if base is None or mode == IN_TREE else f"{short(rate)} ({_quotient(rate, base)})"


def _quotient(above: float | None, below: float | None) -> str:
    return f"{above / below:.2f}" if above is not None and below else _NONE


def _cpu(run: Throughput) -> str:
    def cell(shape: str, mode: str) -> str:
        values = [run.median(shape, mode, cpu_of(program)) for program in run.programs]
        return " / ".join(_NONE if value is None else short(value, 2) for value in values)

    heading = f"CPU, ms a pod: {' / '.join(run.programs)}"
    return _table([heading, *run.modes], [[shape, *(cell(shape, mode) for mode in run.modes)] for shape in run.shapes])


def cpu_of(program: str) -> Callable[[Cell], float | None]:
    """Return what reads a program's CPU time a pod, in milliseconds. None if it did not run."""
    return lambda cell: cell.cpu_ms.get(program)


def _failed(run: Throughput) -> Iterable[str]:
    """Yield a line for each shape and mode with attempts that failed: their time is in the figures."""
    for shape in run.shapes:
        for mode in run.modes:
            cells = [cell for cell in run.cells if (cell.shape, cell.mode) == (shape, mode)]
            failed = sum(cell.failed_attempts for cell in cells)
            if failed:
                yield f"{shape}, {mode}: {failed:,} attempts failed beside {sum(cell.pods for cell in cells):,} pods."


def _measured(run: Throughput) -> str:
    given = f", with {' '.join(f'{name}={value}' for name, value in run.settings.items())}" if run.settings else ""
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    return f"Measured on {run.date} by `{run.command}` at {run.commit or 'no commit'}{given}: {machine}."


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def perf_table(run: SchedulerPerf) -> str:
    """Return a table in Markdown; behind each figure how many times it is in-tree's, and what share of the ceiling."""
    cases = list(dict.fromkeys(cell.case for cell in run.cells))
    modes = list(dict.fromkeys(cell.mode for cell in run.cells))
    lines = [f"| average pods per second | {' | '.join(modes)} |", f"| --- |{' --- |' * len(modes)}"]
    for case in cases:
        bases = {"of in-tree": run.average(case, IN_TREE), "of the ceiling": run.average(case, CEILING)}
        lines.append(f"| {case} | {' | '.join(_perf_cell(run.average(case, mode), mode, bases) for mode in modes)} |")
    machine = ", ".join(f"{key} {value}" for key, value in run.machine.items())
    measured = f"scheduler_perf of Kubernetes {run.kubernetes}, measured on {run.date} by `{run.command}`"
    return "\n".join([*lines, "", f"{measured} at {run.commit or 'no commit'}: {machine}."])


def _perf_cell(value: float | None, mode: str, bases: Mapping[str, float | None]) -> str:
    if value is None:
        return _NONE
    if mode in {IN_TREE, CEILING}:
        return short(value)
    quotients = [f"{value / base:.2f} {name}" for name, base in bases.items() if base]
    return f"{short(value)} ({', '.join(quotients)})" if quotients else short(value)
