"""The effects of a failed request: the wait before the next one, a log line, and the resource's problem."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from app.api_server.client import ApiError, StatusError
from app.api_server.credentials import CredentialsError
from app.logs import one_line
from app.objects.decode import DecodeError
from app.watch.backoff import Backoff
from app.watch.freshness import ResourceState
from app.watch.memory_watch import MemoryPressureError
from app.watch.retries import ResourceRetries
from app.watch.retry_plan import Wait
from app.watch.watch_stream import BrokenWatchError, InStreamError

log = logging.getLogger(__name__)

OUTSIDE_ERRORS: Final = (ApiError, CredentialsError, DecodeError, BrokenWatchError)
"""Errors that the server, or the network in between, may have caused. Any other error is a bug of Kindred."""

_SAME_PROBLEM_EVERY: Final = 60.0  # seconds between two log lines with the same text
_MAX_RETRY_AFTER_LENGTH: Final = 300.0  # seconds: longer values are cut


class Failures:
    """The failures of one resource's requests."""

    def __init__(
        self, state: ResourceState, backoff: Backoff, retries: ResourceRetries, clock: Callable[[], float]
    ) -> None:
        self._state = state
        self._backoff = backoff
        self._retries = retries
        self._clock = clock
        self._logged: tuple[str, float] = ("", 0.0)
        self._well_since: float | None = None

    def record(self, error: Exception, shortest: float = 0.0) -> Wait:
        """Record a failure. Return the wait before the next request, at least `shortest` seconds."""
        is_ours = not isinstance(error, OUTSIDE_ERRORS)
        if not is_ours:
            self._retries.failed()
        now = self._clock()
        status = status_of(error)
        retry_after = min((status.retry_after if status else None) or 0.0, _MAX_RETRY_AFTER_LENGTH)
        delay = max(self._delay(now), shortest, retry_after)
        if not isinstance(error, MemoryPressureError):
            self._state.listed = 0
        self._state.failures[_kind(error)] += 1
        self._state.problem = one_line(str(error)) or type(error).__name__
        self._state.forbidden = status is not None and status.code == HTTPStatus.FORBIDDEN
        self._report(now, delay)
        return Wait(now + delay, now + max(self._backoff.first, retry_after), is_ours)

    def is_absence(self, error: Exception) -> bool:
        """Return whether the server lacks the resource, and the resource is optional.

        While other resources fail, a 404 may come from a proxy or from a failing server, and does not count.
        """
        is_missing = isinstance(error, StatusError) and error.code == HTTPStatus.NOT_FOUND
        return is_missing and self._state.resource.optional and not self._retries.is_server_unwell

    def absent(self, seconds: float) -> Wait:
        """Record that the server lacks the resource. Return the wait before the next check.

        If it may have another version of the resource, there is no wait.
        """
        self._state.objects = self._state.listed = 0
        if self._state.try_next_version():
            now = self._clock()
            return Wait(now, now, is_ours=True)
        if not self._state.absent:
            log.warning(
                "%s: the API server does not have %s, skipped",
                self._state.plural,
                self._state.resource.api_versions,
                extra=self._state.in_log,
            )
        self.over()
        self._state.synced = self._state.absent = True
        until = self._clock() + seconds
        return Wait(until, until, is_ours=True)

    def over(self) -> None:
        """Record that the resource is followed again."""
        if self._well_since is None:
            self._well_since = self._clock()
        if self._retries.followed():
            self._backoff.reset()  # the whole server had failed, so the resource's backoff starts again
        if self._state.problem:
            log.info("%s: following again", self._state.plural, extra=self._state.in_log)
            self._state.problem, self._state.forbidden = "", False
            self._logged = ("", 0.0)

    def _delay(self, now: float) -> float:
        success = 0.0 if self._well_since is None else now - self._well_since
        self._well_since = None
        if self._retries.is_server_unwell:
            return self._backoff.same_delay()
        return self._backoff.delay(success)

    def _report(self, now: float, delay: float) -> None:
        text, at = self._logged
        if self._state.problem == text and now - at < _SAME_PROBLEM_EVERY:
            return  # even with backoff this would be two equal lines a minute for each resource
        self._logged = (self._state.problem, now)
        remedy = f"; the RBAC rule that is missing: {self._state.resource.rbac_rule}" if self._state.forbidden else ""
        again = "in turn with other resources" if self._retries.is_server_unwell else f"within {delay:.1f} s"
        told = (self._state.plural, self._state.problem, remedy, again)
        log.warning("%s: %s%s; next attempt %s", *told, extra=self._state.in_log)


def status_of(error: Exception) -> StatusError | None:
    """Return the server's status in an error, from a response or from an ERROR event."""
    if isinstance(error, InStreamError):
        return error.status
    return error if isinstance(error, StatusError) else None


def is_server_error(status: StatusError) -> bool:
    """Return whether the status reports an error of the server."""
    return status.code >= HTTPStatus.INTERNAL_SERVER_ERROR


def is_too_large_version(status: StatusError) -> bool:
    """Upstream isTooLargeResourceVersionError: by the cause since 1.17, in older versions by the message."""
    return "ResourceVersionTooLarge" in status.causes or (
        status.code == HTTPStatus.GATEWAY_TIMEOUT and "Too large resource version" in status.message
    )


def _kind(error: Exception) -> str:
    """Return a short name of few values, for a metric: `410`, `in-stream 500`, `ConnectionFailed`."""
    status = status_of(error)
    if status is not None:
        return f"in-stream {status.code}" if isinstance(error, InStreamError) else str(status.code)
    return type(error).__name__.removesuffix("Error")
