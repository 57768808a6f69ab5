"""Sections that need no other process, on a small cluster: they measure something, and can be printed."""

from collections.abc import Callable

import pytest

from tests.bench import cache, engine, events, explain, gangs, growth, simulation
from tests.bench.command import Size
from tests.bench.report import Section, section_text

SMALL = Size(60, 3_000, 0.01)


@pytest.mark.parametrize(
    "measure",
    [
        engine.measure,
        growth.measure,
        events.measure,
        cache.measure,
        explain.measure,
        gangs.measure,
        simulation.measure,
    ],
)
def test_a_section_measures_times_and_ratios(measure: Callable[[Size], Section]) -> None:
    section = measure(SMALL)
    assert measure.__module__ == f"tests.bench.{section.name}"
    assert any(row.times for row in section.rows)
    assert any(row.ratios for row in section.rows)
    assert section_text(section).startswith(f"== {section.title}\n")
