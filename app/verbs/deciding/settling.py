"""The wait before the first decision, in which the bindings of earlier decisions complete.

A replica that starts or takes over lacks the decisions of its predecessor. kube-scheduler binds in the background and
reports nothing to the extender. Each pod with such a decision is still pending. So if pods are pending, the replica
waits some seconds, ten times the duration of a binding. Then it lists the pods again, by a read that shows every
binding up to that moment.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

log = logging.getLogger(__name__)

_LOOKS_EVERY: Final = 0.1  # seconds


class Settling:
    """Waits for the bindings of earlier decisions. An app.verbs.serving_state.Obstacle until they are complete."""

    def __init__(
        self,
        seconds: float,
        *,
        pending: Callable[[], int],
        relist: Callable[[], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        """Wait `seconds` if pods are `pending`. `relist` brings the mirror up to the state at the time of its call."""
        self.settled = False
        """Whether the bindings of earlier decisions are complete."""
        self._wait = seconds
        self._pending = pending
        self._relist = relist
        self._clock = clock
        self._first: Callable[[], None] = lambda: None

    def before_first_decision(self, call: Callable[[], None]) -> None:
        """Call `call` when the bindings are complete, before any decision."""
        self._first = call

    def problem(self) -> str:
        """Return why no decision can be made yet, in one line. Empty if decisions can be made."""
        return "" if self.settled else "waiting for earlier decisions to settle"

    async def after_sync(self, synced: Callable[[], bool]) -> None:
        """Settle once the mirror is synced, for a service without leader election. Then wait for cancellation.

        The wait is needed because background work that returns ends the process.
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
        log.info("earlier decisions have settled in %.1f s", self._clock() - began)
        self._first()
        self.settled = True
