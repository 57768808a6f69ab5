"""Sections that need no other process, on a small cluster: they measure something, and can be printed and drawn."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench import cache, engine, events, explain, gangs, growth, plot
from tests.bench.command import Size
from tests.bench.report import FOLDER, LATEST, Report, Section
from tests.bench.report import read as read_report
from tests.bench.text import section_text

SMALL = Size(60, 3_000, 0.01)


@pytest.mark.parametrize(
    "measure", [engine.measure, growth.measure, events.measure, cache.measure, explain.measure, gangs.measure]
)
def test_a_section_measures_times_and_ratios(measure: Callable[[Size], Section]) -> None:
    section = measure(SMALL)
    assert measure.__module__ == f"tests.bench.{section.name}"
    assert any(row.times for row in section.rows)
    assert any(row.ratios for row in section.rows)
    assert section_text(section).startswith(f"== {section.title}\n")


def test_a_plot_is_the_same_for_the_same_report(tmp_path: Path) -> None:
    given = read_report(LATEST)
    plot.write(given, tmp_path / "first.svg")
    plot.write(given, tmp_path / "second.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()


def test_a_plot_has_only_the_panels_that_were_measured(tmp_path: Path) -> None:
    given = read_report(LATEST)
    churn = given.section("churn")
    assert churn is not None
    plot.write(Report(given.date, given.command, "", {}, [churn]), tmp_path / "one.svg")
    plot.write(given, tmp_path / "all.svg")
    assert (tmp_path / "one.svg").stat().st_size < (tmp_path / "all.svg").stat().st_size


def test_the_saved_plot_is_small() -> None:
    assert (FOLDER / "latest.svg").stat().st_size < 200_000
