"""Durations in Go's syntax, such as `httpTimeout`."""

import re
from typing import Final

_UNITS: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}  # Go accepts both micro signs
_part: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")  # the same
PATTERN: Final = rf"\A[+-]?(?:0|(?:{_part.pattern})+)\Z"
"""The syntax of time.ParseDuration."""
_whole: Final = re.compile(PATTERN)


def parse_go_duration(text: str) -> float | None:
    """Return the seconds of a duration in the syntax of Go's time.ParseDuration. None for any other text."""
    if not _whole.match(text):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _part.findall(text))
    return -seconds if text.startswith("-") else seconds


def go_duration(seconds: float) -> str:
    """Write seconds as a duration, in whole milliseconds."""
    milliseconds = round(seconds * 1000)
    return f"{milliseconds // 1000}s" if milliseconds % 1000 == 0 else f"{milliseconds}ms"
