"""A limit of log lines a second, so that a storm of events does not fill the disk. The number left out is logged.

Lines are of one kind if logger, level and template are equal. A line that needs another limit has a LineLimit among
its `extra`.
"""

import logging
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Final, NamedTuple

LIMIT: Final = "line_limit"
"""Key of a LineLimit in the `extra` of a line."""
MAX_KINDS: Final = 1000
"""Kinds of lines in one second that are counted by themselves. The others are one kind."""
_WINDOW: Final = 1.0  # seconds


class LineLimit(NamedTuple):
    """How many lines of a kind are written in a second."""

    by: tuple[str, ...] = ()
    """Fields of the line. Lines with different values of them are of different kinds."""
    most: int = 10


NO_LIMIT: Final = LineLimit(most=sys.maxsize)
_DEFAULT: Final = LineLimit()


class _Window:
    __slots__ = ("began", "left_out", "like", "written")

    def __init__(self, began: float) -> None:
        self.began = began
        self.written = 0
        self.left_out = 0
        self.like: dict[str, object] = {}


class LineRate:
    """Decides which lines are written. It is for one thread at a time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Take a monotonic clock in seconds."""
        self._clock = clock
        self._windows: dict[Hashable, _Window] = {}
        self._storms: list[_Window] = []
        """The windows in which lines were left out, and whose sum is not written yet."""

    @property
    def is_storm(self) -> bool:
        """Return whether `sums` still has lines to yield, now or later."""
        return bool(self._storms)

    def allows(self, line: logging.LogRecord) -> bool:
        """Return whether a line may be written now. If so, it counts as written."""
        limit: LineLimit = getattr(line, LIMIT, _DEFAULT)
        now = self._clock()
        key: Hashable = (line.name, line.levelno, str(line.msg), *(str(getattr(line, name, "")) for name in limit.by))
        if key not in self._windows and len(self._windows) >= MAX_KINDS:
            self._windows = {each: window for each, window in self._windows.items() if now - window.began < _WINDOW}
            key = key if len(self._windows) < MAX_KINDS else ()
        window = self._windows.get(key)
        if window is None or now - window.began >= _WINDOW:
            window = self._windows[key] = _Window(now)
        window.written += 1
        if window.written <= limit.most:
            return True
        window.left_out += 1
        if window.left_out == 1:
            window.like = _like(line, limit)
            self._storms.append(window)
        return False

    def sums(self, *, all_of_them: bool = False) -> Iterator[logging.LogRecord]:
        """Yield a line for each kind that had lines left out in a second that is over, or also in this one."""
        now = self._clock()
        over = [window for window in self._storms if all_of_them or now - window.began >= _WINDOW]
        self._storms = [window for window in self._storms if window not in over]
        for window in over:
            yield logging.makeLogRecord({**window.like, "msg": "lines left out", "left_out": window.left_out})


def _like(line: logging.LogRecord, limit: LineLimit) -> dict[str, object]:
    """Return the parts of a line that its kind has in common, as the contents of a record."""
    fields = {name: getattr(line, name, "") for name in limit.by}
    return {"name": line.name, "levelno": line.levelno, "levelname": line.levelname, "like": str(line.msg), **fields}
