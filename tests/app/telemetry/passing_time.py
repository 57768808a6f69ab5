"""A clock that is set by hand, with what is to happen later."""

from collections.abc import Callable


class Clock:
    """A time that is set, and calls that are due at some."""

    def __init__(self) -> None:
        self.now = 100.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def later(self, delay: float, call: Callable[[], None]) -> None:
        self._due.append((self.now + delay, call))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self._due if at <= self.now]
        self._due = [(at, call) for at, call in self._due if at > self.now]
        for call in due:
            call()
