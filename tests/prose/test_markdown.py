"""Passages of Markdown pages."""

from tests.prose.markdown import passages

PAGE = """---
title: front matter
---
# A heading

A paragraph
of two lines.
- An item
  that goes on.
- Another item.

| head | cell |
|---|---|
| 1 | a cell \\| with a bar |

<!-- a comment
of two lines -->
```console
$ code that is no prose
```
The end.

    code by its indentation
    of two lines
"""


def test_paragraphs_items_and_cells_are_passages() -> None:
    assert [(each.line, each.text) for each in passages("page.md", PAGE)] == [
        (6, "A paragraph\nof two lines."),
        (8, "An item\n  that goes on."),
        (10, "Another item."),
        (12, "head"),
        (12, "cell"),
        (14, "a cell \\| with a bar"),
        (21, "The end."),
    ]
