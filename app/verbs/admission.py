"""Admission of requests: one at a time, a bounded queue before it, and a deadline for requests that wait.

Between two responses the event loop runs its other tasks and reads its sockets. So a flood of requests delays neither
the watch nor `/livez`, and each arriving request is counted at once. If the queue is empty, a request is evaluated at
once. Shedding must be cheap, or the queue would not get shorter.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol


class Shed(Enum):
    """Why a request was shed. Also the values of the metric's label and of the header."""

    DEADLINE = "deadline"
    """The request waited so long that its client has given up, or is about to."""
    QUEUE_FULL = "queue_full"
    """Too many requests wait."""
    BYTES = "bytes"
    """Too many bytes of requests are held."""


class WaitingRequest(Protocol):
    """A request that waits for its turn. Either `take` or `reject` is called once, unless the request is `gone`."""

    began: float
    """Time at which the request began, by the clock of the admission."""

    @property
    def gone(self) -> bool:
        """Whether the client has disconnected."""

    def take(self, waited: float) -> None:
        """Evaluate the request and respond. `waited`: seconds in the queue."""

    def reject(self, reason: Shed, waited: float) -> None:
        """Respond without an evaluation. `waited`: seconds in the queue."""


class _Waiting(NamedTuple):
    turn: WaitingRequest
    since: float


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

    def enter(self, turn: WaitingRequest) -> None:
        """Give a complete request its turn now, queue it, or shed it."""
        now = self.clock()
        if self._taken or self._queue:
            if len(self._queue) < self._queue_limit:
                self._queue.append(_Waiting(turn, now))
            else:
                self._reject(turn, Shed.QUEUE_FULL, 0.0)
        elif now - turn.began > self._deadline:  # the body took long to arrive
            self._reject(turn, Shed.DEADLINE, 0.0)
        else:
            self._take(turn, 0.0)

    def reject(self, turn: WaitingRequest, reason: Shed) -> None:
        """Shed a request that was never in the queue."""
        self._reject(turn, reason, 0.0)

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
            # In the first round the loop reads its sockets, in the second it handles the requests that it read.
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
