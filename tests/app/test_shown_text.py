"""What logs and terminals show of a text: everything that has a glyph, and escapes of the rest."""

import json
import unicodedata

import pytest

from app.process.logs import escaped, escaped_json


@pytest.mark.parametrize(
    "text",
    [
        "node-1.zone-a",
        "café Ünïcödé",
        "cafe\u0301",
        "узел-7",
        "节点-七",
        "ノード",
        "नोड",
        "عقدة",
        "צומת",
        "🚀 1F680",
        'it is "new" \\ old',
    ],
)
def test_names_in_any_language_stay_readable(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00\x07\x1b[31m\x7f", r"a\x00\x07\x1b[31m\x7f"),
        ("a\x80\x85\x9b", r"a\x80\x85\x9b"),
        ("a\r\n\tb\v\f", r"a\r\n\tb\x0b\x0c"),
        ("\u061c\u200e\u200f\u202a\u202e\u2066\u2069", r"\u061c\u200e\u200f\u202a\u202e\u2066\u2069"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("a\u200b\u200c\u200d\u2060\ufeffb", r"a\u200b\u200c\u200d\u2060\ufeffb"),
        ("\u3164\u115f\u034f❤\ufe0f\U000e0101\U000e0041", r"\u3164\u115f\u034f❤\ufe0f\U000e0101\U000e0041"),
        ("web\u3164", r"web\u3164"),
        ("half \ud83d", r"half \ud83d"),
    ],
    ids=["c0", "c1", "layout", "direction", "lines", "no-width", "no-glyph", "no-glyph-alone", "surrogate"],
)
def test_what_acts_on_a_terminal_or_has_no_glyph_is_an_escape(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_what_is_shown_is_printable_and_one_line_whatever_the_text() -> None:
    for number in range(0x110000):
        found = escaped(chr(number))
        assert found.isprintable()
        if found == chr(number):
            assert unicodedata.category(found)[0] != "C"
            assert found.isspace() == (found == " ")
    assert escaped("a\n\tb", "\n\t") == "a\n\tb"


def test_json_keeps_its_value_and_its_layout() -> None:
    value = {"a\u202e": ["\x9b\u2028\x7f", "🚀\U000e0101", "café", "line\nbreak"]}
    text = json.dumps(value, ensure_ascii=False, indent=2)
    found = escaped_json(text)
    assert json.loads(found) == value
    assert found.replace("\n", "").isprintable()
    assert "🚀" in found
    assert "café" in found
