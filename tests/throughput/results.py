"""What `python -m tests.e2e.throughput` measured, as values and as a JSON file: docs/bench/throughput-NODES.json."""

import datetime as dt
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.bench import report
from tests.e2e.binaries import API_SERVER, ETCD, SCHEDULER

IN_TREE: Final = "in-tree"
CEILING: Final = "ceiling"
KINDRED: Final = "Kindred"
PROGRAMS: Final = (SCHEDULER, KINDRED, API_SERVER, ETCD)
"""The programs whose CPU time is measured, in the order in which they are shown."""
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
    """Program -> CPU time a pod in that time, in milliseconds; only programs that ran."""
    algorithm_ms: float
    """The mean of the scheduler's own `scheduler_scheduling_algorithm_duration_seconds`, in milliseconds."""
    attempts: dict[str, int]
    """Result -> scheduling attempts: `scheduled`, `unschedulable`, `error`."""

    @property
    def failed_attempts(self) -> int:
        """Attempts after which the pod had to be tried again."""
        return sum(count for result, count in self.attempts.items() if result != SCHEDULED)


class Throughput(msgspec.Struct, frozen=True):
    """A run on one cluster. `date` is the day in UTC, `commit` what was checked out."""

    date: str
    command: str
    commit: str
    machine: dict[str, str]
    kubernetes: str
    nodes: int
    pods_before: int
    settings: dict[str, str]
    """Settings of Kindred that were given beside those of the mode."""
    cells: list[Cell]

    @classmethod
    def made_now(
        cls, command: str, *, kubernetes: str, nodes: int, pods_before: int, settings: Mapping[str, str]
    ) -> "Throughput":
        """Return a run here and now, without a cell as yet."""
        today = dt.datetime.now(dt.UTC).date().isoformat()
        made = (today, command, report.commit(), report.machine())
        return cls(*made, kubernetes, nodes, pods_before, dict(settings), [])

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

    def median(self, shape: str, mode: str, figure: Callable[[Cell], float | None]) -> float | None:
        """Return the median of a figure over the rounds. None: not measured."""
        found = [figure(cell) for cell in self.cells if (cell.shape, cell.mode) == (shape, mode)]
        values = [value for value in found if value is not None]
        return statistics.median(values) if values else None

    def rate(self, shape: str, mode: str) -> float | None:
        """Return the median of pods per second. None: not measured."""
        return self.median(shape, mode, lambda cell: cell.pods_per_second)

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
    """Read all runs that are kept, the smallest cluster first, and each with the older release first."""
    runs = [read(path) for path in report.FOLDER.glob("throughput-*.json")]
    return sorted(runs, key=lambda run: (run.nodes, run.kubernetes))
