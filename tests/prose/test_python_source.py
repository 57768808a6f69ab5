"""Passages of Python modules."""

from tests.prose.passage import Kind
from tests.prose.python_source import passages

SOURCE = '''"""A module."""

LIMIT = 5  # nodes at most
"""An attribute's docstring."""


def function(name: str) -> None:
    """First paragraph.

    - an item
    - another

        key    a row of a table
    """
    # A comment
    # of two lines.
    value = "a-key"  # noqa: S105 -- a reason
    raise ValueError(f"the field {name} is not a number", "short one")
'''


def texts(kind: Kind) -> list[tuple[int, str]]:
    return [(each.line, " ".join(each.text.split())) for each in passages("module.py", SOURCE) if each.kind is kind]


def test_docstrings_are_passages_by_paragraph() -> None:
    assert texts(Kind.DOCSTRING) == [
        (1, "A module."),
        (4, "An attribute's docstring."),
        (8, "First paragraph."),
        (10, "an item"),
        (11, "another"),
    ]


def test_comment_lines_that_follow_one_another_are_one_passage_and_directives_none() -> None:
    assert texts(Kind.COMMENT) == [(3, "nodes at most"), (15, "A comment of two lines.")]


def test_strings_of_some_words_are_messages_and_keys_are_not() -> None:
    assert texts(Kind.MESSAGE) == [(18, "the field VALUE is not a number")]
