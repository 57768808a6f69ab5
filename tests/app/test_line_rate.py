"""Of each kind of line, so many a second are written; the others are counted, whatever wrote them."""

import logging

import pytest

from app.process.logs import LIMIT, MAX_KINDS, NO_LIMIT, LineLimit, LineRate
from tests.app.telemetry.passing_time import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rate(clock: Clock) -> LineRate:
    return LineRate(clock)


def line(
    template: str = "bind: %s", level: int = logging.WARNING, name: str = "app", **fields: object
) -> logging.LogRecord:
    made = {"name": name, "levelno": level, "levelname": logging.getLevelName(level), "msg": template, "args": ("x",)}
    return logging.makeLogRecord(made | fields)


def written(rate: LineRate, number: int, **how: object) -> int:
    return sum(rate.allows(line(**how)) for _ in range(number))  # type: ignore[arg-type]  # the arguments of line


def sums(rate: LineRate, *, all_of_them: bool = False) -> list[tuple[object, ...]]:
    lines = [(each.getMessage(), vars(each)) for each in rate.sums(all_of_them=all_of_them)]
    return [
        (message, reported["name"], reported["levelname"], reported["like"], reported["left_out"])
        for message, reported in lines
    ]


def test_a_storm_has_ten_lines_a_second_and_a_sum(rate: LineRate, clock: Clock) -> None:
    assert written(rate, 600) == 10
    assert (rate.is_storm, sums(rate)) == (True, [])
    clock.pass_by(1.0)
    assert sums(rate) == [("lines left out", "app", "WARNING", "bind: %s", 590)]
    assert (rate.is_storm, sums(rate)) == (False, [])
    assert written(rate, 600) == 10


def test_one_line_that_is_left_out_has_a_sum(rate: LineRate) -> None:
    assert written(rate, 11) == 10
    assert sums(rate, all_of_them=True) == [("lines left out", "app", "WARNING", "bind: %s", 1)]


def test_a_slow_stream_is_written_whole(rate: LineRate, clock: Clock) -> None:
    for _ in range(50):
        assert rate.allows(line())
        clock.pass_by(0.101)
    assert not rate.is_storm


def test_the_arguments_make_no_kind_and_logger_level_and_template_do(rate: LineRate) -> None:
    assert written(rate, 20) == 10
    assert not rate.allows(line(args=("another",)))
    assert rate.allows(line("preempt: %s"))
    assert rate.allows(line(level=logging.ERROR))
    assert rate.allows(line(name="app.verbs"))


def test_a_line_can_name_the_fields_that_make_its_kind(rate: LineRate) -> None:
    of_verb = {LIMIT: LineLimit(("verb",), 2)}
    assert written(rate, 5, verb="bind", **of_verb) == 2
    assert written(rate, 5, verb="filter", **of_verb) == 2
    assert [(vars(each)["verb"], vars(each)["left_out"]) for each in rate.sums(all_of_them=True)] == [
        ("bind", 3),
        ("filter", 3),
    ]
    assert written(rate, 500, **{LIMIT: NO_LIMIT}, template="every") == 500


def test_a_sum_that_is_late_is_not_lost(rate: LineRate, clock: Clock) -> None:
    written(rate, 15)
    clock.pass_by(5.0)
    written(rate, 12)
    assert [reported[-1] for reported in sums(rate, all_of_them=True)] == [5, 2]


def test_many_kinds_of_lines_take_no_more_memory_and_no_more_of_the_disk(rate: LineRate, clock: Clock) -> None:
    total = sum(rate.allows(line(f"template {number}")) for number in range(5 * MAX_KINDS))
    assert total == MAX_KINDS + 10
    clock.pass_by(1.1)
    assert rate.allows(line("a new one"))
