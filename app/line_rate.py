"""A limit of log lines a second, so that a storm of events does not fill the disk. The number left out is logged."""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeAlias, TypeVar

_WINDOW: Final = 1.0  # seconds

Key = TypeVar("Key", bound=Hashable)
Later: TypeAlias = Callable[[float, Callable[[], None]], object]


def later_on_this_loop(delay: float, call: Callable[[], None]) -> object:
    """Call something after `delay` seconds, on the running event loop."""
    return asyncio.get_running_loop().call_later(delay, call)


class _Window:
    __slots__ = ("began", "left_out", "told")

    def __init__(self, began: float) -> None:
        self.began = began
        self.told = 0
        self.left_out = 0


class LineRate(Generic[Key]):
    """At most `most` lines a second for each key. Each key keeps state, so there must be few of them."""

    def __init__(self, most: int, clock: Callable[[], float], later: Later, tell: Callable[[Key, int], None]) -> None:
        """`tell` gets the key and the number of lines left out, at the end of the second in question."""
        self._most = most
        self._clock = clock
        self._later = later
        self._tell = tell
        self._windows: dict[Key, _Window] = {}

    def allows(self, key: Key) -> bool:
        """Return whether a line may be written now. If so, the line counts as written."""
        now = self._clock()
        window = self._windows.get(key)
        if window is None or (now - window.began >= _WINDOW and not window.left_out):
            window = self._windows[key] = _Window(now)
        window.told += 1
        if window.told <= self._most:
            return True
        window.left_out += 1
        if window.left_out == 1:
            self._later(max(0.0, window.began + _WINDOW - now), lambda: self._end(key))
        return False

    def _end(self, key: Key) -> None:
        self._tell(key, self._windows.pop(key).left_out)
