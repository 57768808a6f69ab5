"""What is printed: lines that are escaped whole, with our own colours, and documents with lines of their own."""

import pytest

from app.commands.output import Line, Styled, laid_out, paragraphs, print_document, print_progress

BAD = "a\n\x1b[7m\u202e"
SHOWN = r"a\n\x1b[7m\u202e"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (BAD, SHOWN),
        (Styled(BAD, bold=True), f"\x1b[1m{SHOWN}\x1b[0m"),
        (Styled(BAD, fg="red", dim=True, rest=BAD), f"\x1b[31m\x1b[2m{SHOWN}\x1b[0m{SHOWN}"),
    ],
    ids=["plain", "styled", "rest"],
)
def test_a_line_is_escaped_whole_and_coloured_afterwards(line: Line, expected: str) -> None:
    assert laid_out([line]) == expected


def test_paragraphs_have_an_empty_line_between_them() -> None:
    assert [*paragraphs([["a", "b"], [], ["c"], iter(())])] == ["a", "b", "", "c"]


def test_a_document_keeps_its_lines_and_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    print_document("if x:\n\ty\x9b\n", nl=False)
    assert capsys.readouterr().out == "if x:\n\ty\\x9b\n"


def test_progress_begins_with_our_own_sequence_and_has_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    print_progress("nodes\r\x1b[2J")
    assert capsys.readouterr().err == "\rnodes\\r\\x1b[2J"  # Click takes out our own without a terminal
