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
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from math import ceil, floor, log10
from pathlib import Path
from typing import Final, NamedTuple

import msgspec


class Span(NamedTuple):
    """A period, in seconds of one clock."""

    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """Length of the period."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class Latencies:
    """The waiting time of each of many responses, as a period."""

    spans: list[Span] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the percentile of the seconds at `share` (nearest rank). There must be a response."""
        return percentile([span.seconds for span in self.spans], share)

    @property
    def longest(self) -> float:
        """The seconds of the slowest response. There must be a response."""
        return max(span.seconds for span in self.spans)

    def during(self, others: Iterable[Span]) -> "Latencies":
        """Return the responses whose wait overlaps any of the other periods. Both must be in the order of time."""
        found: list[Span] = []
        remaining = iter(others)
        other = next(remaining, None)
        for span in self.spans:
            while other is not None and other.ended <= span.began:
                other = next(remaining, None)
            if other is not None and other.began < span.ended:
                found.append(span)
        return Latencies(found)

    def __str__(self) -> str:
        if not self.spans:
            return "none"
        return (
            f"p50 {self.percentile(0.5) * 1e3:8.3f} ms   p99 {self.percentile(0.99) * 1e3:8.3f} ms   "
            f"longest {self.longest * 1e3:8.3f} ms   of {len(self.spans):,}"
        )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value such that `share` of the values are at most as large (nearest rank)."""
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs" / "bench"
LATEST: Final = FOLDER / "latest.json"
INTREE: Final = FOLDER / "intree.json"
DEVICES: Final = FOLDER / "devices.json"
"""The section `devices` alone: `python -m tests.bench --sections devices --output docs/bench/devices.json`."""
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

    @classmethod
    def over(cls, rounds: Iterable[Sequence[float]]) -> "Times":
        """Return the statistics over all rounds."""
        return cls.of(_flat(rounds))


class Rounds:
    """Seconds of samples by heading and round."""

    def __init__(self, *headings: str) -> None:
        self.of: dict[str, list[list[float]]] = {heading: [] for heading in headings}

    def begin(self) -> None:
        """Begin a round."""
        for rounds in self.of.values():
            rounds.append([])

    def add(self, heading: str, *seconds: float) -> None:
        """Add samples to the round. A heading may be new in the first one."""
        self.of.setdefault(heading, [[]])[-1].extend(seconds)

    def times(self) -> dict[str, Times]:
        """Return the times of each heading over all rounds."""
        return {heading: Times.over(rounds) for heading, rounds in self.of.items()}


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
    def single(cls, value: float, *, at_most: float | None = None, aim: float | None = None) -> "Ratio":
        """Return a ratio that was measured once."""
        return cls(value, value, value, at_most, aim=aim)

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


class Run(msgspec.Struct, frozen=True):
    """A run. `date` is the day in UTC, `commit` the checked-out commit, `machine` the machine of the figures."""

    date: str
    command: str
    commit: str
    machine: dict[str, str]

    def measured(self, given: str = "") -> str:
        """Return when, how and where that was, in a sentence. `given` follows the commit."""
        machine = ", ".join(f"{key} {value}" for key, value in self.machine.items())
        return f"Measured on {self.date} by `{self.command}` at {self.commit or 'no commit'}{given}: {machine}."


def made_now(command: str) -> tuple[str, str, str, dict[str, str]]:
    """Return the fields of a Run here and now."""
    return dt.datetime.now(dt.UTC).date().isoformat(), command, commit(), machine()


class Report(Run, frozen=True):
    """A run of the benchmark."""

    sections: list[Section]

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


def section_text(section: Section) -> str:
    """Return the title, a table for rows of the same headings, and the notes."""
    lines = [f"== {section.title}"]
    for headings, rows in groupby(section.rows, _headings):
        lines += _table([("", *headings), *map(_cells, rows)])
    return "\n".join([*lines, *(f"  {note}" for note in section.notes)])


def times_text(times: Times) -> str:
    """Return p50 / p99 in milliseconds."""
    return f"{short(times.p50)} / {short(times.p99)} ms"


def ratio_text(ratio: Ratio) -> str:
    """Return a ratio with its range over the rounds, and its bounds."""
    noise = f" [{short(ratio.low)}..{short(ratio.high)}]" if ratio.low != ratio.high else ""
    bound = f" ({ratio.bound}{': MISSED' if ratio.missed else ''})" if ratio.bound else ""
    return f"{short(ratio.value)}x{noise}{bound}"


def _headings(row: Row) -> tuple[str, ...]:
    return (*row.times, *row.figures, *row.ratios)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        *map(times_text, row.times.values()),
        *map(short, row.figures.values()),
        *map(ratio_text, row.ratios.values()),
    )


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = [
        [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
        for cells in rows
    ]
    return ["  " + "  ".join(cells).rstrip() for cells in aligned]


def short(value: float, significant: int = 3) -> str:
    """Return a number with `significant` digits, at most four behind the point, and separated thousands."""
    digits = max(0, min(4, significant - 1 - floor(log10(abs(value))))) if value else 0
    return f"{value:,.{digits}f}"
