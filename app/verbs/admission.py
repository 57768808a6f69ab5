"""Admission of requests: one at a time, a bounded queue before it, and a deadline for requests that wait.

Between two responses the event loop runs its other tasks and reads its sockets. So a flood of requests delays neither
the watch nor `/livez`, and each arriving request is counted at once. If the queue is empty, a request is evaluated at
once. Shedding must be cheap, or the queue would not get shorter.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple


class Shed(Enum):
    """Why a request was shed. Also the values of the metric's label and of the header."""

    DEADLINE = "deadline"
    """The request waited so long that its client has given up, or is about to."""
    QUEUE_FULL = "queue_full"
    """Too many requests wait."""
    BYTES = "bytes"
    """Too many bytes of requests are held."""


class Turn(NamedTuple):
    """The end of the wait in the queue."""

    waited: float
    """Seconds in the queue."""
    shed: Shed | None = None
    """Why the request is not evaluated."""


_AT_ONCE: Final = Turn(0.0)


class _Waiting(NamedTuple):
    turn: asyncio.Future[Turn | None]
    since: float
    began: float
    has_left: Callable[[], bool]


class Admission:
    """The queue before the verbs."""

    def __init__(self, *, deadline: float, queue_limit: int, max_bytes: int, clock: Callable[[], float]) -> None:
        """`deadline`: seconds from its beginning that a request may wait. `queue_limit`: requests that may wait.

        `max_bytes`: bytes that the bodies of all requests may take, complete or not.
        """
        self.clock: Final = clock
        self.in_flight = 0
        """Requests in progress, queued ones included."""
        self.bytes_held = 0
        """Bytes of the bodies of these requests."""
        self.shed: Final = {reason.value: 0 for reason in Shed}
        """Reason -> requests that were shed for it."""
        self._deadline = deadline
        self._queue_limit = queue_limit
        self._max_bytes = max_bytes
        self._queue: deque[_Waiting] = deque()
        self._taken = False  # whether a request had its turn since the loop last read its sockets
        self._begun = 0  # requests that had their turn

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def hold(self, size: int) -> bool:
        """Count further bytes of a body. Return whether the sum is within the limit."""
        self.bytes_held += size
        return self.bytes_held <= self._max_bytes

    def release(self, size: int) -> None:
        """Subtract the bytes of a released body."""
        self.bytes_held -= size

    def enter(self, began: float) -> Turn | None:
        """Return the turn of a complete request that began at a time, by the clock. None if it must `wait`."""
        if self._taken or self._queue:
            return None if len(self._queue) < self._queue_limit else self.shed_now(Shed.QUEUE_FULL)
        if self.clock() - began > self._deadline:  # the body took long to arrive
            return self.shed_now(Shed.DEADLINE)
        self._taken = True
        self._begun += 1
        self._let_next()
        return _AT_ONCE

    async def wait(self, began: float, has_left: Callable[[], bool]) -> Turn | None:
        """Wait for the turn of a request that could not `enter`. Return None if its client left.

        `has_left` returns whether the client has disconnected. It is called when the turn has come.
        """
        turn: asyncio.Future[Turn | None] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(turn, self.clock(), began, has_left))
        try:
            return await turn
        finally:  # not earlier: the next request has its turn after this one
            if turn.done() and not turn.cancelled() and _is_evaluated(turn.result()):
                self._let_next()

    def shed_now(self, reason: Shed, waited: float = 0.0) -> Turn:
        """Count a shed request."""
        self.shed[reason.value] += 1
        return Turn(waited, reason)

    async def lull(self, patience: float) -> None:
        """Return when no request waits or arrives, at the latest after `patience` seconds. Call it before long work.

        A request that arrives waits for the work up to the next `await`. A second call lets all waiting requests go
        first. So no request waits for two pieces of work, unless the queue is not empty for `patience` seconds.
        """
        until = self.clock() + patience
        seen: tuple[int, int, int] | None = None
        while seen != self._progress():  # a queue makes progress in each round of the loop
            seen = self._progress()
            if self.clock() >= until:
                break
            # The loop reads its sockets in one round, and calls the app or passes on a piece of a body in the next. The
            # app evaluates a request that had waited, or lets the connection read on, in the one after.
            for _ in range(4):
                await asyncio.sleep(0)

    def _progress(self) -> tuple[int, int, int]:
        return self._begun, self.in_flight, self.bytes_held

    def _let_next(self) -> None:
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._taken = False
        while self._queue and not self._taken:
            turn, since, began, has_left = self._queue.popleft()
            now = self.clock()
            if turn.done():  # cancelled by the shutdown
                continue
            if has_left():
                turn.set_result(None)
            elif now - began > self._deadline:
                turn.set_result(self.shed_now(Shed.DEADLINE, now - since))
            else:
                self._taken = True
                self._begun += 1
                turn.set_result(Turn(now - since))


def _is_evaluated(turn: Turn | None) -> bool:
    return turn is not None and turn.shed is None
