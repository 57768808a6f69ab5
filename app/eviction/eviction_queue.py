"""The pods that wait for their turn, each once, the one that is due first at the head."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from core.objects.pod import Pod

_MAX: Final = 1000


class QueuedPod(NamedTuple):
    """A pod, when it is due, and how many turns it has had before."""

    pod: Pod
    due: float
    had: int


class EvictionQueue:
    """uid -> the turn of a pod."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Take the clock of `due`, in seconds."""
        self._clock = clock
        self._turns: dict[str, QueuedPod] = {}
        self._news = asyncio.Event()

    def put(self, pod: Pod, delay: float, had: int = 0) -> bool:
        """Let a pod have its turn so many seconds from now; return False if the queue is full.

        If it waits already, it is not put back: a pod with frequent requests would never have its turn.
        """
        before = self._turns.get(pod.uid)
        if before is None and len(self._turns) >= _MAX:
            return False
        due = self._clock() + delay
        self._turns[pod.uid] = QueuedPod(pod, due if before is None else min(due, before.due), had)
        self._news.set()
        return True

    def put_back(self, uid: str, due: float) -> None:
        """Let a pod not have its turn before a time, if it waits for one."""
        turn = self._turns.get(uid)
        if turn is not None:
            self._turns[uid] = turn._replace(due=max(due, turn.due))

    def waits(self, uid: str) -> bool:
        """Return whether a pod waits for its turn."""
        return uid in self._turns

    async def take(self) -> QueuedPod:
        """Wait until a turn is due, and take it away."""
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
