"""Lines, from chunks that break anywhere."""

import tracemalloc

import pytest

from app.watch.stream import LineSplitter, LineTooLongError

LINES = [b'{"a": 1}', '{"b": "\u0085\u2028\u2029"}'.encode(), b"c\r\x0b\x0c\x1c", b"", b"d"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_only_line_feeds_end_lines_wherever_chunks_break(size: int) -> None:
    text = b"".join(line + b"\n" for line in LINES)
    splitter = LineSplitter()
    found = [line for begin in range(0, len(text), size) for line in splitter.feed(text[begin : begin + size])]
    assert found == LINES
    assert not splitter.unfinished


def test_a_line_without_end_is_refused_and_lines_before_it_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.watch.stream.MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    for _ in range(3):
        assert splitter.feed(b"12345678\n12") == [b"12" * bool(_) + b"12345678"]
    splitter.feed(b"34567890")
    with pytest.raises(LineTooLongError, match="a line of more than 10 bytes"):
        splitter.feed(b"1")


def test_a_line_that_is_too_long_is_refused_though_its_end_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.watch.stream.MAX_LINE_BYTES", 10)
    splitter = LineSplitter()
    splitter.feed(b"123456")
    with pytest.raises(LineTooLongError):
        splitter.feed(b"78901\n")


def test_a_line_that_comes_byte_by_byte_takes_its_own_size_and_not_that_of_a_piece_each() -> None:
    splitter = LineSplitter()
    tracemalloc.start()
    try:
        for _ in range(200_000):
            splitter.feed(b"x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert splitter.feed(b"\n") == [b"x" * 200_000]
