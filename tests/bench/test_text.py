"""A section as text."""

import pytest

from tests.bench.report import Ratio, Row, Section, Times
from tests.bench.text import ratio_text, section_text, short


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (0.00123, "0.0012"),
        (0.123456, "0.123"),
        (9.999, "10.00"),
        (12.3456, "12.3"),
        (1234567.0, "1,234,567"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, expected: str) -> None:
    assert expected == short(value)


def test_a_ratio_tells_its_noise_its_bounds_and_that_it_missed_them() -> None:
    assert ratio_text(Ratio(2.6, 2, 3, at_most=2.5, aim=1.5)) == "2.60x [2.00..3.00] (at most 2.5, aim 1.5: MISSED)"
    assert ratio_text(Ratio(1, 1, 1)) == "1.00x"


def test_rows_of_the_same_headings_stand_in_one_table() -> None:
    rows = [
        Row("short", {"asked": Times(1.0, 2.0, 5)}),
        Row("a longer one", {"asked": Times(10.0, 20.0, 5)}),
        Row("other", figures={"MB": 3.0}),
    ]
    expected = """\
== Title
                         asked
  short         1.00 / 2.00 ms
  a longer one  10.0 / 20.0 ms
           MB
  other  3.00
  a note"""
    assert expected == section_text(Section("name", "Title", rows, ["a note"]))
