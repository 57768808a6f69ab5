"""What `python -m tests.e2e.scheduler_perf` measured: docs/bench/scheduler-perf.json."""

import datetime as dt
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench import report

_THROUGHPUT: Final = "SchedulingThroughput"


class PerfError(ValueError):
    """A benchmark whose output has no throughput."""


class PerfCell(msgspec.Struct, frozen=True):
    """One run of a workload, `TEST/WORKLOAD`, in a mode. Pods per second are of samples of a second each."""

    case: str
    mode: str
    average: float
    perc50: float
    seconds: float
    """How long the run took, with the start of the API server and the pods that are there before."""


class SchedulerPerf(msgspec.Struct, frozen=True):
    """A run of some workloads in some modes. `date` is the day in UTC, `commit` what was checked out."""

    date: str
    command: str
    commit: str
    machine: dict[str, str]
    kubernetes: str
    cells: list[PerfCell]

    @classmethod
    def made_now(cls, command: str, kubernetes: str) -> "SchedulerPerf":
        """Return a run here and now, without a cell as yet."""
        today = dt.datetime.now(dt.UTC).date().isoformat()
        return cls(today, command, report.commit(), report.machine(), kubernetes, [])

    def average(self, case: str, mode: str) -> float | None:
        """Return the median of the averages of all runs of a workload in a mode. None: it did not run."""
        found = [cell.average for cell in self.cells if (cell.case, cell.mode) == (case, mode)]
        return statistics.median(found) if found else None

    def encode(self) -> bytes:
        """Write JSON for people and for `git diff`."""
        return report.encode_rounded(self)


def default_path(release: str = "") -> Path:
    """Return where a run is kept; of another release of Kubernetes than tests/e2e/go has, apart."""
    return report.FOLDER / f"scheduler-perf{release and f'-{release}'}.json"


def read(path: Path) -> SchedulerPerf:
    """Read a run. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=SchedulerPerf)


def throughput(content: bytes) -> Mapping[str, float]:
    """Return `Average`, `Perc50` and so on from a file of scheduler_perf with the data of one workload.

    Raises PerfError where it has none: the workload failed, or was over within a second.
    """
    items: list[dict[str, Any]] = msgspec.json.decode(content).get("dataItems") or []
    for item in items:
        if item.get("labels", {}).get("Metric") == _THROUGHPUT and item.get("data"):
            data: dict[str, float] = item["data"]
            return data
    raise PerfError(f"no {_THROUGHPUT} among {len(items)} data items")
