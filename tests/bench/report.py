"""Results of a benchmark, as values and as a JSON file such as `docs/bench/latest.json`.

Times are milliseconds. Only ratios of one run are judged and compared. Times of two machines, or of two hours on a
shared machine, mean little.
"""

import datetime as dt
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from tests.bench.latencies import percentile

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "bench"
LATEST: Final = FOLDER / "latest.json"
INTREE: Final = FOLDER / "intree.json"
_DIGITS: Final = 4
"""Significant digits in the file. More digits would be noise, and would change lines without a reason."""


class Times(msgspec.Struct, frozen=True):
    """Milliseconds of many samples."""

    p50: float
    p99: float
    samples: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Times":
        """Return the statistics of samples in seconds. There must be a sample."""
        return cls(percentile(seconds, 0.5) * 1e3, percentile(seconds, 0.99) * 1e3, len(seconds))


class Ratio(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ratio of this run. `value` is over all rounds. `low` to `high` is the range over single rounds, the noise."""

    value: float
    low: float
    high: float
    at_most: float | None = None
    at_least: float | None = None
    aim: float | None = None
    """A value to aim at. Missing it is no error."""

    @classmethod
    def of(  # noqa: PLR0913  # the bounds
        cls,
        above: Sequence[Sequence[float]],
        below: Sequence[Sequence[float]],
        share: float = 0.5,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        aim: float | None = None,
    ) -> "Ratio":
        """Divide a percentile of samples by the percentile of other samples. Both have the same number of rounds."""
        each = [percentile(a, share) / percentile(b, share) for a, b in zip(above, below, strict=True)]
        whole = percentile(_flat(above), share) / percentile(_flat(below), share)
        # Rounds with few samples may all be on one side of the total.
        return cls(whole, min(whole, *each), max(whole, *each), at_most, at_least, aim)

    @classmethod
    def of_pairs(
        cls, above: Sequence[Sequence[float]], below: Sequence[Sequence[float]], *, at_most: float | None = None
    ) -> "Ratio":
        """Divide each sample by its neighbour on the other side, and return the median. It has the least noise."""
        quotients = [[x / y for x, y in zip(a, b, strict=True)] for a, b in zip(above, below, strict=True)]
        return cls.of(quotients, [[1.0]] * len(quotients), at_most=at_most)

    @classmethod
    def single(cls, value: float, *, at_most: float | None = None) -> "Ratio":
        """Return a ratio that was measured once."""
        return cls(value, value, value, at_most)

    @property
    def missed(self) -> bool:
        """Whether the ratio is out of its bounds."""
        return (self.at_most is not None and self.value > self.at_most) or (
            self.at_least is not None and self.value < self.at_least
        )

    @property
    def bound(self) -> str:
        """The bounds and the aim in words. Empty if there are none."""
        bounds = {"at most": self.at_most, "at least": self.at_least, "aim": self.aim}
        return ", ".join(f"{name} {value:g}" for name, value in bounds.items() if value is not None)

    def unbounded(self) -> "Ratio":
        """Return the same without bounds, for sizes to which the bounds do not apply."""
        return Ratio(self.value, self.low, self.high)


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results for one subject. The keys are headings. The key of a figure ends with its unit: "peak RSS, MB"."""

    name: str
    times: dict[str, Times] = {}
    figures: dict[str, float] = {}
    ratios: dict[str, Ratio] = {}


class Section(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results of one module of the benchmark. `name` is the module's name, `title` is for people."""

    name: str
    title: str
    rows: list[Row]
    notes: list[str] = []

    @property
    def missed(self) -> list[str]:
        """A line for each ratio that is out of its bounds."""
        return [
            f"{self.name}: {row.name}: {name}: {ratio.value:.4g}, and not {ratio.bound}"
            for row in self.rows
            for name, ratio in row.ratios.items()
            if ratio.missed
        ]

    def unbounded(self) -> "Section":
        """Return the same without bounds."""
        rows = [
            msgspec.structs.replace(row, ratios={name: ratio.unbounded() for name, ratio in row.ratios.items()})
            for row in self.rows
        ]
        return msgspec.structs.replace(self, rows=rows)


class Report(msgspec.Struct, frozen=True):
    """A run. `date` is the day in UTC, `commit` the checked-out commit, `machine` the machine of the figures."""

    date: str
    command: str
    commit: str
    machine: dict[str, str]
    sections: list[Section]

    @classmethod
    def made_now(cls, command: str, sections: Sequence[Section]) -> "Report":
        """Return a report of sections that were just measured on this machine."""
        today = dt.datetime.now(dt.UTC).date().isoformat()
        return cls(today, command, commit(), machine(), list(sections))

    def section(self, name: str) -> Section | None:
        """Return a section, if it was measured."""
        return next((section for section in self.sections if section.name == name), None)

    @property
    def missed(self) -> list[str]:
        """A line for each ratio that is out of its bounds."""
        return [line for section in self.sections for line in section.missed]

    def encode(self) -> bytes:
        """Return JSON for people and for `git diff`."""
        return encode_rounded(self)


def read(path: Path) -> Report:
    """Read a report. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def committed(place: str) -> Report:
    """Read a report as git has it; the place is COMMIT:FILE. Raises CalledProcessError, msgspec.DecodeError."""
    return msgspec.json.decode(_git("show", place), type=Report)


def write(report: Report, path: Path) -> None:
    """Write a report into a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(report.encode())


def encode_rounded(value: object) -> bytes:
    """Return a value as JSON for people and for `git diff`: indented, and floats with few digits."""
    return msgspec.json.format(msgspec.json.encode(_rounded(msgspec.to_builtins(value))), indent=2) + b"\n"


def machine() -> dict[str, str]:
    """Describe the machine of the figures, without its name and without paths."""
    kilobytes = int(_first(r"^MemTotal:\s*(\d+) kB$", Path("/proc/meminfo")) or 0)
    return {
        "CPU": _first(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo")) or platform.machine(),
        "CPUs": str(os.cpu_count()),
        "memory": f"{kilobytes / 2**20:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "msgspec", "uvloop")},
    }


def _first(pattern: str, path: Path) -> str:
    """Return the first match of a pattern in a file. Empty without a match or a file."""
    found = re.search(pattern, path.read_text(), re.MULTILINE) if path.exists() else None
    return found[1] if found else ""


def commit() -> str:
    """Return the checked-out commit, and whether files have changed. Empty outside of a repository."""
    try:
        revision = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "app", "core")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return revision + (" with changes" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603 - fixed


def _rounded(value: object) -> object:
    """Round all floats of a JSON value to significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _flat(rounds: Iterable[Sequence[float]]) -> list[float]:
    return [sample for each in rounds for sample in each]
