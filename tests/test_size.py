"""The project stays small enough to be understood: tests/size.py has the limits."""

from typing import Final

import pytest

from tests.size import Size, code_lines, sizes

SIZES: Final = sizes()
MODULE: Final = '''"""A docstring
of two lines."""

# A comment.
A = 1  # a comment beside code
"""The docstring of an attribute."""


def f(
    a: int,
) -> str:
    """A docstring."""
    return """a text
    is code"""
'''


def test_only_lines_with_code_count() -> None:
    assert code_lines(MODULE) == 6
    assert code_lines("") == 0


@pytest.mark.parametrize("size", SIZES, ids=[each.what for each in SIZES])
def test_nothing_is_larger_than_its_limit(size: Size) -> None:
    assert size.now <= size.most
