"""Which resource sends the next request to the API server, and when: one plan for all resources of a server.

A resource *fails* from a failed request until it is followed again. The API server is *unwell* while at least two
resources fail. Status codes do not matter: a 403 or a 404 of one resource concerns only that resource, and several
resources get them together only from a server with a problem.

- A resource that fails alone waits for its own backoff.
- While the server is unwell, backoffs do not count. Every `probe_every` seconds, the resource with the oldest last
  request sends one. So the rate does not grow with the number of resources, and a recovery is detected after one such
  interval, even after a long outage.
- A successful request wakes all resources that wait, and all with a stuck request. Requests are then `wake_gap` seconds
  apart. While the server is unwell, the first failure ends this.
- A resource that fails after it was woken has a problem *of its own*, until it is followed. It waits for its own
  backoff, is not woken, and does not count for the server's state. So the success of other resources does not wake it
  repeatedly. It gets one more chance when the server becomes unwell, or relapses: a successful request breaks while the
  server is unwell.

A resource that failed is not tried before `Wait.earliest`: the first wait of its backoff, or the server's Retry-After.
Requests that follow no failure, at the start and after the end of a watch, are `wake_gap` seconds apart, too. So the
first failures can delay the other requests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

Cause: TypeAlias = Literal["backoff", "probe", "woken"]
"""Why a request is made again: its wait is over, it probes an unwell server, or another request succeeded."""

_PROBE_JITTER: Final = 0.25  # share of `probe_every`
_MIN_FAILING: Final = 2  # one resource alone shows nothing about the server
_STUCK: Final = 1.0  # seconds: most responses of a healthy server take less


class Wait(NamedTuple):
    """The wait of a resource after a failure, in times of the clock."""

    until: float
    earliest: float
    """The resource is never tried before this time."""
    is_ours: bool = False
    """Whether Kindred caused the failure: lack of memory, or a bug. The wait then ends exactly at `until`."""


@dataclass(slots=True, eq=False)
class Attempts:
    """The state of one resource's requests. Only `RetryPlan` changes it."""

    tried_at: float = float("-inf")
    is_woken: bool = False
    """Whether the success of another resource ended its wait or caused its latest request."""
    is_answered: bool = True
    """Whether the latest request succeeded."""
    is_failing: bool = False
    was_unwell: bool = False
    """Whether the server was unwell at any time since the resource began to fail."""
    has_own_trouble: bool = False
    wait: Wait | None = None


class Next(NamedTuple):
    """The request that is due next, with its time."""

    attempts: Attempts
    at: float
    cause: Cause | None
    """None: the request follows no failure."""


class RetryPlan:
    """The retries of all resources of one API server."""

    def __init__(self, probe_every: float, wake_gap: float, random: Callable[[], float]) -> None:
        """`probe_every` and `wake_gap` are seconds. `random` returns numbers in [0, 1)."""
        self._probe_every = probe_every
        self._wake_gap = wake_gap
        self._random = random
        self._all: list[Attempts] = []
        self._answers = False  # whether a request has succeeded since the last failure
        self._probe_at = self._wake_at = float("-inf")  # no probe and no woken request before these times
        self.is_unwell = False

    def join(self) -> Attempts:
        """Add a resource."""
        self._all.append(Attempts())
        return self._all[-1]

    def failing(self) -> tuple[int, int]:
        """Return the number of failing resources, and of all resources."""
        return sum(each.is_failing for each in self._all), len(self._all)

    def begin(self, attempts: Attempts, now: float) -> None:
        """Record that a request begins."""
        attempts.tried_at = now
        attempts.is_answered = False

    def answered(self, attempts: Attempts, now: float) -> list[Attempts]:
        """Record that the present request succeeded. Return the resources with stuck requests, which are made again.

        The success wakes the resources that wait, once for each request, because a list has many pages.
        """
        if attempts.is_answered:
            return []
        attempts.is_answered = True
        if not self._answers:
            self._answers = True
            self._wake_at = max(self._wake_at, now + self._wake_gap)  # an accepted watch may break at once
        stuck = [each for each in self._all if self.is_unwell and _is_stuck(each, now)]
        waiting = [each for each in self._all if each.wait is not None and not each.has_own_trouble]
        for each in (*stuck, *waiting):
            each.is_woken = each.is_failing
        return stuck

    def failed(self, attempts: Attempts) -> None:
        """Record that a request failed, or broke."""
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
        """Record that a resource is followed. Return whether the server was unwell since the resource failed."""
        was_unwell = attempts.was_unwell
        attempts.is_failing = attempts.is_woken = attempts.was_unwell = attempts.has_own_trouble = False
        self._judge()
        return was_unwell

    def wait(self, attempts: Attempts, wait: Wait) -> None:
        """Make a resource wait until it is granted a request."""
        attempts.wait = wait
        attempts.is_woken = self._answers and attempts.is_woken

    def leave(self, attempts: Attempts) -> None:
        """End the wait of a resource without a request."""
        attempts.wait = None

    def grant(self, due: Next, now: float) -> None:
        """Record that the wait of a resource is over."""
        due.attempts.wait = None
        due.attempts.is_woken = due.cause == "woken"
        self._probe_at = now + self._probe_every * (1.0 - _PROBE_JITTER * self._random())
        self._wake_at = now + self._wake_gap * (0.5 + self._random())

    def next(self) -> Next | None:
        """Return the request that is due next. None if no resource waits."""
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
