"""The time before the first decision, in which the bindings of the decisions before land.

A replica that starts, or takes over, does not know earlier decisions: the scheduler binds in the background, without a
report. Every such pod is still pending. So pending pods get some seconds, ten times the time of a binding. Then the
pods are listed again by a read that shows every binding up to then.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

_LOOKS_EVERY: Final = 0.1  # seconds


class Settling:
    """Lets decisions before this replica's settle; see app.verbs.serving_state.Obstacle."""

    def __init__(
        self,
        seconds: float,
        *,
        pending: Callable[[], int],
        relist: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        """Give pods that are `pending` some seconds; `relist` brings the mirror up to the state at its call."""
        self.seconds = 0.0
        """How long the last time took."""
        self.settled = False
        """Whether decisions may be made, as far as this goes."""
        self._wait = seconds
        self._pending = pending
        self._relist = relist
        self._clock = clock

    def problem(self) -> str:
        """Return why nothing can be decided yet, one line; empty if it can."""
        return "" if self.settled else "decisions before the start settle"

    async def after_sync(self, synced: Callable[[], bool]) -> None:
        """Settle once the mirror is synced, if no other replica can have decided since; then wait to be cancelled.

        Background work that ends by itself ends the process.
        """
        while not synced():  # noqa: ASYNC110 - the freshness of several reflectors is no event
            await asyncio.sleep(_LOOKS_EVERY)
        began = self._clock()
        await self._settle()
        self._end(began)
        await asyncio.Event().wait()

    async def after_election(self) -> None:
        """Settle after the Lease was won."""
        began = self._clock()
        await self._relist()
        await self._settle()
        self._end(began)

    async def _settle(self) -> None:
        if self._pending() and self._wait:
            await asyncio.sleep(self._wait)
            await self._relist()

    def _end(self, began: float) -> None:
        self.seconds = self._clock() - began
        self.settled = True
