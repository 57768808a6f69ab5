"""Freshness of the mirror: the state of each watched resource, and whether it is recent enough."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from app.objects.resources import Resource
from core.events import Kind


class ResourceState:
    """The state of list+watch of one resource. Times are of the monotonic clock, in seconds."""

    def __init__(self, resource: Resource, *, serves: bool = True) -> None:
        self.resource = resource
        self.serves = serves
        """Whether schedulers are answered from its objects; others serve explanations or groups."""
        self.synced = False
        """Whether the mirror has ever held all objects of the resource."""
        self.absent = False
        """Whether the server does not have the resource, so that there is nothing to follow."""
        self.followed_at = 0.0
        """When the server last showed that the mirror follows it. Signs are a line of a watch that resumes from the
        mirror's version, such a watch open for a second, or the begin of a list that was completed since. Bytes of a
        list that is not complete, or of a watch that breaks at once, show nothing."""
        self.last_event_at: float | None = None
        self.requests: Counter[str] = Counter()  # list, watch, watch-list -> number
        self.relists: Counter[str] = Counter()  # reason -> number
        self.events: Counter[str] = Counter()  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR -> number
        self.failures: Counter[str] = Counter()  # kind of error -> number
        self.retries: Counter[str] = Counter()  # backoff, probe, woken -> number
        self.decode_errors = 0
        self.objects = 0
        """The number of objects that the mirror has got."""
        self.listed = 0
        """How many a sync that is under way has gathered, or the last one, if it ended for want of memory."""
        self.read_objects = 0
        self.read_bytes = 0
        """Of the objects that were decoded so far, as they came."""
        self.decode_seconds = 0.0
        self.problem = ""
        """The error of the last request, in one line; empty if it succeeded."""
        self.forbidden = False

    @property
    def plural(self) -> str:
        """The resource's name in the API, `pods`."""
        return self.resource.plural

    def held(self) -> int:
        """Return how many objects there are in memory. A sync shares the known objects."""
        return max(self.objects, self.listed)

    def wire_size(self) -> int:
        """Return the bytes that they were on the wire, about: as many times the mean of those that were decoded."""
        return self.held() * self.read_bytes // self.read_objects if self.read_objects else 0

    def status(self, now: float, stale_after: float) -> "SyncStatus":
        """Judge the mirror for this resource alone."""
        if not self.synced:
            return SyncStatus.NOT_SYNCED
        return SyncStatus.FRESH if self.absent or now - self.followed_at <= stale_after else SyncStatus.STALE

    def lacks(self, now: float, stale_after: float) -> str:
        """Return why the mirror cannot be trusted for this resource, one line; empty when it can."""
        if self.status(now, stale_after) is SyncStatus.FRESH:
            return ""
        state = f"stale for {now - self.followed_at:.0f} s" if self.synced else "not synced"
        remedy = f"; the RBAC rule that is missing: {self.resource.rbac_rule}" if self.forbidden else ""
        problem = f" ({self.problem})" if self.problem else ""
        return f"{self.plural}: {state}{problem}{remedy}"


class SyncStatus(Enum):
    """Whether requests can be evaluated with the mirror."""

    FRESH = "fresh"
    STALE = "stale"
    """It was complete, and has not followed the server for longer than allowed."""
    NOT_SYNCED = "not synced"
    """It never was complete: no result can be right."""


class Freshness:
    """The states of all watched resources, judged together. Without resources (a dump) it is always fresh."""

    def __init__(
        self,
        states: Sequence[ResourceState],
        stale_after: float,
        clock: Callable[[], float],
        unknown_release: Callable[[], str] = lambda: "",
    ) -> None:
        """Take `stale_after` in seconds of `clock`.

        `unknown_release` says why it is not known yet which release of Kubernetes is answered for, one line; empty if
        it is.
        """
        self.states = states
        self._unknown_release = unknown_release
        self.stale_after = stale_after
        self._clock = clock

    def status(self) -> SyncStatus:
        """Judge the mirror now; cheap enough for every request."""
        if self._unknown_release():
            return SyncStatus.NOT_SYNCED
        now = self._clock()
        worst = SyncStatus.FRESH
        for state in self.states:
            if not state.serves:
                continue
            standing = state.status(now, self.stale_after)
            if standing is SyncStatus.NOT_SYNCED:
                return standing
            if standing is SyncStatus.STALE:
                worst = standing
        return worst

    def problems(self) -> list[str]:
        """Return why the mirror is not fresh, a line for the release and each resource that serves."""
        now = self._clock()
        lacks = (state.lacks(now, self.stale_after) for state in self.states if state.serves)
        return [*filter(None, (self._unknown_release(), *lacks))]

    def missing_for_explanations(self) -> Mapping[Kind, str]:
        """Return why explanations cannot rely on the objects of a kind, for each kind that only they read."""
        now = self._clock()
        lacks = {state.resource.kind: state.lacks(now, self.stale_after) for state in self.states if not state.serves}
        return {kind: why for kind, why in lacks.items() if why}

    def age(self, state: ResourceState) -> float | None:
        """Return the seconds since the mirror was last seen to follow a resource.

        None before it is synced, and if the server does not have it.
        """
        return self._clock() - state.followed_at if state.synced and not state.absent else None


OF_A_DUMP: Final = Freshness((), float("inf"), time.monotonic)
"""A mirror that was loaded once and follows nothing is fresh: the operator chose that."""
