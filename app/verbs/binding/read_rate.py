"""How often pods may be read because of requests, in all and by name.

A request may name a pod that does not exist. Without a limit, each such request would be a GET of the API server, which
serves others, too.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from app.api_server.client import ApiError

READS_A_SECOND: Final = 100
"""A kube-scheduler sends one `filter` after the other. A late watch costs each of them 30 ms, so 33 reads a second."""
READS_OF_A_NAME: Final = 5
"""Reads of one name a second. An attempt reads a pod twice at most, and the next one begins a second later."""
_SECOND: Final = 1.0
_ROUNDING: Final = 1e-6  # seconds; the times are sums of fractions
_MAX_NAMES: Final = 4096


class TooManyReadsError(ApiError):
    """The pod was not read, because too many were."""


class ReadRate:
    """Turns for reads. Both limits are over a window of a second that moves on with each read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds."""
        self._clock = clock
        self._next = 0.0  # time at which the rate is used up to that moment
        self._of_name: OrderedDict[str, float] = OrderedDict()  # the same for each name, the oldest first

    async def turn(self, name: str) -> None:
        """Return when a pod may be read, within a second. Raises TooManyReadsError if that is later."""
        now = self._clock()
        of_name = max(self._of_name.pop(name, 0.0), now) + _SECOND / READS_OF_A_NAME
        if of_name > now + _SECOND + _ROUNDING:
            self._of_name[name] = of_name - _SECOND / READS_OF_A_NAME
            raise TooManyReadsError(f"more than {READS_OF_A_NAME} reads of pod {name} a second")
        at = max(self._next, now) + _SECOND / READS_A_SECOND
        wait = at - now - _SECOND  # the reads of a second may come at once
        if wait > _SECOND + _ROUNDING:
            raise TooManyReadsError(f"more than {READS_A_SECOND} reads of pods a second")
        self._next = at
        self._of_name[name] = of_name
        if len(self._of_name) > _MAX_NAMES:
            self._of_name.popitem(last=False)
        if wait > _ROUNDING:
            await asyncio.sleep(wait)
