"""How many seconds the gangs of each namespace have taken in a window of time, such as of CPU for attempts that fail.

A tenant who may create pods may create gangs that fit nowhere. So there is a bound for all namespaces together, and
each of them leaves a part of it for the others. An attempt that succeeds is not counted.
"""

from collections import defaultdict
from typing import Final

WINDOW: Final = 10
"""Seconds."""
_ROUNDING: Final = 1e-9
"""Seconds that may be left of a sum when all its parts are taken off."""


class Ledger:
    """Seconds taken, for each second of the window, by keys NAMESPACE/ANYTHING: of gangs, or of single attempts.

    Times come from the caller's clock.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._seconds: dict[int, defaultdict[str, float]] = {}
        self._of: defaultdict[str, float] = defaultdict(float)  # namespace -> its sum
        self._total = 0.0

    def charge(self, key: str, spent: float, now: float) -> None:
        """Count what a gang or an attempt has taken. `now` may lie ahead: a later window has less then."""
        self._seconds.setdefault(int(now), defaultdict(float))[key] += spent
        self._add(key, spent)

    def forgive(self, key: str) -> None:
        """Count nothing of an attempt that succeeds."""
        for spent in self._seconds.values():
            self._add(key, -spent.pop(key, 0.0))

    def used(self, now: float) -> float:
        """Return what all gangs have taken in the window."""
        self._forget_old(now)
        return self._total

    def used_by(self, key: str) -> float:
        """Return what all gangs of the key's namespace have taken, in the window of the last `used`."""
        return self._of.get(key.partition("/")[0], 0.0)

    def used_for(self, key: str, now: float) -> float:
        """Return what counts for the common bound if the namespace of a key takes more.

        A namespace gets at most four fifths of what the others leave, so that something is left for another one.
        """
        return self.used(now) + self.used_by(key) / 4

    def _forget_old(self, now: float) -> None:
        for second in [each for each in self._seconds if each < int(now) - self._window]:
            for key, spent in self._seconds.pop(second).items():
                self._add(key, -spent)
        if not self._seconds:
            self._of.clear()
            self._total = 0.0

    def _add(self, key: str, spent: float) -> None:
        namespace = key.partition("/")[0]
        self._total += spent
        self._of[namespace] += spent
        if self._of[namespace] < _ROUNDING:
            del self._of[namespace]
