"""How far the mirror can be trusted: what each watched resource has come to, and whether that is recent enough."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from app.watch.resources import Resource


class ResourceState:
    """What list+watch of one resource has come to. Times are of the monotonic clock, in seconds."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.synced = False
        """Whether the mirror has ever held all objects of the resource."""
        self.followed_at = 0.0
        """When the server last showed that the mirror follows it: a line of a watch that resumes from what the mirror
        has, such a watch standing open for a second, or the begin of a list that was completed since, as it tells the
        state of then. Bytes of a list that is not complete, or of a watch that breaks at once, show nothing."""
        self.last_event_at: float | None = None
        self.requests: Counter[str] = Counter()  # list, watch, watch-list -> number
        self.relists: Counter[str] = Counter()  # reason -> number
        self.events: Counter[str] = Counter()  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR -> number
        self.failures: Counter[str] = Counter()  # kind of error -> number
        self.decode_errors = 0
        self.decode_seconds = 0.0
        self.problem = ""
        """What went wrong with the last request, one line; empty when it went well."""
        self.forbidden = False

    @property
    def plural(self) -> str:
        """The resource's name in the API, `pods`."""
        return self.resource.plural

    def standing(self, now: float, stale_after: float) -> "Standing":
        """Judge the mirror for this resource alone."""
        if not self.synced:
            return Standing.NOT_SYNCED
        return Standing.FRESH if now - self.followed_at <= stale_after else Standing.STALE

    def lacks(self, now: float, stale_after: float) -> str:
        """Return why the mirror cannot be trusted for this resource, one line; empty when it can."""
        if self.standing(now, stale_after) is Standing.FRESH:
            return ""
        state = f"stale for {now - self.followed_at:.0f} s" if self.synced else "not synced"
        remedy = f"; the RBAC rule that is missing: {self.resource.rbac_rule}" if self.forbidden else ""
        problem = f" ({self.problem})" if self.problem else ""
        return f"{self.plural}: {state}{problem}{remedy}"


class Standing(Enum):
    """Whether questions can be answered from the mirror."""

    FRESH = "fresh"
    STALE = "stale"
    """It was complete, and has not followed the server for longer than allowed."""
    NOT_SYNCED = "not synced"
    """It never was complete: no answer can be right."""


class Freshness:
    """The states of all watched resources, judged together. Without resources (a dump) it is always fresh."""

    def __init__(self, states: Sequence[ResourceState], stale_after: float, clock: Callable[[], float]) -> None:
        """Take `stale_after` in seconds of `clock`."""
        self.states = states
        self.stale_after = stale_after
        self._clock = clock

    def standing(self) -> Standing:
        """Judge the mirror now; cheap enough for every request."""
        now = self._clock()
        worst = Standing.FRESH
        for state in self.states:
            standing = state.standing(now, self.stale_after)
            if standing is Standing.NOT_SYNCED:
                return standing
            if standing is Standing.STALE:
                worst = standing
        return worst

    def problems(self) -> list[str]:
        """Return why the mirror is not fresh, a line for each resource; empty when it is."""
        now = self._clock()
        return [lack for state in self.states if (lack := state.lacks(now, self.stale_after))]

    def age(self, state: ResourceState) -> float | None:
        """Return the seconds since the mirror was last seen to follow a resource; None before it is synced."""
        return self._clock() - state.followed_at if state.synced else None


OF_A_DUMP: Final = Freshness((), float("inf"), time.monotonic)
"""A mirror that was loaded once and follows nothing is what was asked for."""
