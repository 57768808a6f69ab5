"""Drawings as SVG."""

import xml.etree.ElementTree as ET

import pytest

from tests.site.drawing import Arrow, Box, Drawing, Note
from tests.site.drawings import DRAWINGS, FOLDER

_SVG = "{http://www.w3.org/2000/svg}"


def test_boxes_arrows_and_notes_are_drawn_with_their_text() -> None:
    drawing = Drawing("A & B", 90, 60, (Box(0, 0, 40, 30, "one\n<two>"), Arrow(((40, 15), (60, 15))), Note(5, 50, "n")))
    root = ET.fromstring(drawing.svg())  # noqa: S314 -- of our own making
    assert root.findtext(f"{_SVG}title") == "A & B"
    assert [each.text for each in root.iter(f"{_SVG}text")] == ["one", "<two>", "n"]
    assert [each.get("d") for each in root.findall(f"{_SVG}path")] == ["M40 15L60 15"]


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_committed_drawing_is_the_newest(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == DRAWINGS[name].svg(), "run: python -m tests.site.drawings"


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_part_is_inside_of_the_drawing(name: str) -> None:
    drawing = DRAWINGS[name]
    for part in drawing.parts:
        if isinstance(part, Box):
            assert part.x + part.width <= drawing.width
            assert part.y + part.height <= drawing.height
