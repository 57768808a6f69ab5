"""Decodes the bytes of a watch to events, with the errors of broken watches."""

from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus

from app.api_server.client import StatusError
from app.objects.decode import DecodeError
from app.watch.freshness import ResourceState
from app.watch.lines import LineSplitter, LineTooLongError
from app.watch.loop_share import LoopShare
from app.watch.wire import Bookmark, WatchEvent, decode_bookmark, decode_event


class BrokenWatchError(Exception):
    """The server accepted a watch, but the response was no watch, or it broke.

    BrokenWatchError (ended at once, in the middle of a line, or before the end of the initial events)
    +-- NoInitialEventsEndError
    +-- GarbledWatchError
    +-- InStreamError
    """


class NoInitialEventsEndError(BrokenWatchError):
    """The end of the initial events was not sent in time."""


class GarbledWatchError(BrokenWatchError):
    """A line is not a watch event."""


class InStreamError(BrokenWatchError):
    """An ERROR event, which ends a watch after a successful start."""

    def __init__(self, status: StatusError) -> None:
        super().__init__(str(status))
        self.status = status


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


async def watch_events(
    chunks: AsyncIterator[bytes], state: ResourceState, turns: LoopShare
) -> AsyncGenerator[WatchEvent, None]:
    """Yield the events of a stream up to its end, and count them. Raises BrokenWatchError, also for an ERROR event."""
    splitter = LineSplitter()
    async for chunk in chunks:
        for line in _lines(splitter, chunk, state):
            try:
                event = decode_event(line)
            except DecodeError as error:
                raise GarbledWatchError(f"{state.resource.path}: not a watch event: {error}") from None
            state.events[event.type] += 1
            if event.type == "ERROR":
                raise InStreamError(StatusError.of(event.object))
            yield event
            if turns.over:
                await turns.give_way()
    if splitter.unfinished:
        raise BrokenWatchError(f"{state.resource.path}: the watch ended in the middle of a line")


def bookmark_of(event: WatchEvent) -> Bookmark:
    """Return the contents of a BOOKMARK event. Raises GarbledWatchError."""
    try:
        return decode_bookmark(event.object)
    except DecodeError as error:
        raise GarbledWatchError(f"bookmark: {error}") from None


def _lines(splitter: LineSplitter, chunk: bytes, state: ResourceState) -> list[bytes]:
    try:
        return [line for line in splitter.feed(chunk) if line]
    except LineTooLongError as error:
        raise GarbledWatchError(f"{state.resource.path}: {error}") from None
