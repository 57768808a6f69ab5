"""The wait after a failed request, so that retries do not overload a failing server."""

from collections.abc import Callable


class Backoff:
    """Exponential backoff with jitter, as in client-go's reflector (wait.NewExponentialBackoffManager).

    The wait doubles from `first` up to `longest` seconds. The jitter adds up to 100 %, so that many clients do not
    retry at the same time. The time of success before a failure is subtracted from the wait, which is never less than
    `first`. So a resource that fails repeatedly is requested no more often than one that never works.

    After a success of `longest` seconds the waits start again at `first`. client-go instead resets them 2 min after the
    last failure. If a connection breaks a minute after a long rejection, for example for a missing rule, client-go has
    no watch for half a minute.
    """

    def __init__(self, first: float, longest: float, random: Callable[[], float]) -> None:
        """`random` returns numbers in [0, 1)."""
        self.first = first
        self._longest = longest
        self._random = random
        self._last = 0.0  # seconds of the last wait without jitter; 0: the next wait is the first

    def delay(self, success: float) -> float:
        """Return the seconds to wait after a failure. `success`: seconds of success just before the failure."""
        if success >= self._longest:
            self.reset()
        self._last = min(2 * self._last or self.first, self._longest)
        return self._jittered(max(self.first, self._last - success))

    def same_delay(self) -> float:
        """Return the seconds to wait after a failure that the resource did not cause: the last wait again."""
        self._last = self._last or self.first
        return self._jittered(self._last)

    def reset(self) -> None:
        """Start the waits again at `first`."""
        self._last = 0.0

    def _jittered(self, wait: float) -> float:
        return wait * (1.0 + self._random())
