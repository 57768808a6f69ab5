"""How long to wait after a failed request, so that a server in trouble is not stormed."""

from collections.abc import Callable


class Backoff:
    """Exponential backoff with jitter, as client-go's reflector has it (wait.NewExponentialBackoffManager).

    The wait doubles from `first` up to `longest` seconds; the jitter adds up to as much again, so that a fleet does not
    come back in step. After `reset_after` seconds without a failure it starts anew.
    """

    def __init__(self, first: float, longest: float, reset_after: float, random: Callable[[], float]) -> None:
        """Take `random` as a source of numbers in [0, 1)."""
        self._first = first
        self._longest = longest
        self._reset_after = reset_after
        self._random = random
        self._next = first
        self._last_at: float | None = None

    def delay(self, now: float) -> float:
        """Return the seconds to wait after a failure that happened now."""
        if self._last_at is not None and now - self._last_at > self._reset_after:
            self._next = self._first
        self._last_at = now
        delay = self._next
        self._next = min(2 * delay, self._longest)
        return delay * (1.0 + self._random())
