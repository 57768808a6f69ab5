"""An event loop in which waiting takes no time: its clock jumps to the next due call."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Clock(selectors.SelectSelector):
    """Selects no file. If no call is ready, its time advances at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Advance the time by `timeout` seconds."""
        if timeout is None:
            raise RuntimeError("all wait, and nothing is ever going to happen")
        self.now += max(timeout, 0.0)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Begins at time 0. It does not support sockets, pipes and threads."""

    def __init__(self) -> None:
        self._virtual = _Clock()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual.now

    def advance(self, seconds: float) -> None:
        """Let time pass in which nothing runs, as when the process is paused."""
        self._virtual.now += seconds


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, like `asyncio.run`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
