"""The effects of a failed request of a reflector: the wait before the next one, the resource's problem, and the log.

Each resource waits for itself: 0.8 s, doubled with each failure up to 1.7 s, less up to a quarter of jitter. Then it
takes its turn: retries of all resources are 0.07 s apart. So 24 resources notice a recovery within 2 s, and a replica
sends at most 15 retries a second in an outage. client-go's 30 s are for thousands of clients.

A resource that alone fails for a minute, such as one without a rule of RBAC, waits up to 20 s. So it does not fill the
audit log of the API server for ever.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from app.api_server.client import ApiClient, ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.feeds.freshness import ResourceState, cause_of
from app.feeds.memory import MemoryPressureError
from app.feeds.stream import BrokenWatchError, InStreamError, status_of
from app.objects.decode import DecodeError
from app.process.logs import one_line

log = logging.getLogger(__name__)

OUTSIDE_ERRORS: Final = (ApiError, CredentialsError, DecodeError, BrokenWatchError)
"""Errors that the server, or the network in between, may have caused. Any other error is a bug of Kindred."""

_JITTER: Final = 0.25  # share of a wait
_ALONE_AFTER: Final = 60.0  # seconds of failures
_SERVER_FAILS: Final = 2  # failing resources; one alone shows nothing about the server
_STUCK: Final = 1.0  # seconds: most responses of a healthy server take less
_PROBE: Final = 0.5  # seconds between two probes, and for the response to one
_MAX_VERSION_BYTES: Final = 64 * 1024
_SETTLED: Final = 3.0  # seconds: a resource that fails does so again within 2 s
_UNSETTLED: Final = 15.0  # seconds after which failures are logged although they come and go
_AGAIN: Final = 60.0  # seconds between two log lines about the same resources
_MAX_LISTED_PROBLEMS: Final = 3
_MAX_RETRY_AFTER: Final = 300.0  # seconds: longer values are cut


class Timing(msgspec.Struct, frozen=True):
    """The waits of the reflectors, in seconds."""

    backoff_first: float = 0.8
    backoff_longest: float = 1.7
    backoff_alone: float = 20.0
    """Longest wait of a resource that alone fails for a minute, or that fails by a bug of Kindred."""
    gap: float = 0.07
    """Between two retries of the resources of a server. A request that follows no failure is made at once."""
    watch_timeout: int = 300
    """Requested duration of a watch: from this time to twice as long, so that not all watches end at once."""
    shortest_watch: float = 1.0
    """A watch without events that ends sooner is an error. A watch with events is not resumed sooner."""
    quiet: float = 20.0
    """A watch that ends after this time without an event is checked. Proxies end quiet ones after 30 s and more."""
    initial_events: float = 120.0
    """Longest wait for the end of the initial events. A server without WatchList never sends it."""
    memory: float = 30.0
    """Shortest wait after a sync that failed for lack of memory, because it wasted seconds of CPU."""
    absent: float = 300.0
    """Time between two checks for a resource that the server lacks. Only an upgrade can add it."""
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    """Numbers in [0, 1), for jitter."""


class FailureLog:
    """Logs which resources of an API server fail: one line when they have settled, and one a minute while they fail.

    In an outage the resources fail one after the other. A line for each one would not say whether all do.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: frozenset[str] = frozenset()
        self._logged_at = clock()
        self._seen: frozenset[str] = frozenset()
        self._seen_since = self._other_since = self._logged_at

    def look(self, states: Sequence[ResourceState]) -> None:
        """Log the present failures if it is time. Called twice a second."""
        now = self._clock()
        failing = frozenset(state.plural for state in states if state.problem)
        if failing != self._seen:
            if self._seen == self._logged:
                self._other_since = now
            self._seen, self._seen_since = failing, now
        if failing == self._logged:
            is_due = bool(failing) and now - self._logged_at >= _AGAIN
        else:
            has_settled = now - self._seen_since >= _SETTLED or now - self._other_since >= _UNSETTLED
            is_due = has_settled or not failing
        if is_due:
            self._logged, self._logged_at = failing, now
            if failing:
                log.warning("%s", _failures_text(states))
            else:
                log.info("all %d resources are followed again", len(states))


def _failures_text(states: Sequence[ResourceState]) -> str:
    """Return the number of failing resources, and what is wrong with which of them."""
    found: dict[str, list[str]] = {}
    for state in states:
        if state.problem:
            remedy = f"; the RBAC rule that is missing: {state.resource.rbac_rule}" if state.forbidden else ""
            found.setdefault(f"{cause_of(state.problem)}{remedy}", []).append(state.plural)
    failing = sum(map(len, found.values()))
    number = f"all {failing}" if failing == len(states) else f"{failing} of {len(states)}"
    by_number = sorted(found.items(), key=lambda each: -len(each[1]))
    rendered = [f"{', '.join(names)}: {problem}" for problem, names in by_number[:_MAX_LISTED_PROBLEMS]]
    more = failing - sum(len(names) for _, names in by_number[:_MAX_LISTED_PROBLEMS])
    return f"{number} resources fail: {'; '.join(rendered)}{f'; and {more} more (kindred status)' if more else ''}"


class Retries:
    """The resources of one API server: they retry in turn, and a network that is back frees stuck requests."""

    def __init__(self, client: ApiClient, timing: Timing) -> None:
        self.timing = timing
        self.all: list[Retry] = []
        self._client = client
        self._failures = FailureLog(timing.clock)
        self._free_at = float("-inf")  # no retry before

    async def wait(self, seconds: float) -> None:
        """Return when a request may be retried, after at least so many seconds."""
        await asyncio.sleep(seconds)
        now = self.timing.clock()
        at = max(now, self._free_at)
        self._free_at = at + self.timing.gap
        if at > now:
            await asyncio.sleep(at - now)

    async def probe(self) -> None:
        """Log what fails, and make stuck requests again when the network is back, until cancelled.

        TCP repeats lost packets too late. A server that is slow is no reason. It responds to GET /version.
        """
        is_reached = True
        while True:
            await asyncio.sleep(_PROBE)
            self._failures.look([each.state for each in self.all])
            stuck = [each for each in self.all if each.is_stuck()]
            if not stuck or sum(each.is_failing for each in self.all) < _SERVER_FAILS:
                is_reached = True
                continue
            was_reached, is_reached = is_reached, await self._is_reached()
            if is_reached and not was_reached:
                for each in stuck:
                    each.free()

    def is_server_unwell(self) -> bool:
        """Return whether several resources fail for other reasons than a missing rule, or trouble of their own."""
        return sum(each.may_be_the_servers() for each in self.all) >= _SERVER_FAILS

    async def _is_reached(self) -> bool:
        try:
            async with asyncio.timeout(_PROBE):
                await self._client.get("/version", {}, _MAX_VERSION_BYTES)
        except StatusError:
            return True
        except (ApiError, CredentialsError, TimeoutError):
            return False
        return True


class Retry:
    """The requests of one resource: when the next one is made after a failure, and what is reported of it."""

    def __init__(self, state: ResourceState, others: Retries, interrupt: Callable[[], None]) -> None:
        """Join the resources of a server. `interrupt` ends the present request, so that it is made again."""
        self.state: Final = state
        self._others = others
        self._timing = others.timing
        self._interrupt = interrupt
        self._is_freed = False  # whether a stuck request was ended since the last response or failure
        self._began: float | None = None  # time of the present request; None once it has succeeded or failed
        self._wait = 0.0  # the last wait without jitter; 0: the next one is the first
        self._failing_since: float | None = None
        self.followed_since: float | None = None
        others.all.append(self)

    @property
    def is_failing(self) -> bool:
        """Whether a request failed, and the resource was not followed since."""
        return self._failing_since is not None

    def begin(self) -> None:
        """Record that a request begins."""
        self._began = self._timing.clock()

    def succeeded(self) -> None:
        """Record that the present request succeeded."""
        self._began, self._is_freed = None, False

    def is_stuck(self) -> bool:
        """Return whether the present request has had no response for a second, and was not made again already."""
        return self._began is not None and not self._is_freed and self._timing.clock() - self._began >= _STUCK

    def free(self) -> None:
        """Make a stuck request again. Only once, or a slow server with such pauses would never get to respond."""
        self._is_freed = True
        self._interrupt()

    def followed(self) -> None:
        """Record that the resource is followed again."""
        if self.followed_since is None:
            self.followed_since, self._failing_since = self._timing.clock(), None
        self.state.problem, self.state.forbidden = "", False

    def failed(self, error: Exception, shortest: float = 0.0) -> float:
        """Record a failure. Return the seconds before the next request, at least `shortest`."""
        now = self._timing.clock()
        is_ours = not isinstance(error, OUTSIDE_ERRORS)
        self._began, self._is_freed = None, False
        if not is_ours and self._failing_since is None:
            self._failing_since = now
        status = status_of(error)
        retry_after = min((status.retry_after if status else None) or 0.0, _MAX_RETRY_AFTER)
        if not isinstance(error, MemoryPressureError):
            self.state.listed = 0
        self.state.failures[_kind(error)] += 1
        self.state.problem = one_line(str(error)) or type(error).__name__
        self.state.forbidden = status is not None and status.code == HTTPStatus.FORBIDDEN
        delay = max(self._delay(now, is_ours=is_ours), shortest, retry_after)
        log.debug("%s: %s; next attempt within %.1f s", self.state.plural, self.state.problem, delay)
        return delay

    def is_absence(self, error: Exception) -> bool:
        """Return whether the server lacks the resource, and the resource is optional.

        While other resources fail, a 404 may come from a proxy or from a failing server, and does not count.
        """
        is_missing = isinstance(error, StatusError) and error.code == HTTPStatus.NOT_FOUND
        return is_missing and self.state.resource.optional and not self._others.is_server_unwell()

    def absent(self) -> float:
        """Record that the server lacks the resource. Return the seconds before the next check.

        If it may have another version of the resource, there is no wait.
        """
        self.state.objects = self.state.listed = 0
        if self.state.try_next_version():
            return 0.0
        if not self.state.absent:
            log.warning(
                "%s: the API server does not have %s, skipped",
                self.state.plural,
                self.state.resource.api_versions,
                extra=self.state.in_log,
            )
        self.followed()
        self.state.synced = self.state.absent = True
        return self._timing.absent

    def may_be_the_servers(self) -> bool:
        """Return whether the resource fails, and perhaps because of the server."""
        return self.is_failing and not self.state.forbidden and not self._is_alone(self._timing.clock())

    def _is_alone(self, now: float) -> bool:
        """Return whether the resource fails for a minute, while most others do not."""
        if self._failing_since is None or now - self._failing_since < _ALONE_AFTER:
            return False
        return 2 * sum(each.is_failing for each in self._others.all) < len(self._others.all)

    def _delay(self, now: float, *, is_ours: bool) -> float:
        timing = self._timing
        longest = timing.backoff_alone if is_ours or self._is_alone(now) else timing.backoff_longest
        if self.followed_since is not None and now - self.followed_since >= timing.backoff_longest:
            self._wait = 0.0
        self.followed_since = None
        wait = min(2 * self._wait or timing.backoff_first, longest)
        self._wait = max(self._wait, wait)  # an outage shortens a wait, and does not make it grow again
        return wait * (1.0 - _JITTER * timing.random())


def _kind(error: Exception) -> str:
    """Return a short name of few values, for a metric: `410`, `in-stream 500`, `ConnectionFailed`."""
    status = status_of(error)
    if status is not None:
        return f"in-stream {status.code}" if isinstance(error, InStreamError) else str(status.code)
    return type(error).__name__.removesuffix("Error")
