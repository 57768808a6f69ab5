"""Text in the columns that there are: wrapping, tables, and what is left out of names."""

import io
import sys
from collections.abc import Iterable

import pytest
from click import unstyle

from app.commands.output import (
    WIDTH,
    Line,
    Side,
    counted,
    laid_out,
    line_width,
    prose_width,
    shortened,
    table,
    wrapped,
    wrapped_table,
)


def texts(lines: Iterable[Line]) -> list[str]:
    return unstyle(laid_out(lines)).splitlines()


class Terminal(io.StringIO):
    """Standard output where a person sits."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("columns", "line", "prose"), [("60", 80, 80), ("80", 80, 80), ("90", 90, 90), ("200", 200, 100)]
)
def test_a_wider_terminal_has_wider_lines_but_sentences_stay_readable(
    monkeypatch: pytest.MonkeyPatch, columns: str, line: int, prose: int
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    assert (line_width(), prose_width()) == (line, prose)


def test_a_pipe_has_80_columns_whatever_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "200")
    assert (line_width(), prose_width()) == (80, 80)


def test_words_are_wrapped_below_one_another() -> None:
    lines = wrapped("word " * 40, 4, "- ")
    assert lines[0].startswith("- word")
    assert lines[1].startswith("    word")
    assert max(map(len, lines)) <= WIDTH


def test_a_word_that_is_too_long_is_broken_and_whole() -> None:
    lines = wrapped("x" * 253, 4, "")
    assert max(map(len, lines)) == WIDTH
    assert "".join(lines).replace(" ", "") == "x" * 253


def test_no_text_is_the_beginning_alone() -> None:
    assert wrapped("", 10, "Mirror".ljust(10)) == ["Mirror"]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    lines = table((("NODE", "left"), ("SCORE", "right")), [("n1", 7), ("node-2", 100)])
    assert texts(lines) == ["  NODE    SCORE", "  n1          7", "  node-2    100"]


def test_the_widest_columns_give_way_until_the_table_fits() -> None:
    heads: list[tuple[str, Side]] = [("A", "left"), ("B", "left"), ("C", "right")]
    lines = texts(table(heads, [("a" * 300, "b" * 60, 12345)]))
    assert [len(line) for line in lines[1:]] == [WIDTH]
    a, b, c = lines[1].split()
    assert (len(a), len(b), c) == (34, 35, "12345")


def test_wide_tables_shorten_nothing() -> None:
    cells = ("a" * 300, "word " * 60)
    assert texts(table((("A", "left"), ("B", "left")), [cells], wide=True))[1].split() == "  ".join(cells).split()
    assert len(wrapped_table(("A", "B"), [cells], wide=True)) == 2


def test_sentences_go_on_below_in_their_column() -> None:
    rows = [("n1", "as short as it can be", "word " * 30), ("n2", "", "fits")]
    lines = texts(wrapped_table(("NODE", "THEN", "NOW"), rows))
    assert lines[0] == "  NODE  THEN                   NOW"
    assert lines[1].startswith("  n1    as short as it can be  word word")
    assert {line[:31] for line in lines[2:-1]} == {" " * 31}
    assert lines[-1] == "  n2                           fits"
    assert max(map(len, lines)) <= WIDTH
    assert " ".join(lines).count("word") == 30


def test_sentences_give_way_to_names() -> None:
    name = "a-name-of-forty-five-characters-that-is-whole"
    lines = texts(wrapped_table(("NODE", "NOW"), [(name, "word " * 9)]))
    assert [line.strip() for line in lines[1:]] == [f"{name}  {'word ' * 6}".strip(), "word word word"]


def test_names_that_are_too_wide_for_a_column_are_whole_all_the_same() -> None:
    head, *lines = texts(wrapped_table(("NODE", "NOW"), [("n" * 253, "fits\x1b")]))
    assert (head[:6], max(map(len, lines))) == ("  NODE", WIDTH)
    assert ("".join(lines).count("n"), lines[0][-8:]) == (253, "fits\\x1b")


@pytest.mark.parametrize(
    ("width", "expected"), [(9, "node-1234"), (8, "nod...34"), (5, "n...4"), (4, "n..."), (3, "..."), (1, ".")]
)
def test_names_lose_their_middle(width: int, expected: str) -> None:
    assert shortened("node-1234", width) == expected


def test_escapes_count_for_the_width() -> None:
    assert wrapped("\x1b" * 60, 0) == ["\\x1b" * 20] * 3
    assert texts(table((("N", "left"),), [("\n" * 200,)]))[1][-4:] == "\\n\\n"


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0 misses"), (1, "1 miss"), (1234, "1,234 misses")]
)  # fmt: skip
def test_numbers_agree_with_their_names(number: int, expected: str) -> None:
    assert counted(number, "miss", "misses") == expected
