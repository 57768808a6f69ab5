"""How much there is to own: `python -m tests.size` prints it, beside the most that tests/test_size.py allows.

A code line has a token that is neither a comment nor part of a docstring. So blank lines do not count either.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from app.commands.cli import COMMANDS
from app.settings.settings import Settings

ROOT: Final = Path(__file__).parents[1]
_LAYOUT: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Size(NamedTuple):
    """One number, and the most that it may be."""

    what: str
    now: int
    most: int


def code_lines(source: str) -> int:
    """Return the number of lines of a module with code."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for each in tokens if each.type not in _LAYOUT for line in range(each.start[0], each.end[0] + 1)}
    return len(lines.difference(*_docstrings(ast.parse(source))))


def _docstrings(tree: ast.Module) -> Iterator[range]:
    """Yield the lines of each docstring, those of attributes included."""
    for parent in ast.walk(tree):
        for node in ast.iter_child_nodes(parent):
            match node:
                case ast.Expr(lineno=first, end_lineno=int(last), value=ast.Constant(value=str())):
                    yield range(first, last + 1)


def sizes() -> list[Size]:
    """Return all sizes of this checkout that have a limit."""
    product, tests = _modules("app", "core"), _modules("tests")
    web = [path.read_text("utf-8") for path in (ROOT / "app/admin/web").rglob("*") if path.is_file()]
    pages = [path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")]
    targets = re.findall(r"^[a-z0-9-]+:.*## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    return [
        Size("code lines of app and core", sum(map(code_lines, product)), 48_200),
        Size("code lines of tests", sum(map(code_lines, tests)), 100_100),
        Size("lines of app and core", _lines(product), 71_430),
        Size("lines of tests", _lines(tests), 128_720),
        Size("lines of the page of the admin port", _lines(web), 5_690),
        Size("lines of the median module", int(median(_lines([each]) for each in product)), 200),
        Size("modules in the root of app", len([*(ROOT / "app").glob("[!_]*.py")]), 0),
        Size("settings", len(Settings.model_fields), 40),
        Size("commands", len(COMMANDS), 14),
        Size("pages in docs", len(pages), 22),
        Size("lines of these pages", _lines(pages), 4_500),
        Size("targets of make", len(targets), 18),
    ]


def _modules(*roots: str) -> list[str]:
    """Return the texts of our own modules: a package of npm below tests/web can have Python, too."""
    paths = [path for root in roots for path in sorted((ROOT / root).rglob("*.py"))]
    return [path.read_text("utf-8") for path in paths if "node_modules" not in path.parts]


def _lines(texts: list[str]) -> int:
    return sum(len(each.splitlines()) for each in texts)


if __name__ == "__main__":
    for size in sizes():
        print(f"{size.now:>8,}  of at most {size.most:>8,}  {size.what}")  # noqa: T201  # a program whose output is its purpose
