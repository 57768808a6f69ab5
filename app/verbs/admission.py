"""Admission of requests: one at a time, a bounded queue before it, and a deadline for requests that wait.

Between two responses the event loop looks at its sockets and events. So a flood of requests delays neither the watch
nor `/livez`, and each arrival is seen, and counted, at once. A request that finds no other is evaluated at once.
Shedding is cheap, or the queue would not get shorter.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol


class Shed(Enum):
    """Why a request was shed; also the values of the metric's label and of the header."""

    DEADLINE = "deadline"
    """It has waited so long that its client has given up, or is about to."""
    QUEUE_FULL = "queue_full"
    """Too many requests wait."""
    BYTES = "bytes"
    """Too many bytes of requests are held."""


class WaitingRequest(Protocol):
    """A request that waits for its turn. Exactly one of the two is called, unless it is gone by then."""

    began: float
    """When its request began, of the clock."""

    @property
    def gone(self) -> bool:
        """Whether no client waits for the response any more."""

    def take(self, waited: float) -> None:
        """Answer, after so many seconds in the queue."""

    def reject(self, reason: Shed, waited: float) -> None:
        """Report that there will be no response."""


class _Waiting(NamedTuple):
    turn: WaitingRequest
    since: float


class Admission:
    """The queue before the verbs."""

    def __init__(self, *, deadline: float, queue_limit: int, max_bytes: int, clock: Callable[[], float]) -> None:
        """Let requests wait for `deadline` seconds from their beginning, `queue_limit` at once.

        All of them, complete or not, may hold `max_bytes`.
        """
        self.clock: Final = clock
        self.in_flight = 0
        """Requests in progress, queued ones included."""
        self.bytes_held = 0
        """Bytes of their bodies."""
        self.shed: Final = {reason.value: 0 for reason in Shed}
        """Reason -> how many were turned away for it."""
        self._deadline = deadline
        self._queue_limit = queue_limit
        self._max_bytes = max_bytes
        self._queue: deque[_Waiting] = deque()
        self._taken = False  # since the loop last looked at its sockets
        self._begun = 0  # requests that had their turn

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def hold(self, size: int) -> bool:
        """Count bytes that are held from now on; return whether they are within the limit."""
        self.bytes_held += size
        return self.bytes_held <= self._max_bytes

    def release(self, size: int) -> None:
        """Take note of bytes that are held no longer."""
        self.bytes_held -= size

    def enter(self, turn: WaitingRequest) -> None:
        """Let a complete question have its turn, now or later, or none."""
        now = self.clock()
        if self._taken or self._queue:
            if len(self._queue) < self._queue_limit:
                self._queue.append(_Waiting(turn, now))
            else:
                self._reject(turn, Shed.QUEUE_FULL, 0.0)
        elif now - turn.began > self._deadline:  # the request was sent long ago
            self._reject(turn, Shed.DEADLINE, 0.0)
        else:
            self._take(turn, 0.0)

    def reject(self, turn: WaitingRequest, reason: Shed) -> None:
        """Shed a request that was never in the queue."""
        self._reject(turn, reason, 0.0)

    async def lull(self, patience: float) -> None:
        """Return when no request waits or comes in, before long work without urgency; at the latest in `patience`.

        Requests that come in wait for the work between this and the next `await`, and a second call makes way for all
        of them. So none waits for two pieces, unless the queue is not empty for that long.
        """
        until = self.clock() + patience
        seen: tuple[int, int, int] | None = None
        while seen != self._progress():  # a queue does that in each round of the loop
            seen = self._progress()
            if self.clock() >= until:
                break
            # The first lets the loop look at its sockets, the second comes after the requests that it has read there.
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    def _progress(self) -> tuple[int, int, int]:
        return self._begun, self.in_flight, self.bytes_held

    def _take(self, turn: WaitingRequest, waited: float) -> None:
        self._taken = True
        self._begun += 1
        asyncio.get_running_loop().call_soon(self._next)
        turn.take(waited)

    def _next(self) -> None:
        self._taken = False
        while self._queue and not self._taken:
            turn, since = self._queue.popleft()
            now = self.clock()
            if turn.gone:
                continue
            if now - turn.began > self._deadline:
                self._reject(turn, Shed.DEADLINE, now - since)
            else:
                self._take(turn, now - since)

    def _reject(self, turn: WaitingRequest, reason: Shed, waited: float) -> None:
        self.shed[reason.value] += 1
        turn.reject(reason, waited)
