"""What `python -m tests.e2e.throughput --steady SECONDS` measured of one shape in one mode, and its table."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.bench.report import short
from tests.markdown import table

ASSUMED: Final = "assumed pods"
"""Pods that Kindred has decided and not yet seen bound in its watch."""
MIRRORED: Final = "pods in the mirror"
REQUESTS: Final = "requests in the queue"
WAITING: Final = "pods waiting"
"""Pods in all queues of the scheduler."""
LAG: Final = "watch lag"
"""Milliseconds from a decision to its event, the mean since the sample before."""
_SHARE: Final = 10
"""The start and the end of a time are each this part of it."""


class Sample(msgspec.Struct, frozen=True):
    """What is so at one time."""

    seconds: float
    """Since the first creation."""
    rss: dict[str, float]
    """Program -> MB."""
    figures: dict[str, float]


class Steady(msgspec.Struct, frozen=True):
    """One shape in one mode. The first seconds, until there are as many pods as stay, are left out."""

    shape: str
    mode: str
    rate: float
    """Pods a second that are created, and as many are deleted."""
    seconds: float
    pods: int
    unbound: int
    """Pods that were not bound at the end. Their time until then counts."""
    p50: float
    """Milliseconds from when a pod was to be created until the watch shows its node."""
    p99: float
    longest: float
    cpu_ms: dict[str, float]
    """Program -> CPU time for a pod that was created, in milliseconds."""
    samples: list[Sample]

    def growth(self, read: Callable[[Sample], float | None]) -> "Growth | None":
        """Return how a figure grew. None: it was not measured."""
        found = [(each.seconds, value) for each in self.samples if (value := read(each)) is not None]
        return Growth.of(found) if found else None

    def __str__(self) -> str:
        return f"p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, {self.unbound} of {self.pods} not bound"


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure at the start and at the end, its maximum, and the slope of a line through all of it."""

    start: float
    end: float
    most: float
    a_minute: float

    @classmethod
    def of(cls, found: Sequence[tuple[float, float]]) -> "Growth":
        """Sum up times in seconds and values, of which there are at least two."""
        times, values = zip(*found, strict=True)
        part = max(1, len(values) // _SHARE)
        slope = 60 * statistics.linear_regression(times, values).slope
        return cls(statistics.median(values[:part]), statistics.median(values[-part:]), max(values), slope)


def rss_of(program: str) -> Callable[[Sample], float | None]:
    """Return what reads a program's memory. None if it did not run."""
    return lambda sample: sample.rss.get(program)


def figure_of(name: str) -> Callable[[Sample], float | None]:
    """Return what reads a figure. None if there is none."""
    return lambda sample: sample.figures.get(name)


def tables(cells: Sequence[Steady], programs: Sequence[str]) -> str:
    """Return a table of times, and one of what could grow."""
    headings = ("shape, mode", "pods", "p50, ms", "p99, ms", "longest, ms", "not bound at the end")
    times = [
        (_name(each), f"{each.pods:,}", *map(short, (each.p50, each.p99, each.longest)), f"{each.unbound:,}")
        for each in cells
    ]
    readers = {
        **{f"memory of {program}, MB": rss_of(program) for program in programs},
        **{name: figure_of(name) for name in dict.fromkeys(name for each in cells for name in each.samples[0].figures)},
    }
    grown = [(_name(each), *(_growth(each.growth(read)) for read in readers.values())) for each in cells]
    return f"{table(headings, times)}\n\n{table(('start to end, in brackets a minute', *readers), grown)}"


def _name(cell: Steady) -> str:
    return f"{cell.shape}, {cell.mode}"


def _growth(growth: Growth | None) -> str:
    return "-" if growth is None else f"{short(growth.start)} to {short(growth.end)} ({growth.a_minute:+.2f})"
