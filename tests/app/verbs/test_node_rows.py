"""Text for many nodes, made at once."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.verbs.wire_out import rows

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


@given(st.lists(TEXTS.filter(bool), min_size=1, max_size=3))
def test_bytes_objects_are_written_as_padded_columns_are(columns: list[list[bytes]]) -> None:
    count = min(map(len, columns))
    padded = [np.array(column[:count], "S12") for column in columns]
    objects = [padded[0].astype(np.object_), *padded[1:]]
    assert rows(count, b"<", *objects, b">") == rows(count, b"<", *padded, b">")


def test_one_long_name_costs_its_own_length_and_not_that_of_all() -> None:
    texts = np.array([b'"n"'] * 100_000, np.object_)
    texts[7] = b'"%s"' % (b"x" * 100_000)
    tracemalloc.start()
    try:
        text = rows(len(texts), texts, b",")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(text) == sum(map(len, texts)) + 100_000
    assert peak < 32 * 1024 * 1024
