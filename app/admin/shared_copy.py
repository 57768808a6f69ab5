"""A copy of a large value, made once for all requests of the same moment."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic, thread_time
from typing import Final, Generic, TypeVar

Copy = TypeVar("Copy")

_OLDEST: Final = 1.0
"""Seconds after which a new copy is made."""
_CHEAP: Final = 0.005
"""Seconds of CPU. A copy that costs less is made for each request, so that small clusters are shown without delay."""


class SharedCopy(Generic[Copy]):
    """The latest copy. Requests within a second of its making share it. Afterwards it is released."""

    def __init__(self, make: Callable[[], Awaitable[Copy]]) -> None:
        """`make` returns a copy of the present state. Only one call runs at a time."""
        self._make = make
        self._lock = asyncio.Lock()
        self._copy: Copy | None = None
        self._made_at = 0.0

    async def get(self) -> Copy:
        """Return a copy that is at most a second old when this returns."""
        async with self._lock:
            if self._copy is not None and monotonic() - self._made_at <= _OLDEST:
                return self._copy
            began = thread_time()
            copy = await self._make()
            if thread_time() - began > _CHEAP:
                self._copy, self._made_at = copy, monotonic()
                asyncio.get_running_loop().call_later(_OLDEST, self._release, copy)
            return copy

    def _release(self, copy: Copy) -> None:
        if self._copy is copy:
            self._copy = None
