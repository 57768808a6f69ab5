"""Freshness of the mirror: the state of each watched resource, and whether it is recent enough."""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final

from app.objects.resources import Resource
from app.process.logs import LIMIT, LineLimit
from core.events import Kind, Missing

_request: Final = re.compile(r"\A[A-Z]+ \S+ at (?=\S+: )")


def cause_of(problem: str) -> str:
    """Return a problem without its request, `GET /api/v1/pods at `: an outage has one cause for all resources."""
    return _request.sub("", problem, count=1)


class ResourceState:
    """The state of list+watch of one resource. Times are seconds of the monotonic clock."""

    def __init__(self, resource: Resource, *, serves: bool = True) -> None:
        self.resource = resource
        """In the version that is followed, or tried next."""
        self._untried = [*resource.versions()][1:]
        self._newest: Final = resource
        self.serves = serves
        """Whether requests of schedulers need its objects. If not, only explanations or groups do."""
        self.in_log: Final[Mapping[str, object]] = {"resource": resource.name, LIMIT: LineLimit(("resource",))}
        """The `extra` of log lines that each resource may write at the same time."""
        self.synced = False
        """Whether the mirror has had all objects of the resource at least once."""
        self.absent = False
        """Whether the server lacks the resource, so that there is nothing to follow."""
        self.on_sync: Callable[[], None] = lambda: None
        """Called after a sync, which may have begun long ago, or of a resource that was absent."""
        self.followed_at = 0.0
        """Time of the last evidence that the mirror follows the server. Evidence is a line of a watch that resumes from
        the mirror's version, such a watch open for a second, or the begin of a completed list. Bytes of an unfinished
        list, or of a watch that breaks at once, are no evidence."""
        self.requests: Counter[str] = Counter()  # list, watch, watch-list -> number
        self.relists: Counter[str] = Counter()  # reason -> number
        self.events: Counter[str] = Counter()  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR -> number
        self.failures: Counter[str] = Counter()  # kind of error -> number
        self.decode_errors = 0
        self.objects = 0
        """Number of objects in the mirror."""
        self.listed = 0
        """Number of objects of the sync in progress, or of the last sync if it ended for lack of memory."""
        self.read_objects = 0
        self.read_bytes = 0
        """Bytes, as received, of the objects that were decoded so far."""
        self.problem = ""
        """The error of the last request, in one line. Empty if the request succeeded."""
        self.forbidden = False

    @property
    def plural(self) -> str:
        """The resource's name, `pods`."""
        return self.resource.name

    def try_next_version(self) -> bool:
        """Use the next version, because the server lacks the present one. Return whether there is an untried one.

        If not, the next try begins with the newest version.
        """
        is_next = bool(self._untried)
        if is_next:
            self.resource = self._untried.pop(0)
        else:
            self.resource = self._newest
            self._untried = [*self._newest.versions()][1:]
        return is_next

    def complete(self, as_of: float) -> None:
        """Record that the mirror has all objects, and follows the server since the begin of a list, or since now."""
        self.synced, self.absent = True, False
        self.followed_at = as_of
        # The server has the present version. Once it is lacking, all others are tried.
        self._untried = [each for each in self._newest.versions() if each.version != self.resource.version]
        self.on_sync()

    def stored(self) -> int:
        """Return the number of objects in memory. A sync shares the known objects with the mirror."""
        return max(self.objects, self.listed)

    def wire_size(self) -> int:
        """Return the estimated bytes of the held objects on the wire: their number times the mean of decoded ones."""
        return self.stored() * self.read_bytes // self.read_objects if self.read_objects else 0

    def status(self, now: float, stale_after: float) -> "SyncStatus":
        """Return the status of the mirror for this resource alone."""
        if not self.synced:
            return SyncStatus.NOT_SYNCED
        return SyncStatus.FRESH if self.absent or now - self.followed_at <= stale_after else SyncStatus.STALE

    def lacks(self, now: float, stale_after: float) -> str:
        """Return why the mirror is not fresh for this resource, in one line. Empty if it is fresh."""
        if self.status(now, stale_after) is SyncStatus.FRESH:
            is_unknown = self.absent and self.resource.absence_is_unknown
            return f"{self.plural}: the API server does not have {self.resource.api_versions}" if is_unknown else ""
        state = f"stale for {now - self.followed_at:.0f} s" if self.synced else "not synced"
        remedy = f"; the RBAC rule that is missing: {self.resource.rbac_rule}" if self.forbidden else ""
        problem = f" ({self.problem})" if self.problem else ""
        return f"{self.plural}: {state}{problem}{remedy}"


class SyncStatus(Enum):
    """Whether requests can be evaluated with the mirror."""

    FRESH = "fresh"
    STALE = "stale"
    """The mirror was complete, but has not followed the server for longer than allowed."""
    NOT_SYNCED = "not synced"
    """The mirror has never been complete. No result can be right."""


class Freshness:
    """The joint state of all watched resources. A mirror without watched resources (a dump) is always fresh."""

    def __init__(
        self,
        states: Sequence[ResourceState],
        stale_after: float,
        clock: Callable[[], float],
        unknown_release: Callable[[], str] = lambda: "",
        lacking: Mapping[Kind, Missing] = {},
    ) -> None:
        """`stale_after` is in seconds of `clock`. `lacking` are kinds that a dump has no object of, with the reason.

        `unknown_release` returns why the release of Kubernetes is not known yet, in one line. Empty if it is known.
        """
        self.states = states
        self._lacking = lacking
        self._unknown_release = unknown_release
        self.stale_after = stale_after
        self._clock = clock
        self._followed_at = math.nan
        """The least `followed_at` when the mirror was last looked at and fresh, else NaN. The release stays known, and
        `followed_at` only grows but for a sync, so the mirror is fresh at least as long as this time is recent."""
        for state in states:
            state.on_sync = self._look_again

    def status(self) -> SyncStatus:
        """Return the present status of the mirror. For most requests it costs one comparison."""
        if self._clock() - self._followed_at <= self.stale_after:  # false for NaN
            return SyncStatus.FRESH
        return self._status_now()

    def _look_again(self) -> None:
        self._followed_at = math.nan

    def _status_now(self) -> SyncStatus:
        if self._unknown_release():
            return SyncStatus.NOT_SYNCED
        now = self._clock()
        serving = [state for state in self.states if state.serves]
        found = {state.status(now, self.stale_after) for state in serving}
        for worst in (SyncStatus.NOT_SYNCED, SyncStatus.STALE):
            if worst in found:
                return worst
        self._followed_at = min((state.followed_at for state in serving if not state.absent), default=math.inf)
        return SyncStatus.FRESH

    def problems(self) -> list[str]:
        """Return why the mirror is not fresh: a line for the release, and for each resource that requests need."""
        now = self._clock()
        lacks = (state.lacks(now, self.stale_after) for state in self.states if state.serves)
        return [*filter(None, (self._unknown_release(), *lacks))]

    def kinds_of_problems(self) -> list[str]:
        """Return why the mirror is not fresh, without the names of resources and texts of the API server."""
        status = self.status()
        return [] if status is SyncStatus.FRESH else [f"the mirror is {status.value}"]

    def missing_for_explanations(self) -> Mapping[Kind, Missing]:
        """Return why the objects of a kind are not reliable, for kinds that only explanations read or a dump lacks."""
        now = self._clock()
        lacks = {state.resource.kind: state.lacks(now, self.stale_after) for state in self.states if not state.serves}
        return {**self._lacking, **{kind: Missing(why) for kind, why in lacks.items() if why}}

    def age(self, state: ResourceState) -> float | None:
        """Return the seconds since the last evidence that the mirror follows a resource.

        None before the first sync, and if the server lacks the resource.
        """
        return self._clock() - state.followed_at if state.synced and not state.absent else None


def of_a_dump(lacking: Mapping[Kind, Missing]) -> Freshness:
    """Return the freshness of a mirror that was loaded from a dump, and follows nothing: the user chose it."""
    return Freshness((), float("inf"), time.monotonic, lacking=lacking)


OF_A_DUMP: Final = of_a_dump({})
"""The freshness of a dump that lacks nothing."""
