"""What `python -m tests.e2e.waiting` measured, as values and as a table."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.bench.report import Run, percentile, short
from tests.markdown import table
from tests.throughput.results import PROGRAMS


class Delays(msgspec.Struct, frozen=True):
    """Seconds until pods were bound."""

    pods: int
    median: float
    p99: float
    longest: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Delays":
        """Return the delays of some pods; at least one."""
        return cls(len(seconds), percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds))

    def __str__(self) -> str:
        return f"{short(self.median, 2)} / {short(self.p99, 2)}"


class Step(msgspec.Struct, frozen=True):
    """So many pods that fit nowhere, in one mode, while others came."""

    mode: str
    waiting: int
    fields: dict[str, Any]
    """Fields of the scheduler's configuration that were given."""
    seconds: float
    """How long it was measured."""
    attempts_per_second: float
    """Scheduling attempts, by kube-scheduler's own count."""
    cpu: dict[str, float]
    """Program -> CPU seconds a second; only programs that ran."""
    fits: Delays
    """From the creation of a pod that fits to its binding."""
    woken: Delays
    """From the change by which a waiting pod fits to its binding."""


class Waiting(Run, frozen=True):
    """A run on one cluster."""

    kubernetes: str
    nodes: int
    steps: list[Step]


def rendered(run: Waiting) -> str:
    """Return the table of a run, with what it is of."""
    programs = [name for name in PROGRAMS if any(name in step.cpu for step in run.steps)]
    given = list(dict.fromkeys(name for step in run.steps for name in step.fields))
    headings = [
        *("waiting pods", "mode", *given, "attempts a second"),
        f"CPU, ms a second: {' / '.join(programs)}",
        *("a new pod bound after, s (p50 / p99)", "a waiting pod that fits bound after, s (p50 / p99)"),
    ]
    rows = [
        [
            *(f"{step.waiting:,}", step.mode, *(str(step.fields.get(name, "")) for name in given)),
            short(step.attempts_per_second),
            " / ".join(short(1000 * step.cpu[name], 2) if name in step.cpu else "-" for name in programs),
            *(str(step.fits), str(step.woken)),
        ]
        for step in sorted(run.steps, key=lambda step: step.waiting)
    ]
    return f"{run.nodes:,} nodes, kube-scheduler {run.kubernetes}\n\n{table(headings, rows)}\n\n{run.measured()}"
