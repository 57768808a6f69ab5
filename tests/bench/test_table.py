"""The tables of docs/benchmarks.md are those of the saved reports."""

from tests.bench import table
from tests.bench.report import Ratio, Report, Row, Section, Times

REPORT = Report(
    "2026-01-02",
    "make bench",
    "0123abcd",
    {"CPU": "one", "CPUs": "2"},
    [
        Section(
            "other",
            "Growth",
            [
                Row("small", {"known class": Times(0.5, 1234.5, 10)}, {"nodes": 5000.0}),
                Row("3 times", ratios={"known class": Ratio(3.5, 3.4, 3.6, at_most=3.3), "once": Ratio(1, 1, 1)}),
            ],
        )
    ],
)


def test_the_page_has_the_tables_of_the_saved_reports() -> None:
    text = table.PAGE.read_text()
    assert text == table.in_text(text, table.reports()), "run: python -m tests.bench.table --write"


def test_a_table_has_a_row_per_row_and_a_column_per_heading() -> None:
    expected = """\
**Growth**

| | known class, ms | nodes | once |
|---|---|---|---|
| small | 0.500 / 1,234 | 5,000 |  |
| 3 times | **3.50** (3.40 to 3.60); at most 3.3, missed |  | **1.00** |

Measured on 2026-01-02 by `make bench` at 0123abcd: CPU one, CPUs 2."""
    assert expected == table.tables([REPORT])


def test_a_long_section_is_folded() -> None:
    section = Section("cache", "Cache", [Row("pods", ratios={"verbs on to off": Ratio(1, 1, 1)})])
    expected = """\
<details><summary><b>Cache</b></summary>

| | verbs on to off |
|---|---|
| pods | **1.00** |

</details>"""
    assert table.tables([Report("", "", "", {}, [section])]).startswith(expected)
