"""Which resource asks the API server next, and when: one view of the server, shared by all its resources.

A resource *fails* from a failed request until it is followed again. The API server is *unwell* while two resources fail
or more. No status code decides that: a 403 or a 404 of one resource is the trouble of that one, and several resources
together only get them from a server that has trouble.

- A resource that fails alone waits for its own backoff.
- While the server is unwell, no backoff counts: one request is made each `probe_every` seconds, by the resource whose
  last request is the longest ago. So the rate does not grow with the number of resources, and a server that is well
  again is noticed after one such interval, however long the outage was.
- A request that succeeds wakes all resources that wait, and those whose request is stuck. Requests are then `wake_gap`
  seconds apart. The first failure ends that while the server is unwell.
- A resource that fails after it was woken has trouble *of its own*, until it is followed: it waits for its own backoff,
  is not woken, and tells nothing of the server. So the success of others does not wake it again and again. It gets one
  more chance when the server becomes unwell, or relapses: a request that had succeeded breaks off while it is unwell.

No resource that failed is tried before `Wait.earliest`: the first wait of its backoff, or the server's Retry-After.
Requests that follow no failure, at the start and when a watch has ended, are `wake_gap` seconds apart, too, so that the
first failures hold back the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Cause: TypeAlias = Literal["backoff", "probe", "woken"]
"""Why a request is made again: its wait is over, it is the unwell server's turn to be probed, or another succeeded."""

_PROBE_JITTER: Final = 0.25  # of `probe_every`
_MIN_FAILING: Final = 2  # one resource alone shows nothing about the server
_STUCK: Final = 1.0  # seconds: most answers of a server that is well take less


class Wait(NamedTuple):
    """How long a resource waits after a failure. Times are of the clock."""

    until: float
    earliest: float
    """It is not tried sooner, whatever others do."""
    is_ours: bool = False
    """The failure is not the server's, but ours: want of memory, a fault. The wait is exactly `until` then."""


@dataclass(slots=True, eq=False)
class Attempts:
    """How the requests of one resource stand. Only `RetryPlan` changes it."""

    tried_at: float = float("-inf")
    is_woken: bool = False
    """Its wait, or else the latest request, is owed to another resource's success."""
    is_answered: bool = True
    """The latest request succeeded."""
    is_failing: bool = False
    was_unwell: bool = False
    """The server was unwell since the resource fails."""
    has_own_trouble: bool = False
    wait: Wait | None = None


class Next(NamedTuple):
    """The request that is due next, at a time of the clock."""

    attempts: Attempts
    at: float
    cause: Cause | None
    """None: it follows no failure."""


class RetryPlan:
    """The retries of all resources of one API server."""

    def __init__(self, probe_every: float, wake_gap: float, random: Callable[[], float]) -> None:
        """Take seconds, and `random` as a source of numbers in [0, 1)."""
        self._probe_every = probe_every
        self._wake_gap = wake_gap
        self._random = random
        self._all: list[Attempts] = []
        self._answers = False  # a request has succeeded since the last failure
        self._probe_at = self._wake_at = float("-inf")  # no request sooner
        self.is_unwell = False

    def join(self) -> Attempts:
        """Take in another resource."""
        self._all.append(Attempts())
        return self._all[-1]

    def failing(self) -> tuple[int, int]:
        """Return how many resources fail, of how many."""
        return sum(each.is_failing for each in self._all), len(self._all)

    def begin(self, attempts: Attempts, now: float) -> None:
        """Take note that a request is made."""
        attempts.tried_at = now
        attempts.is_answered = False

    def answered(self, attempts: Attempts, now: float) -> list[Attempts]:
        """Take note that the request under way succeeded; return those that are stuck, to be made anew.

        That wakes those that wait, once for each request: a list has many pages.
        """
        if attempts.is_answered:
            return []
        attempts.is_answered = True
        if not self._answers:
            self._answers = True
            self._wake_at = max(self._wake_at, now + self._wake_gap)  # a watch may break as soon as it is accepted
        stuck = [each for each in self._all if self.is_unwell and _is_stuck(each, now)]
        waiting = [each for each in self._all if each.wait is not None and not each.has_own_trouble]
        for each in (*stuck, *waiting):
            each.is_woken = each.is_failing
        return stuck

    def failed(self, attempts: Attempts) -> None:
        """Take note that a request failed, or broke off."""
        has_broken_off = attempts.is_answered
        attempts.is_failing = attempts.is_answered = True
        if not attempts.has_own_trouble:
            self._answers = False
        self._judge()
        if has_broken_off and self.is_unwell:
            self._forgive()
        elif attempts.is_woken:
            attempts.has_own_trouble = True
            self._judge()
        attempts.is_woken = False

    def followed(self, attempts: Attempts) -> bool:
        """Take note that a resource is followed; return whether the server was unwell since it failed."""
        was_unwell = attempts.was_unwell
        attempts.is_failing = attempts.is_woken = attempts.was_unwell = attempts.has_own_trouble = False
        self._judge()
        return was_unwell

    def wait(self, attempts: Attempts, wait: Wait) -> None:
        """Let a resource wait until it is granted a request."""
        attempts.wait = wait
        attempts.is_woken = self._answers and attempts.is_woken

    def leave(self, attempts: Attempts) -> None:
        """Let a resource wait no longer, without a request."""
        attempts.wait = None

    def grant(self, due: Next, now: float) -> None:
        """Take note that the wait of a resource is over."""
        due.attempts.wait = None
        due.attempts.is_woken = due.cause == "woken"
        self._probe_at = now + self._probe_every * (1.0 - _PROBE_JITTER * self._random())
        self._wake_at = now + self._wake_gap * (0.5 + self._random())

    def next(self) -> Next | None:
        """Return the request that is due next; None if no resource waits."""
        waiting = [self._due(each, each.wait) for each in self._all if each.wait is not None]
        return min(waiting, key=lambda each: (each.at, each.attempts.tried_at), default=None)

    def _due(self, attempts: Attempts, wait: Wait) -> Next:
        if wait.is_ours:
            return Next(attempts, wait.until, "backoff")
        may_go_on = self._answers and (attempts.is_woken or not attempts.is_failing)
        if self.is_unwell and not attempts.has_own_trouble and not may_go_on:
            return Next(attempts, max(wait.earliest, self._probe_at), "probe")
        if attempts.is_woken:
            return Next(attempts, max(wait.earliest, self._wake_at), "woken")
        return Next(attempts, max(wait.until, self._wake_at), "backoff" if attempts.is_failing else None)

    def _judge(self) -> None:
        was_unwell = self.is_unwell
        self.is_unwell = sum(each.is_failing and not each.has_own_trouble for each in self._all) >= _MIN_FAILING
        if not self.is_unwell:
            return
        if not was_unwell:
            self._forgive()
        for each in self._all:
            each.was_unwell |= each.is_failing and not each.has_own_trouble

    def _forgive(self) -> None:
        for each in self._all:
            each.has_own_trouble = False


def _is_stuck(attempts: Attempts, now: float) -> bool:
    return attempts.wait is None and not attempts.is_answered and now - attempts.tried_at >= _STUCK
