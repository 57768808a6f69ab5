"""Whose turn it is: one question at a time, a bounded queue before it, and a deadline for those that wait.

Between two answers the event loop looks at its sockets and events, so that a flood of questions delays neither the
watch nor `/livez`, and what arrives is seen, and counted, at once. A question that finds nobody before it is answered
where it stands. What is turned away is turned away cheaply, or the queue would not get shorter.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol


class Shed(Enum):
    """Why a question was turned away; the values are those of the metric's label and of the header."""

    DEADLINE = "deadline"
    """It has waited so long that its client has given up, or is about to."""
    QUEUE_FULL = "queue_full"
    """Too many questions wait."""
    BYTES = "bytes"
    """Too many bytes of questions are held."""


class WaitingRequest(Protocol):
    """A question that waits for its turn. Exactly one of the two is called, unless it is gone by then."""

    began: float
    """When its request began, of the clock."""

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer any more."""

    def take(self, waited: float) -> None:
        """Answer, after so many seconds in the queue."""

    def reject(self, reason: Shed, waited: float) -> None:
        """Say that there will be no answer."""


class _Waiting(NamedTuple):
    turn: WaitingRequest
    since: float


class Admission:
    """The queue before the verbs."""

    def __init__(self, *, deadline: float, queue_limit: int, max_bytes: int, clock: Callable[[], float]) -> None:
        """Let questions wait for `deadline` seconds from their beginning, `queue_limit` at once.

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
        self._begun = 0  # questions that had their turn

    @property
    def waiting(self) -> int:
        """Questions in the queue."""
        return len(self._queue)

    def hold(self, size: int) -> bool:
        """Take note of bytes that are held from now on; tell whether that many may be."""
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
        elif now - turn.began > self._deadline:  # it was long under way
            self._reject(turn, Shed.DEADLINE, 0.0)
        else:
            self._take(turn, 0.0)

    def reject(self, turn: WaitingRequest, reason: Shed) -> None:
        """Turn a question away that was never in the queue."""
        self._reject(turn, reason, 0.0)

    async def lull(self, patience: float) -> None:
        """Return when no question waits or comes in, for what takes long and has time; at the latest in `patience`.

        What is done between this and the next `await` is waited for by the questions that come meanwhile, and a second
        call makes way for all of them: none ever waits for two, unless the queue is not empty for that long.
        """
        until = self.clock() + patience
        seen: tuple[int, int, int] | None = None
        while seen != self._progress():  # which a queue makes in each round of the loop
            seen = self._progress()
            if self.clock() >= until:
                break
            # The first lets the loop look at its sockets, the second comes after what it has read there.
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
