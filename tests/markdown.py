"""Tables in Markdown, output that a page shows, and the blocks of pages that are made from code or from measurements.

A block stands between the markers `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. A cell may have `|`."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|---" * len(headings) + "|", *lines[1:]])


def assert_rendered(output: str, rendered: str, changing: str = r"\d{4}-\d\d-\d\dT[\d:]+Z|\b\d+[smhd]\b") -> None:
    """Check an output against that of a page, which may leave lines out with a line of dots. Times and ages change."""
    output, rendered = (re.sub(changing, "0", text) for text in (output, rendered))
    retained, dots, after = rendered.partition("\n...\n")
    if dots:
        output = f"{output[: len(retained)]}{dots}{output[len(output) - len(after) :] if after else after}"
    assert output == rendered


class MarkerError(ValueError):
    """A page lacks a marker of a block, has one twice, or has them in the wrong order."""


def with_blocks(text: str, blocks: Mapping[str, str]) -> str:
    """Return a page with these blocks, given as name -> content, between their markers. Raises MarkerError."""
    for name, content in blocks.items():
        before, _, after = _parts(text, name)
        text = f"{before}{_begin(name)}\n\n{content.strip()}\n\n{_end(name)}{after}"
    return text


def _parts(text: str, name: str) -> tuple[str, str, str]:
    """Return the text before the markers, between them, and after them."""
    begin, end = _begin(name), _end(name)
    before, _, rest = text.partition(begin)
    content, found, after = rest.partition(end)
    if not found or begin in rest or end in before + after:
        raise MarkerError(f"the page needs {begin} and {end}, once and in this order")
    return before, content, after


def _begin(name: str) -> str:
    return f"<!-- {name}: begin -->"


def _end(name: str) -> str:
    return f"<!-- {name}: end -->"
