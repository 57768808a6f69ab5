"""The tables of pages, from code and from measurements: `python -m tests.tables --write` writes all of them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests import exported_metrics, judged_page, readme_figures, settings_table, versions_table
from tests.bench import table as bench_table
from tests.marked_blocks import with_blocks
from tests.throughput import table as throughput_table

PAGES: Final[Mapping[str, Callable[[], Mapping[str, str]]]] = MappingProxyType(
    {
        "README.md": readme_figures.blocks,
        "docs/benchmarks.md": lambda: {**bench_table.blocks(), **throughput_table.blocks()},
        "docs/configuration.md": settings_table.blocks,
        "docs/judged.md": judged_page.blocks,
        "docs/metrics.md": exported_metrics.blocks,
        "docs/versions.md": versions_table.blocks,
    }
)
"""Page -> what makes its blocks, by their names."""


def written(page: str) -> str:
    """Return a page with the present tables. Raises MarkerError."""
    return with_blocks(Path(page).read_text("utf-8"), PAGES[page]())


def main(arguments: Sequence[str]) -> int:
    """Name the pages that differ, or write them. Return 1 if a page differs and is not written."""
    writes = list(arguments) == ["--write"]
    status = 0
    for page in PAGES:
        text = written(page)
        if text != Path(page).read_text("utf-8"):
            sys.stdout.write(f"{page}: {'written' if writes else 'differs'}\n")
            if writes:
                Path(page).write_text(text, "utf-8")
            else:
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
