"""How long to wait after a failed request, so that a server in trouble is not stormed."""

from collections.abc import Callable


class Backoff:
    """Exponential backoff with jitter, as client-go's reflector has it (wait.NewExponentialBackoffManager).

    The wait doubles from `first` up to `longest` seconds; the jitter adds up to as much again, so that a fleet does not
    come back in step. It starts anew after a success of `longest` seconds: from then on, to wait for less than that
    asks no more often than to wait for that without end. client-go goes by the time since the last failure, 2 min; so
    after a long refusal, that of a missing rule perhaps, a break of the connection a minute later costs it half a
    minute, in which nothing is followed.
    """

    def __init__(self, first: float, longest: float, random: Callable[[], float]) -> None:
        """Take `random` as a source of numbers in [0, 1)."""
        self._first = first
        self._longest = longest
        self._random = random
        self._next = first

    def delay(self, success: float) -> float:
        """Return the seconds to wait after a failure; `success` are the seconds that went well just before it."""
        delay = self._first if success >= self._longest else self._next
        self._next = min(2 * delay, self._longest)
        return delay * (1.0 + self._random())
