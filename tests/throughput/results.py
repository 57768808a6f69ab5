"""What `python -m tests.e2e.throughput` measured, as values and as a JSON file: docs/bench/throughput-NODES.json."""

import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.bench import report
from tests.bench.report import FOLDER, short
from tests.e2e.binaries import API_SERVER, ETCD, SCHEDULER
from tests.markdown import table
from tests.throughput import steady
from tests.throughput.steady import Steady

IN_TREE: Final = "in-tree"
FAST_PATH: Final = "in-tree-fast-path"
"""In-tree with the gate InterPodAffinityHostnameFastPath."""
CEILING: Final = "ceiling"
KINDRED: Final = "Kindred"
PROGRAMS: Final = (SCHEDULER, KINDRED, API_SERVER, ETCD)
"""The programs whose CPU time is measured, in the order in which they are shown."""
MACHINE: Final = "machine"
"""The name of the CPU time of all that ran meanwhile, other work included."""
SCHEDULED: Final = "scheduled"
"""The result of a scheduling attempt that chose a node (`scheduler_schedule_attempts_total`)."""


class Cell(msgspec.Struct, frozen=True):
    """One round of one shape in one mode."""

    shape: str
    mode: str
    pods: int
    pods_per_second: float
    """From the first to the last pod that was bound."""
    cpu_ms: dict[str, float]
    """Program -> CPU time a pod in that time, in milliseconds; only programs that ran, and MACHINE."""
    algorithm_ms: float
    """The mean of the scheduler's own `scheduler_scheduling_algorithm_duration_seconds`, in milliseconds."""
    attempts: dict[str, int]
    """Result -> scheduling attempts: `scheduled`, `unschedulable`, `error`."""

    @property
    def failed_attempts(self) -> int:
        """Attempts after which the pod had to be tried again."""
        return sum(count for result, count in self.attempts.items() if result != SCHEDULED)

    def __str__(self) -> str:
        return f"{self.pods_per_second:.1f} pods a second"


class Throughput(report.Run, frozen=True):
    """A run on one cluster."""

    kubernetes: str
    nodes: int
    pods_before: int
    settings: dict[str, str]
    """Settings of Kindred that were given beside those of the mode."""
    cells: list[Cell]
    steady: list[Steady] = msgspec.field(default_factory=list)

    @property
    def shapes(self) -> list[str]:
        """The shapes in the order in which they were measured."""
        return list(dict.fromkeys(cell.shape for cell in self.cells))

    @property
    def modes(self) -> list[str]:
        """The modes in the order in which they were measured first."""
        return list(dict.fromkeys(cell.mode for cell in self.cells))

    @property
    def programs(self) -> list[str]:
        """The programs whose CPU time was measured in any cell, in the order of PROGRAMS."""
        return [program for program in PROGRAMS if any(program in cell.cpu_ms for cell in self.cells)]

    def add(self, measured: Cell | Steady) -> None:
        """Keep what was measured."""
        if isinstance(measured, Cell):
            self.cells.append(measured)
        else:
            self.steady.append(measured)

    def median(self, shape: str, mode: str, figure: Callable[[Cell], float | None]) -> float | None:
        """Return the median of a figure over the rounds. None: not measured."""
        found = [figure(cell) for cell in self.cells if (cell.shape, cell.mode) == (shape, mode)]
        values = [value for value in found if value is not None]
        return statistics.median(values) if values else None

    def rate(self, shape: str, mode: str) -> float | None:
        """Return the median of pods per second. None: not measured."""
        return self.median(shape, mode, lambda cell: cell.pods_per_second)

    def best_in_tree(self, shape: str) -> tuple[str, float]:
        """Return the mode without Kindred that was fastest, and its rate. Raises ValueError if there is none."""
        rates = [(rate, mode) for mode in (IN_TREE, FAST_PATH) if (rate := self.rate(shape, mode)) is not None]
        rate, mode = max(rates)
        return mode, rate

    def encode(self) -> bytes:
        """Write JSON for people and for `git diff`."""
        return report.encode_rounded(self)


def default_path(nodes: int, release: str = "") -> Path:
    """Return where the run with so many nodes is kept; `release`: of Kubernetes, if not the one of tests/e2e/go."""
    return report.FOLDER / f"throughput-{nodes}{release and f'-{release}'}.json"


def read(path: Path) -> Throughput:
    """Read a run. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Throughput)


def read_all() -> list[Throughput]:
    """Read the runs that had the machine to themselves, the smallest cluster first."""
    return [read(report.FOLDER / f"{name}.json") for name in _ALONE]


ANY_NODE: Final = "decide-any-node"
_NONE: Final = "-"
_ALONE: Final = ("throughput-500", "throughput-2000", "throughput-5000")
"""Runs that had the machine to themselves: the README has their gains. Other work slows in-tree down most."""
_RUNS: Final = (*_ALONE, "fast-path-5000", "throughput-15000", "steady-2000")
"""Files of docs/bench, without `.json`. Also the names of the blocks in the page."""
_CPU_OF: Final = "throughput-5000"
"""The run whose CPU time the page shows: there the modes differ most."""


def blocks() -> dict[str, str]:
    """Return name -> the tables of the run of that name. Raises OSError, msgspec.DecodeError."""
    return {name: _of_run(name) for name in _RUNS}


def _of_run(name: str) -> str:
    return tables(read(FOLDER / f"{name}.json"), with_cpu=name == _CPU_OF)


def tables(run: Throughput, *, with_cpu: bool = True) -> str:
    """Return the tables of pods per second and of CPU time, with what they are of."""
    before = f"{run.nodes:,} nodes, {run.pods_before:,} pods there before, kube-scheduler {run.kubernetes}"
    parts = [before]
    if run.cells:
        parts += [_rates(run), *([_cpu(run)] if with_cpu else []), *_failed(run)]
    if run.steady:
        parts.append(steady.tables(run.steady, PROGRAMS))
    parts.append(_measured(run))
    return "\n\n".join(parts)


def _rates(run: Throughput) -> str:
    """Behind each figure: how many times it is that of in-tree. Last columns: decide-any-node divided by others."""
    others = [mode for mode in (FAST_PATH, CEILING) if ANY_NODE in run.modes and mode in run.modes]
    headings = ["pods per second", *run.modes, *(f"{ANY_NODE} to {mode}" for mode in others)]
    lines = []
    for shape in run.shapes:
        cells = [_rate(run.rate(shape, mode), run.rate(shape, IN_TREE), mode) for mode in run.modes]
        cells += [_quotient(run.rate(shape, ANY_NODE), run.rate(shape, mode)) for mode in others]
        lines.append([shape, *cells])
    return table(headings, lines)


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
    return table([heading, *run.modes], [[shape, *(cell(shape, mode) for mode in run.modes)] for shape in run.shapes])


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
    spent = [*(cell.cpu_ms for cell in run.cells), *(cell.cpu_ms for cell in run.steady)]
    shares = sorted(filter(None, map(_of_others, spent)))
    others = f" Other work had {shares[0]:.0%} to {shares[-1]:.0%} of the CPU time that was spent." if shares else ""
    return f"{run.measured(given)}{others}"


def _of_others(cpu_ms: Mapping[str, float]) -> float | None:
    """Return the share of other work in all CPU time. None: not measured."""
    whole = cpu_ms.get(MACHINE)
    return None if whole is None else 1 - sum(cpu_ms.get(program, 0.0) for program in PROGRAMS) / whole
