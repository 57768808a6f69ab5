"""Which gangs are tried before one, and which wait for one before them that does not fit.

A gang that does not fit lets the gangs behind it go first. After `_OVERTAKEN` of them are placed, those of its own
namespace wait for as long as its timeout. Then they may overtake it again, because it may never fit.

A tenant chooses the timeout, and may start a gang by hand, so that it comes before those of any priority. So gangs of
other namespaces wait for `_LONGEST` at most, and in a `_WINDOW` for `_MOST` behind those of all namespaces together.
"""

from collections.abc import Iterable
from heapq import nsmallest
from typing import Final

from core.gangs.ledger import Ledger
from core.gangs.unit import Order, Unit

_AHEAD: Final = 4
"""How many waiting gangs are tried before the gang of a request."""
_OVERTAKEN: Final = 20
"""How many gangs may overtake a waiting one before it makes them wait."""
_LONGEST: Final = 60.0
"""Seconds."""
_MOST: Final = 120.0
"""Seconds."""
_WINDOW: Final = 1200
"""Seconds."""


class Holds:
    """Counts the gangs that overtake a waiting one. Times come from the caller's clock."""

    def __init__(self) -> None:
        self._of_others = Ledger(_WINDOW)  # seconds for which gangs of other namespaces wait

    def overtaken(self, unit: Unit, timeout: float, now: float) -> None:
        """Record that a gang behind a unit that does not fit was placed. `timeout`: the unit's, in seconds."""
        unit.overtaken += 1
        if unit.overtaken < _OVERTAKEN:
            return
        unit.overtaken, unit.holds_until, key = 0, now + timeout, unit.group.key
        longest = min(timeout, _LONGEST)
        if self._of_others.used_for(key, now) + longest <= _MOST:
            self._of_others.charge(key, longest, now)
            unit.holds_others_until = now + longest


def ahead_of(unit: Unit, waiting: Iterable[Unit]) -> list[Unit]:
    """Return the waiting units that come before one and have a turn: the first of each namespace first, then others."""
    ahead = [each for each in waiting if each is not unit and each.order < unit.order]
    first: dict[str, Order] = {}
    for each in ahead:
        first[each.namespace] = min(each.order, first.get(each.namespace, each.order))
    return nsmallest(_AHEAD, ahead, key=lambda each: (each.order != first[each.namespace], each.order))


def holding(unit: Unit, ahead: Iterable[Unit], now: float) -> Unit | None:
    """Return the one of the waiting units `ahead` for which a unit waits."""
    for each in ahead:
        until = each.holds_until if each.namespace == unit.namespace else each.holds_others_until
        if each.shortfall is not None and now < until:
            return each
    return None


def behind_text(unit: Unit, blocking: Unit) -> str:
    """Return why a unit waits. Its Events must name no group of another namespace."""
    is_own = blocking.namespace == unit.namespace
    named = f"group {blocking.group.key}" if is_own else "a group of another namespace"
    return f"waits behind {named}, which was overtaken too often"
