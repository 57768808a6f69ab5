"""Text for many nodes, made at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.node_rows import rows

TEXTS = st.lists(st.text("abc,}", max_size=12).map(str.encode), max_size=40)


def test_the_pieces_of_a_node_stand_one_behind_the_other() -> None:
    names, scores = np.array([b'"a"', b'"bb"']), np.array([b"7", b"100"])
    assert rows(2, b"<", names, b"=", scores, b">") == b'<"a"=7><"bb"=100>'


def test_of_no_node_there_is_nothing() -> None:
    assert rows(0, b"<", np.array([], "S5"), b">") == b""


@pytest.mark.parametrize("longest", [1, 2, 5, 300], ids=["no-padding", "a-little", "some", "much"])
def test_padding_is_taken_out_however_much_it_is(longest: int) -> None:
    texts = [b"x"] * 50 + [b"y" * longest]
    assert rows(51, np.array(texts), b",") == b"".join(text + b"," for text in texts)


@given(TEXTS, st.integers(0, 20))
def test_it_is_what_a_loop_would_write(texts: list[bytes], wider: int) -> None:
    names = np.array(texts, f"S{max(map(len, texts), default=0) + 1 + wider}")
    assert rows(len(texts), b"<", names, b">") == b"".join(b"<%s>" % text for text in texts)
