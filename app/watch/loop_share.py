"""Fair turns on the event loop for long work."""

import asyncio
from time import perf_counter
from typing import Final

_MAX_LENGTH: Final = 0.005  # seconds; the longest time that a request waits for a sync


class LoopShare:
    """Yields the loop after a turn has lasted long enough. Called between short steps."""

    def __init__(self) -> None:
        self._began = 0.0

    @property
    def over(self) -> bool:
        """Whether it is time to call `give_way`. Two methods, because an await for each of 150,000 steps adds up."""
        return perf_counter() - self._began > _MAX_LENGTH

    async def give_way(self) -> None:
        """Let the other tasks of the loop run once, and begin a new turn."""
        await asyncio.sleep(0)
        self._began = perf_counter()
