"""The stream of one watch, with its faults, and what a watch sends until its deadline.

Source: k8s.io/apiserver pkg/storage/cacher/{cacher.go,cache_watcher.go,watch_cache.go}.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.fake_apiserver.faults import (
    Cut,
    End,
    LoggedRequest,
    Replay,
    RequestLog,
    SendLine,
    Stall,
    StreamAction,
    StreamError,
    Undecodable,
)
from tests.fake_apiserver.listing import ListOptions
from tests.fake_apiserver.statuses import RejectedError, Status, expired_watch, too_large_version
from tests.fake_apiserver.store import Collection, Event, event_begin
from tests.fake_apiserver.wire import ChunkedBody, Connection

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}


class StreamEndedError(Exception):
    """An action ended the stream early. `normal`: with a complete HTTP body."""

    def __init__(self, *, normal: bool) -> None:
        super().__init__()
        self.normal = normal


class EventStream:
    """Sends lines, and applies a fault as soon as its position is reached."""

    def __init__(
        self,
        connection: Connection,
        body: ChunkedBody,
        logged: LoggedRequest,
        log: RequestLog,
        action: StreamAction | None,
    ) -> None:
        self._connection = connection
        self._body = body
        self._logged = logged
        self._log = log
        self._action = action
        self._at = action.after if action else 0
        self._sent_lines: list[bytes] = []  # what a Replay sends again

    async def begin(self) -> None:
        """Send the head."""
        self._logged.status = 200
        await self._body.begin(200, _HEADERS)
        self._log.changed()

    def disturb(self, action: StreamAction) -> None:
        """Apply an action to the running stream, at a position counted from here."""
        self._action = action
        self._at = self._logged.events + action.after

    async def send_objects(self, begin: bytes, rests: Sequence[bytes]) -> None:
        """Send events of one type. `begin` is a result of `event_begin`."""
        if self._action is None:
            # A single join is the fastest way, and 150,000 initial events are sent here.
            await self._write([begin, (b"}\n" + begin).join(rests), b"}\n"], len(rests))
        else:
            await self.send([b"%s%s}\n" % (begin, rest) for rest in rests])

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send lines. Raises StreamEndedError."""
        await self.act()
        while self._action is not None and lines:
            room = self._at - self._logged.events
            if room:
                await self._write(lines[:room], len(lines[:room]))
                if isinstance(self._action, Replay):
                    self._sent_lines += lines[:room]
                lines = lines[room:]
                await self.act()
            else:
                lines = await self._act_on(lines)
        if lines:
            await self._write(lines, len(lines))

    async def error(self, status: Status) -> None:
        """Send an ERROR event."""
        await self._write([error_line(status)], 1)

    async def _write(self, parts: Sequence[bytes], lines: int) -> None:
        self._logged.events += lines  # counted before the client can receive them
        self._log.changed()
        await self._body.write(parts)

    async def act(self) -> None:
        """Apply actions that need no following line, if their position is reached. Raises StreamEndedError."""
        if self._action is None or self._logged.events < self._at:
            return
        match self._action:
            case StreamError(status=status):
                await self.error(status)
                raise StreamEndedError(normal=True)
            case End():
                raise StreamEndedError(normal=True)
            case SendLine(line=line):
                self._action = None
                await self._write([line, b"\n"], 1)
            case Stall() as stall:
                self._action = None
                await stall.wait()
            case Replay():
                self._action = None
                lines, self._sent_lines = self._sent_lines, []
                await self._write(lines, len(lines))
            case Cut() | Undecodable():
                pass

    async def _act_on(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Apply actions to the following line. Return the lines that remain to be sent."""
        action, self._action = self._action, None
        match action:
            case Cut(extra=extra, reset=reset):
                await self._body.write([lines[0][:extra]])
                if reset:
                    self._connection.abort()
                raise StreamEndedError(normal=False)
            case Undecodable():
                return [undecodable(lines[0]) + b"\n", *lines[1:]]
        return lines


def error_line(status: Status) -> bytes:
    """Make an ERROR event."""
    return b'{"type":"ERROR","object":%s}\n' % msgspec.json.encode(status)


def undecodable(text: bytes) -> bytes:
    """Make an object, or the object of an event, one that no client can decode."""
    whole = msgspec.json.decode(text)
    whole.get("object", whole)["metadata"]["labels"] = ["not", "a", "map"]
    return msgspec.json.encode(whole)


_PART_ITEMS: Final = 100
_SHORTEST_DEFAULT_TIMEOUT: Final = 1800.0  # seconds; up to twice as long
_INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class Bookmarks:
    """The times of bookmarks, in seconds: their interval, and the time before the deadline."""

    interval: float
    before_deadline: float


class Watch:
    """One watch of one client."""

    def __init__(
        self, collection: Collection, options: ListOptions, current: Callable[[], int], bookmarks: Bookmarks
    ) -> None:
        """Begin at the present state. `current` returns the version of the store. Raises RejectedError."""
        self._collection = collection
        self._options = options
        self._current = current
        self._bookmarks = bookmarks
        self._began = asyncio.get_running_loop().time()
        self._wake = asyncio.Event()
        self._idle = False
        self._begins = {
            event_type: event_begin(event_type, collection.resource)
            for event_type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
        }
        timeout = options.timeout or _SHORTEST_DEFAULT_TIMEOUT * (1 + random.random())  # noqa: S311 - no secret
        self._deadline = self._began + timeout
        now = current()
        if options.initial_events and (options.version or 0) > now:
            raise RejectedError(too_large_version(options.version or 0, now), in_stream=True)
        # Only newer events are sent. A watch without initial events may begin at a future version.
        self._version = now if options.state_first else options.version or now
        if self._version < collection.floor:
            raise RejectedError(expired_watch(self._version, collection.floor), in_stream=True)
        self._reached = now  # up to here, all events are sent
        self._snapshot = collection.snapshot(now) if options.state_first else None
        self._position = collection.position_after(self._version)

    @property
    def caught_up(self) -> bool:
        """Whether all events so far have been handed to the connection."""
        return self._idle and self._position == self._collection.end

    def wake(self) -> None:
        """Wake the watch."""
        self._wake.set()

    async def serve(self, stream: EventStream) -> None:
        """Send all events until the deadline, or until the client is too slow for the kept history."""
        await stream.begin()
        with self._woken_by_events():
            await self._send_initial(stream)
            loop = asyncio.get_running_loop()
            bookmark_at = self._next_bookmark(loop.time())
            while await self._send_news(stream) and loop.time() < self._deadline:
                if loop.time() >= bookmark_at:
                    await self._send_bookmark(stream, {})
                    bookmark_at = self._next_bookmark(loop.time())
                await self._sleep(min(bookmark_at, self._deadline))

    @contextmanager
    def _woken_by_events(self) -> Iterator[None]:
        self._collection.listeners.append(self._wake.set)
        try:
            yield
        finally:
            self._collection.listeners.remove(self._wake.set)

    async def _sleep(self, until: float) -> None:
        """Sleep until a time, or until `wake`."""
        timer = asyncio.get_running_loop().call_at(until, self._wake.set)
        self._idle = True
        try:
            await self._wake.wait()
        finally:
            self._idle = False
            timer.cancel()

    async def _send_initial(self, stream: EventStream) -> None:
        if self._snapshot is None:
            return
        selected = [stored for stored in self._snapshot.items if self._options.selector.matches(stored)]
        self._snapshot = None
        for first in range(0, len(selected), _PART_ITEMS):
            rests = [stored.rest for stored in selected[first : first + _PART_ITEMS]]
            await stream.send_objects(self._begins["ADDED"], rests)
        if self._options.initial_events and self._options.allow_bookmarks:
            await self._send_bookmark(stream, _INITIAL_EVENTS_END)

    async def _send_news(self, stream: EventStream) -> bool:
        """Send the events since the last call. Return False if some of them are no longer kept."""
        self._wake.clear()
        await stream.act()
        events = self._collection.events_from(self._position)
        if events is None:
            return False
        self._position += len(events)
        self._reached = self._current()
        lines = [line for event in events if event.version > self._version and (line := self._line(event))]
        if lines:
            await stream.send(lines)
        return True

    def _line(self, event: Event) -> bytes | None:
        """Return the line for an event. None if no selected object has changed."""
        selects = self._options.selector.matches
        before = event.before is not None and selects(event.before)
        after = event.after is not None and selects(event.after)
        if not before and not after:
            return None
        event_type = ("MODIFIED" if before else "ADDED") if after else "DELETED"
        return event.line(self._begins[event_type], deleted=not after)

    def _next_bookmark(self, now: float) -> float:
        """Return the time of the next bookmark. A time at or after the deadline means never."""
        if not self._options.allow_bookmarks:
            return self._deadline
        due = now + self._bookmarks.interval
        last = self._deadline - self._bookmarks.before_deadline
        return min(due, last) if last > now else self._deadline

    async def _send_bookmark(self, stream: EventStream, annotations: dict[str, str]) -> None:
        if self._reached < self._version:
            return  # a watch from a future version
        metadata = {"resourceVersion": str(self._reached), **({"annotations": annotations} if annotations else {})}
        rest = msgspec.json.encode({"metadata": metadata})[1:]
        await stream.send_objects(self._begins["BOOKMARK"], [rest])
