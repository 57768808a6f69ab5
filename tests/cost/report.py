"""The costs of attacks against their bounds, as text and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tests.cost.forked import Step

POD_BYTES: Final = 64 * 1024
BODY_BYTES: Final = 1024 * 1024
MAX_RETAINED: Final = 32 * 1024 * 1024
MAX_DELAY: Final = 0.3
"""Seconds for one response of /livez."""
MOST_P99: Final = 0.1
MAX_WATCH_DELAY: Final = 0.5
SAME: Final = "same answers"
OTHER: Final = "other answers"
_INTERNAL: Final = "internal error"
_MB: Final = 1e6


class Bound(msgspec.Struct, frozen=True):
    """The bounds of one step: CPU seconds, and peak bytes."""

    cpu: float
    peak: int


IN_GANGS: Final = "gangs: "
"""The beginning of the names of steps that are requests while gangs wait, or parts of attempts between requests."""
_MOST_IN_GANGS: Final = 0.1
_PEAK_IN_GANGS: Final = 192 * 1024 * 1024
"""The classes of unlike members fill the equivalence cache, which holds at most 128 MiB."""


def bound_of(size: int) -> Bound:
    """Return the bounds for an attack of a size. Above 1 MiB they grow with the size."""
    if size <= POD_BYTES:
        return Bound(0.3, 32 * 1024 * 1024)
    bodies = max(1.0, size / BODY_BYTES)
    return Bound(0.5 * bodies, int(64 * 1024 * 1024 * bodies))


class Live(msgspec.Struct, frozen=True):
    """Figures of a running service during an attack. Times are seconds, memory is bytes.

    Delays do not include the time in which the service waited for a CPU, because other processes cause it.
    """

    p99: float
    longest: float
    waited: float
    """Total wait for a CPU."""
    watch_delay: float
    cpu: float
    peak: int
    retained: int
    faults: Sequence[str] = ()


class Row(msgspec.Struct, frozen=True):
    """One form in one size."""

    form: str
    area: str
    way: str
    size: int
    steps: Sequence[Step] = ()
    live: Live | None = None

    def excesses(self) -> list[str]:
        """Return the figures that exceed their bounds."""
        bound = bound_of(self.size)
        found = [f"{step.name}: {step.ended}" for step in self.steps if step.ended]
        for step in self.steps:
            most = _MOST_IN_GANGS if step.name.startswith(IN_GANGS) else bound.cpu
            if step.cpu > most and not step.ended:
                found.append(f"{step.name}: {step.cpu:.2f} s of CPU")
            if step.peak > (max(bound.peak, _PEAK_IN_GANGS) if step.name.startswith(IN_GANGS) else bound.peak):
                found.append(f"{step.name}: {step.peak / _MB:.0f} MB")
            if step.reported == OTHER or _INTERNAL in step.reported:
                found.append(f"{step.name}: {step.reported}")
        if self.retained > max(MAX_RETAINED, bound.peak // 2):
            found.append(f"keeps {self.retained / _MB:.0f} MB")
        return [*found, *self._live_excesses()]

    @property
    def retained(self) -> int:
        """The largest memory that a child kept at its end."""
        most = total = 0
        for step in self.steps:
            total += step.retained
            if step.reported in {SAME, OTHER}:  # the last step of its child
                most, total = max(most, total), 0
        return most

    def _live_excesses(self) -> list[str]:
        if self.live is None:
            return []
        delays = (
            ("/livez p99", self.live.p99, MOST_P99),
            ("/livez", self.live.longest, MAX_DELAY),
            ("the watch", self.live.watch_delay, MAX_WATCH_DELAY),
        )
        found = [f"{name}: {seconds:.2f} s" for name, seconds, most in delays if seconds > most]
        return [*found, *self.live.faults]


class Report(msgspec.Struct, frozen=True):
    """All rows, with their source."""

    nodes: int
    pods: int
    profile: str
    rows: Sequence[Row]


_HEAD: Final = (
    f"{'form':32} {'bytes':>9} {'CPU s':>7} {'in':24} {'peak MB':>8} {'in':24} {'kept MB':>8} {'livez s':>15}"
)


def lines(rows: Iterable[Row]) -> Iterable[str]:
    """Yield the table line by line, as the rows arrive."""
    yield _HEAD
    for row in rows:
        yield line(row)


def line(row: Row) -> str:
    """Return a row of the table: its most expensive steps, and the excesses."""
    dear = max(row.steps, key=lambda step: step.cpu, default=None)
    wide = max(row.steps, key=lambda step: step.peak, default=None)
    live = "" if row.live is None else f"{row.live.p99:.3f} / {row.live.longest:.3f}"
    figures = f"{row.form:32} {row.size:9}"
    if dear is not None and wide is not None:
        figures += f" {dear.cpu:7.3f} {dear.name:24} {wide.peak / _MB:8.1f} {wide.name:24} {row.retained / _MB:8.1f}"
    else:
        figures += " " * 75
    excesses = row.excesses()
    return f"{figures} {live:>15}" + (f"  EXCEEDED: {'; '.join(excesses)}" if excesses else "")
