"""The tables of docs/throughput.md, from the runs in docs/bench: `python -m tests.throughput.page --write`."""

import sys
from typing import Final

from tests.bench.live import say
from tests.bench.report import FOLDER, ROOT
from tests.marked_blocks import with_blocks
from tests.throughput import perf_results, results
from tests.throughput.table import tables

PAGE: Final = ROOT / "docs" / "throughput.md"
_SCHEDULER_PERF: Final = "scheduler-perf"
_RUNS: Final = ("throughput-500", "throughput-2000", "throughput-5000", "more-pods-2000", "more-pods-5000")
"""Files of docs/bench, without `.json`. Also the names of the blocks in the page."""


def blocks() -> dict[str, str]:
    """Return name -> the tables of the run of that name. Raises OSError, msgspec.DecodeError."""
    of_upstream = perf_results.table(perf_results.read(perf_results.default_path()))
    return {_SCHEDULER_PERF: of_upstream, **{name: tables(results.read(FOLDER / f"{name}.json")) for name in _RUNS}}


def main() -> None:
    """Print the page with the present tables, or write it."""
    page = with_blocks(PAGE.read_text("utf-8"), blocks())
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page, "utf-8")
    else:
        say(page)


if __name__ == "__main__":
    main()
