"""How long to wait after a failed request, so that a server in trouble is not stormed."""

from collections.abc import Callable


class Backoff:
    """Exponential backoff with jitter, as client-go's reflector has it (wait.NewExponentialBackoffManager).

    The wait doubles from `first` up to `longest` seconds; the jitter adds up to as much again, so that a fleet does not
    come back in step. The time of success before a failure counts as a part of the wait, which is never less than
    `first`. So a resource that breaks again and again is requested no more often than one that never works. After a
    success of `longest` seconds the waits begin anew. client-go uses the time since the last failure, 2 min. So after a
    long rejection, perhaps for a missing rule, a broken connection a minute later costs it half a minute without a
    watch.
    """

    def __init__(self, first: float, longest: float, random: Callable[[], float]) -> None:
        """Take `random` as a source of numbers in [0, 1)."""
        self.first = first
        self._longest = longest
        self._random = random
        self._last = 0.0  # without jitter; 0: the next wait is the first

    def delay(self, success: float) -> float:
        """Return the seconds to wait after a failure; `success` are the seconds that went well just before it."""
        if success >= self._longest:
            self.reset()
        self._last = min(2 * self._last or self.first, self._longest)
        return self._jittered(max(self.first, self._last - success))

    def same_delay(self) -> float:
        """Return the seconds to wait after a failure that is not the resource's own: as long as the last time."""
        self._last = self._last or self.first
        return self._jittered(self._last)

    def reset(self) -> None:
        """Let the next wait be the first."""
        self._last = 0.0

    def _jittered(self, wait: float) -> float:
        return wait * (1.0 + self._random())
