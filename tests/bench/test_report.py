"""Reports: the computation of ratios and times, the bounds, and the file."""

import platform
from pathlib import Path

import pytest

from tests.bench import report
from tests.bench.report import Ratio, Report, Row, Section, Times


def made_up(ratio: Ratio, name: str = "http") -> Report:
    row = Row("filter", {"Kindred": Times(1.23456, 2.0, 100)}, {"CPU, ms": 1234.56}, {"p50": ratio})
    return Report("2026-01-02", "make bench", "0123abcd", {"CPU": "one"}, [Section(name, "HTTP", [row], ["a note"])])


def test_times_are_milliseconds_of_samples_in_seconds() -> None:
    assert Times(2.0, 3.0, 3) == Times.of([0.003, 0.001, 0.002])


def test_a_ratio_is_of_medians_with_the_lowest_and_the_highest_of_its_rounds() -> None:
    assert Ratio(2.0, 1.0, 4.0, at_most=3.0) == Ratio.of([[1.0], [2.0], [4.0]], [[1.0], [1.0], [1.0]], at_most=3.0)


def test_a_ratio_lies_in_its_range_even_where_all_rounds_are_on_one_side_of_it() -> None:
    ratio = Ratio.of([[1.0, 1.0, 8.0], [8.0, 8.0, 1.0]], [[1.0, 2.0, 2.0], [2.0, 1.0, 1.0]])
    assert ratio.low <= ratio.value <= ratio.high


def test_a_ratio_of_pairs_is_the_median_of_quotients() -> None:
    assert Ratio(2.0, 2.0, 3.0) == Ratio.of_pairs([[2.0, 40.0], [3.0]], [[1.0, 20.0], [1.0]])


@pytest.mark.parametrize(
    ("ratio", "missed"),
    [
        pytest.param(Ratio(2.6, 2, 3, at_most=2.5), True, id="above-the-most"),
        pytest.param(Ratio(2.5, 2, 3, at_most=2.5), False, id="at-the-most"),
        pytest.param(Ratio(99, 90, 110, at_least=100), True, id="below-the-least"),
        pytest.param(Ratio(2.0, 2, 2, aim=1.5), False, id="only-short-of-an-aim"),
    ],
)
def test_a_ratio_out_of_its_bounds_is_missed(ratio: Ratio, *, missed: bool) -> None:
    assert missed is ratio.missed


def test_a_report_names_what_was_missed() -> None:
    assert made_up(Ratio(2.6, 2, 3, at_most=2.5)).missed == ["http: filter: p50: 2.6, and not at most 2.5"]


def test_a_section_without_bounds_misses_nothing() -> None:
    section = made_up(Ratio(2.6, 2, 3, at_most=2.5)).sections[0].unbounded()
    assert section.missed == []
    assert section.notes == ["a note"]


def test_a_file_has_four_significant_digits_and_reads_back_as_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    report.write(made_up(Ratio(1.234567, 1.0, 2.0)), path)
    read = report.read(path)
    assert Times(1.235, 2.0, 100) == read.sections[0].rows[0].times["Kindred"]
    assert read.sections[0].rows[0].figures["CPU, ms"] == 1235.0
    assert path.read_bytes() == read.encode()


def test_a_section_is_found_by_its_name() -> None:
    given = made_up(Ratio(1, 1, 1), "churn")
    assert given.section("churn") is given.sections[0]
    assert given.section("http") is None


def test_a_machine_is_described_without_its_name() -> None:
    machine = report.machine()
    assert {"CPU", "CPUs", "memory", "kernel", "Python", "numpy", "msgspec", "uvloop"} == machine.keys()
    assert platform.node() not in machine.values()
