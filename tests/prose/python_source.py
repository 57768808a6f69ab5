"""Passages of Python modules: docstrings (of attributes, too), comments, and the texts that calls are given."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import Final

from tests.prose.passage import Kind, Passage

_DIRECTIVE: Final = re.compile(r"^#\s*(?:noqa|type:|!|pragma|fmt:|ruff:|mypy:|-\*-)")
_SUPPRESSION: Final = re.compile(r"\s*#\s*(?:noqa|type:).*$")
_PROSE: Final = re.compile(r"^[^{}<>\\$^|=;\n]*$")
_BLOCK: Final = 4
"""Columns of indentation, beyond that of the docstring, from which on a line is code, a diagram or a table."""
_LEAST_WORDS: Final = 4
"""A shorter string is a name, a key or a format."""


def passages(path: str, source: str) -> Iterator[Passage]:
    """Yield the passages of a module: its docstrings, then its messages, then its comments."""
    tree = ast.parse(source)
    docstrings = list(_docstrings(tree))
    for node in docstrings:
        yield from _paragraphs(path, node.lineno, Kind.DOCSTRING, str(node.value))
    known = {id(node) for node in docstrings}
    for line, text in _messages(tree, known):
        yield Passage(path, line, Kind.MESSAGE, text)
    for line, text in _comments(source):
        yield Passage(path, line, Kind.COMMENT, text)


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield every string that is a statement of its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _paragraphs(path: str, first: int, kind: Kind, text: str) -> Iterator[Passage]:
    begun, open_lines = first, list[str]()
    margin = min((len(line) - len(line.lstrip()) for line in text.splitlines()[1:] if line.strip()), default=0)
    plain = ("" if line[margin:].startswith(" " * _BLOCK) else line for line in text.splitlines())
    for number, line in enumerate([*plain, ""], first):
        item = re.match(r"\s*(?:[-*]|\d+\.)\s", line)
        if (not line.strip() or item) and open_lines:
            yield Passage(path, begun, kind, "\n".join(open_lines))
            open_lines = []
        if line.strip():
            begun = begun if open_lines else number
            open_lines.append(line[item.end() :] if item else line)


def _messages(tree: ast.Module, docstrings: set[int]) -> Iterator[tuple[int, str]]:
    """Yield the strings of some words. An f-string has VALUE where it puts a value in."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = None
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | inside:
            text = node.value
        if text is not None and isinstance(node, ast.expr) and _is_prose(text):
            yield node.lineno, text


def _is_prose(text: str) -> bool:
    words = text.split()
    lower = [word for word in words if re.fullmatch(r"[A-Za-z][a-z'-]*[.,:;)]?", word)]
    return _PROSE.match(text.strip()) is not None and len(words) >= _LEAST_WORDS and 2 * len(lower) > len(words)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment. Comment lines that follow one another are one."""
    begun, last, open_lines = 0, -1, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string):
            continue
        line, alone = token.start[0], token.line.lstrip().startswith("#")
        if open_lines and not (alone and line == last + 1):
            yield begun, "\n".join(open_lines)
            open_lines = []
        begun = begun if open_lines else line
        open_lines.append(_SUPPRESSION.sub("", token.string).lstrip("# "))
        last = line if alone else -1
    if open_lines:
        yield begun, "\n".join(open_lines)
