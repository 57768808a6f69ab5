"""The pods that wait for their turn, each once, ordered by due time."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from core.objects.pod import Pod

_MAX: Final = 1000


class QueuedPod(NamedTuple):
    """A pod, its due time, and the number of its earlier turns."""

    pod: Pod
    due: float
    had: int


class EvictionQueue:
    """uid -> the turn of a pod."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` is the clock of `due`, in seconds."""
        self._clock = clock
        self._turns: dict[str, QueuedPod] = {}
        self._news = asyncio.Event()

    def put(self, pod: Pod, delay: float, had: int = 0) -> bool:
        """Give a pod its turn in `delay` seconds. Return False if the queue is full.

        A pod that waits already keeps its due time. Otherwise a pod with frequent requests would never have its turn.
        """
        before = self._turns.get(pod.uid)
        if before is None and len(self._turns) >= _MAX:
            return False
        due = self._clock() + delay
        self._turns[pod.uid] = QueuedPod(pod, due if before is None else min(due, before.due), had)
        self._news.set()
        return True

    def put_back(self, uid: str, due: float) -> None:
        """Move the turn of a waiting pod to `due` at the earliest."""
        turn = self._turns.get(uid)
        if turn is not None:
            self._turns[uid] = turn._replace(due=max(due, turn.due))

    def waits(self, uid: str) -> bool:
        """Return whether a pod waits for its turn."""
        return uid in self._turns

    async def take(self) -> QueuedPod:
        """Wait until a turn is due, remove it from the queue, and return it."""
        while True:
            self._news.clear()
            first = min(self._turns.values(), key=lambda turn: turn.due, default=None)
            wait = first.due - self._clock() if first is not None else None
            if first is not None and wait is not None and wait <= 0:
                return self._turns.pop(first.pod.uid)
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                pass
