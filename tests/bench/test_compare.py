"""The comparison of two reports shows changes beyond the noise, and no others."""

from pathlib import Path

import pytest

from tests.bench import compare, report
from tests.bench.compare import Comparison
from tests.bench.report import Ratio, Report, Row, Section, Times

MACHINE = {"CPU": "one"}


def made_up(ratio: Ratio, p50: float = 1.0, machine: dict[str, str] = MACHINE, row: str = "filter") -> Report:
    found = Row(row, {"Kindred": Times(p50, 2.0, 100)}, {}, {"p50": ratio})
    return Report("2026-01-02", "make bench", "0123abcd", machine, [Section("http", "HTTP", [found])])


def ratios(before: Ratio, after: Ratio) -> list[Comparison]:
    return [each for each in compare.compare(made_up(before), made_up(after)) if each.is_ratio]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        pytest.param(Ratio(2.0, 1.9, 2.1), Ratio(2.5, 2.4, 2.6), "worse", id="a-cost-that-grew"),
        pytest.param(Ratio(2.5, 2.4, 2.6), Ratio(2.0, 1.9, 2.1), "better", id="a-cost-that-shrank"),
        pytest.param(Ratio(2.0, 1.7, 2.3), Ratio(2.5, 2.2, 2.6), "same", id="ranges-overlap"),
        pytest.param(Ratio(2.0, 1.99, 2.01), Ratio(2.1, 2.09, 2.11), "same", id="apart-by-less-than-a-tenth"),
        pytest.param(
            Ratio(500, 480, 520, at_least=100), Ratio(300, 290, 310, at_least=100), "worse", id="a-slower-speed"
        ),
        pytest.param(
            Ratio(300, 290, 310, at_least=100), Ratio(500, 480, 520, at_least=100), "better", id="a-higher-speed"
        ),
        pytest.param(Ratio(1.0, 1.0, 1.0), Ratio(1.2, 1.2, 1.2), "same", id="measured-once-and-a-fifth-apart"),
        pytest.param(Ratio(1.0, 1.0, 1.0), Ratio(1.3, 1.3, 1.3), "worse", id="measured-once-and-far-apart"),
    ],
)
def test_a_ratio_has_changed_where_its_rounds_are_apart_and_by_enough(
    before: Ratio, after: Ratio, verdict: compare.Verdict
) -> None:
    assert [verdict] == [each.verdict for each in ratios(before, after)]


def test_times_are_compared_on_the_same_machine_only() -> None:
    before = made_up(Ratio(1, 1, 1))
    same = [each for each in compare.compare(before, made_up(Ratio(1, 1, 1), 2.0)) if not each.is_ratio]
    other = list(compare.compare(before, made_up(Ratio(1, 1, 1), 2.0, {"CPU": "another"})))
    assert [each.verdict for each in same] == ["worse", "same"]
    assert [each.is_ratio for each in other] == [True]


def test_a_row_that_is_gone_is_told_and_a_section_that_was_not_measured_is_not() -> None:
    before = made_up(Ratio(1, 1, 1))
    assert compare.gone(before, made_up(Ratio(1, 1, 1), row="prioritize")) == ["http: filter"]
    assert compare.gone(before, Report("", "", "", {}, [])) == []


@pytest.mark.parametrize(("value", "status"), [pytest.param(2.0, 1, id="worse"), pytest.param(0.5, 0, id="better")])
def test_the_command_fails_where_a_ratio_is_worse(
    value: float, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report.write(made_up(Ratio(1, 0.9, 1.1)), tmp_path / "old.json")
    report.write(made_up(Ratio(value, value, value)), tmp_path / "new.json")
    arguments = ["--baseline", str(tmp_path / "old.json"), "--new", str(tmp_path / "new.json")]
    assert status == compare.main(arguments)
    assert "http: filter: p50: 1.00x -> " in capsys.readouterr().out
