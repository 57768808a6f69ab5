"""Durations in the format of kubectl's column AGE."""

from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
_STEPS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Upper bound in seconds, unit with its sign, and the smaller unit for the rest; 0 to leave out the rest."""


def age_text(seconds: float | None) -> str:
    """Return `61s`, `2m5s`, `3h`, `8d`; `<unknown>` for None, `<invalid>` for a time in the future.

    Source: k8s.io/apimachinery pkg/util/duration/duration.go, HumanDuration. It allows two seconds in the future,
    because clocks differ.
    """
    if seconds is None:
        return "<unknown>"
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(0, whole)
    for bound, unit, sign, smaller, smaller_sign in _STEPS:
        if whole < bound:
            rest = whole % unit // smaller if smaller else 0
            return f"{whole // unit}{sign}" + (f"{rest}{smaller_sign}" if rest else "")
    return f"{whole // _YEAR}y"
