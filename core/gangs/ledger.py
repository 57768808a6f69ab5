"""How much CPU time attempts to place gangs have taken in the last seconds, by namespace.

A tenant who may create pods may create gangs that fit nowhere. So there is a bound for all attempts together, and
those of a namespace wait for those of others that have taken less. An attempt that succeeds is not counted.
"""

from collections import defaultdict
from typing import Final

WINDOW: Final = 10
"""Seconds."""
_ROUNDING: Final = 1e-9
"""Seconds that may be left of a sum when all its parts are taken off."""


class Ledger:
    """Seconds of CPU by gang, NAMESPACE/NAME, for each second of the window. Times come from the caller's clock."""

    def __init__(self) -> None:
        self._seconds: dict[int, defaultdict[str, float]] = {}
        self._of: defaultdict[str, float] = defaultdict(float)  # namespace -> its sum
        self._total = 0.0

    def charge(self, gang: str, spent: float, now: float) -> None:
        """Count CPU time that an attempt for a gang has taken. `now` may lie ahead: a later window has less then."""
        self._seconds.setdefault(int(now), defaultdict(float))[gang] += spent
        self._add(gang, spent)

    def forgive(self, gang: str) -> None:
        """Count nothing of a gang that fits."""
        for spent in self._seconds.values():
            self._add(gang, -spent.pop(gang, 0.0))

    def used(self, now: float) -> float:
        """Return the CPU time of all attempts in the window."""
        self._forget_old(now)
        return self._total

    def used_by(self, gang: str) -> float:
        """Return the CPU time of all attempts of a gang's namespace."""
        return self._of.get(gang.partition("/")[0], 0.0)

    def _forget_old(self, now: float) -> None:
        for second in [each for each in self._seconds if each < int(now) - WINDOW]:
            for gang, spent in self._seconds.pop(second).items():
                self._add(gang, -spent)
        if not self._seconds:
            self._of.clear()
            self._total = 0.0

    def _add(self, gang: str, spent: float) -> None:
        namespace = gang.partition("/")[0]
        self._total += spent
        self._of[namespace] += spent
        if self._of[namespace] < _ROUNDING:
            del self._of[namespace]
