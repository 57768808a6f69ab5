"""The tables of docs/throughput.md are those of the committed runs."""

from tests.marked_blocks import with_blocks
from tests.throughput import page


def test_the_page_has_the_tables_of_the_committed_runs() -> None:
    text = page.PAGE.read_text("utf-8")
    assert with_blocks(text, page.blocks()) == text, "run: python -m tests.throughput.page --write"
