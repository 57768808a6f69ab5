"""What a request says is one short line of the log; the levels are tested with the running service."""

import pytest

from app.logs import one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("NodeNames[2]: café stands at position 0 already", None, id="text-stays"),
        pytest.param("a\nb\r\nc", "a\\nb\\r\\nc", id="line-breaks"),
        pytest.param("a\x1b[31mb\x00", "a\\x1b[31mb\\x00", id="control-characters"),
        pytest.param("a\u2028b\u202ec\x85", "a\\u2028b\\u202ec\\x85", id="line-breaks-of-unicode"),
    ],
)
def test_the_words_of_a_request_are_one_line(text: str, expected: str | None) -> None:
    assert one_line(text) == (text if expected is None else expected)
    assert len(one_line(text).splitlines()) == 1


def test_the_words_of_a_request_are_cut_short() -> None:
    assert one_line("x" * 2000) == "x" * 2000
    assert one_line("x" * 10_000_000) == "x" * 2000 + "..."
