"""How much memory `kindred serve` takes by the size of the cluster: docs/bench/memory.json, for the README.

Memory hardly depends on the other work of the machine, so this needs no quiet one.
"""

import sys
from collections.abc import Iterable
from typing import Final

from tests.bench import report
from tests.bench.command import Size
from tests.bench.live import fake_api, kindred, say
from tests.bench.report import Report, Row, Section, section_text

SIZES: Final = (Size(500, 1_640), Size(2_000, 20_000), Size(5_000, 50_000), Size(15_000, 450_000))
"""The clusters of docs/benchmarks.md."""
PROFILES: Final = ("affinity", "full")
FILE: Final = report.FOLDER / "memory.json"


def figure_of(profile: str) -> str:
    """Return the name of the figure for a profile."""
    return f"{profile}: peak RSS, MB"


def measure(sizes: Iterable[Size]) -> Section:
    """Start Kindred with each profile beside each cluster, and read its peak once it is ready."""
    return Section("memory", "The memory of Kindred by the size of the cluster", [_row(size) for size in sizes])


def _row(size: Size) -> Row:
    figures: dict[str, float] = {}
    with fake_api(size.nodes, size.pods) as api:
        for profile in PROFILES:
            with kindred(api, {"KINDRED_PROFILE": profile}) as service:
                service.wait_until_ready()
                figures[figure_of(profile)] = service.memory("VmHWM")
    return Row(str(size), figures=figures)


if __name__ == "__main__":
    section = measure(SIZES)
    say(section_text(section))
    if sys.argv[1:] == ["--write"]:
        report.write(Report(*report.made_now("python -m tests.bench.memory --write"), [section]), FILE)
