"""The amount that the connections of a port may read before the event loop runs everything else.

A socket that is always readable would hold the loop: libuv reads it up to 32 times in a row, 256 KB each. Parsing is
cheap for a body with a length, and a hundred times as expensive for chunk framing and headers.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_COST_OF_A_ROUND: Final = 32 * 1024
"""Bytes of heads and framing in one round of the loop: at worst 3 to 8 ms, and enough for 100 ordinary heads."""
_BODY_SHARE: Final = 64
"""Bytes of body that cost as much as one byte of framing. Body bytes are only copied."""


class ReadingTurns:
    """Connections read until a round is over. The others wait, first come, first served."""

    def __init__(self) -> None:
        self._left = _COST_OF_A_ROUND
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    @property
    def over(self) -> bool:
        """Whether no connection may read more in this round."""
        return self._left <= 0

    def spend(self, framing: int, body: int) -> None:
        """Count parsed bytes. An idle port counts over many rounds, which saves a callback for each request."""
        self._left -= framing + (body // _BODY_SHARE)
        if self._left <= 0:
            self._schedule()

    def wait(self, read_on: Callable[[], None]) -> None:
        """Call `read_on` in a later round, after the connections that wait already."""
        self._waiting.append(read_on)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._scheduled = False
        self._left = _COST_OF_A_ROUND
        try:
            for _ in range(len(self._waiting)):  # a connection that waits again gets its turn in a later round
                if self.over:
                    break
                self._waiting.popleft()()
        finally:
            if self._waiting:
                self._schedule()
