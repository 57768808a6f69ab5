"""Passages of Markdown pages. Code blocks, headings, HTML and front matter have none; each table cell is a passage."""

import re
from collections.abc import Iterator
from typing import Final

from tests.prose.passage import Kind, Passage

_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_SKIPPED: Final = re.compile(r"^\s*(?:#{1,6}\s|<|\{\{|\||={3,}|-{3,}|\+\+\+|\[[^\]]+\]:\s)")
_ITEM: Final = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_ROW: Final = re.compile(r"^\s*\|(.*)\|\s*$")
_RULE: Final = re.compile(r"^[\s|:-]+$")
_PLAIN: Final = re.compile(r"[A-Za-z]{2,}")


def passages(path: str, text: str) -> Iterator[Passage]:
    """Yield the passages of a page, in their order."""
    for line, paragraph in _paragraphs(_without_blocks(text)):
        if _PLAIN.search(paragraph):
            yield Passage(path, line, Kind.DOCS, paragraph)


def _without_blocks(text: str) -> list[str]:
    """Return the lines, with those of code blocks, comments and front matter left empty."""
    hidden = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    lines = hidden.splitlines()
    if lines and lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1) + 1
        lines[:end] = [""] * end
    fenced, indented = False, False
    for number, line in enumerate(lines):
        after_space = number == 0 or not lines[number - 1].strip()
        begins = after_space and not _in_item(lines, number)
        indented = line.startswith("    ") and not _ITEM.match(line) and (indented or begins)
        if indented:
            lines[number] = ""
            continue
        fence = _FENCE.match(line) is not None
        if fence or fenced:
            lines[number] = ""
        fenced ^= fence
    return lines


def _in_item(lines: list[str], number: int) -> bool:
    """Return whether the last line of text before a line is indented or an item, to which the line then belongs."""
    before = next((line for line in reversed(lines[:number]) if line.strip()), "")
    return before.startswith(" ") or _ITEM.match(before) is not None


def _paragraphs(lines: list[str]) -> Iterator[tuple[int, str]]:
    begun, open_lines = 0, list[str]()
    for number, line in enumerate([*lines, ""], 1):
        row, item = _ROW.match(line), _ITEM.match(line)
        ends = not line.strip() or row is not None or item is not None or _SKIPPED.match(line) is not None
        if ends and open_lines:
            yield begun, "\n".join(open_lines)
            open_lines = []
        if row is not None and not _RULE.match(line):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", row[1]))
        elif item is not None:
            begun, open_lines = number, [line[item.end() :]]
        elif not ends:
            begun = begun if open_lines else number
            open_lines.append(line)
