"""Blocks between markers in Markdown pages."""

import pytest

from tests.marked_blocks import MarkerError, block_of, with_blocks, without_blocks

PAGE = """\
before
<!-- one: begin -->
old
<!-- one: end -->
between
<!-- two: begin --><!-- two: end -->
after
"""


def test_blocks_replace_the_text_between_their_markers() -> None:
    expected = """\
before
<!-- one: begin -->

new

<!-- one: end -->
between
<!-- two: begin -->

| a |
|---|

<!-- two: end -->
after
"""
    once = with_blocks(PAGE, {"one": "new", "two": "| a |\n|---|\n"})
    assert expected == once
    assert once == with_blocks(once, {"one": "new", "two": "| a |\n|---|"})
    assert block_of(once, "two") == "| a |\n|---|"


def test_a_page_without_its_blocks_has_only_the_text_around_them() -> None:
    assert without_blocks(PAGE, ["one", "two"]) == "before\n\nbetween\n\nafter\n"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("no markers", id="none"),
        pytest.param("<!-- one: end --><!-- one: begin -->", id="the-wrong-order"),
        pytest.param("<!-- one: begin --><!-- one: begin --><!-- one: end -->", id="begins-twice"),
        pytest.param("<!-- one: begin --><!-- one: end --><!-- one: end -->", id="ends-twice"),
        pytest.param("<!-- one: begin -->", id="no-end"),
    ],
)
def test_a_page_without_its_markers_is_an_error(page: str) -> None:
    expected = "<!-- one: begin --> and <!-- one: end -->, once and in this order"
    with pytest.raises(MarkerError, match=expected):
        with_blocks(page, {"one": "new"})
    with pytest.raises(MarkerError, match=expected):
        block_of(page, "one")
    with pytest.raises(MarkerError, match=expected):
        without_blocks(page, ["one"])
