"""Long work for people and Prometheus: one job at a time, in short pieces. Requests of schedulers go first.

A job is a scrape, a dump or an explanation. All jobs share the event loop with the verbs. Only
one job of any kind runs at a time, so the number of clients does not matter. Before each piece the job waits until no
verb request waits or arrives. So a verb request waits for one piece at most.

Under a flood of verb requests there is no such moment. A job then continues after ten times the duration of its last
piece. So long work gets about a tenth of the loop, and a scrape ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
WaitUntilIdle: TypeAlias = Callable[[float], Awaitable[None]]

_MAX_LENGTH: Final = 0.001
"""Seconds of a piece. A wait for a lull takes about 0.05 ms, so shorter pieces would waste time of the loop."""
_TIMES: Final = 10.0


async def _never_busy(_: float) -> None:
    """Let the loop run once: for a process that serves no scheduler."""
    await asyncio.sleep(0)


class LongWork:
    """The turn that all long jobs of a process share."""

    def __init__(self, wait_until_idle: WaitUntilIdle = _never_busy, patience: float = 0.0) -> None:
        """`wait_until_idle` returns when no verb request waits, or after the given seconds (see Admission).

        Work that cannot be cut into pieces waits up to `patience` seconds for a lull.
        """
        self.readers = 0
        """Clients that read the text of a job, which holds in memory what it is made of."""
        self._wait_until_idle = wait_until_idle
        self._patience = patience
        self._lock = asyncio.Lock()
        self._began = perf_counter()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the turn for a job in pieces. The job checks `over` between two steps.

        Never wait for a client or a server within the turn: all other jobs would wait, too.
        """
        async with self._lock:
            await self.checkpoint()
            yield

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the turn for work that cannot be cut into pieces, such as one evaluation over all nodes."""
        async with self._lock:
            await self.wait_until_idle()
            yield

    async def wait_until_idle(self) -> None:
        """Within a turn: wait before work that cannot be cut into pieces."""
        await self._wait_until_idle(self._patience)
        self._began = perf_counter()

    @property
    def over(self) -> bool:
        """Whether the piece has lasted long enough. If so, call `checkpoint`.

        This is not part of `checkpoint`, because an await for each of 150,000 steps adds up.
        """
        return perf_counter() - self._began > _MAX_LENGTH

    async def all_of(self, steps: Iterable[T]) -> list[T]:
        """Within a turn: take all steps, in pieces, and return what they yield."""
        found = []
        for each in steps:
            found.append(each)
            if self.over:
                await self.checkpoint()
        return found

    async def checkpoint(self) -> None:
        """Within a turn: end the piece, let the other tasks of the loop run, and begin a new piece."""
        await self._wait_until_idle(min(self._patience, _TIMES * (perf_counter() - self._began)))
        self._began = perf_counter()
