"""Durations as Go writes them."""

import pytest

from app.scheduler_configuration.schema import go_duration, parse_go_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("-1h", -3600.0),
        ("+2s", 2.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("7ns", 7e-9),
    ],
)
def test_a_duration_is_read_as_go_does(text: str, seconds: float) -> None:
    assert seconds == pytest.approx(parse_go_duration(text), abs=1e-12)


@pytest.mark.parametrize("text", ["", "5", "5 s", "s", "5sec", "1d", "5s ", "5S", "1s-1s", "."])
def test_what_go_refuses_is_none(text: str) -> None:
    assert parse_go_duration(text) is None


@pytest.mark.parametrize(("seconds", "text"), [(5.0, "5s"), (0.8, "800ms"), (90.0, "90s"), (1.5, "1500ms")])
def test_a_duration_is_written_as_go_reads_it(seconds: float, text: str) -> None:
    assert text == go_duration(seconds)
    assert seconds == parse_go_duration(text)
