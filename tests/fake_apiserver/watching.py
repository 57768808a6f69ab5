"""Watches: initial events, the events of the history, then the live ones, with bookmarks, until the deadline.

Source: k8s.io/apiserver pkg/storage/cacher/{cacher.go,cache_watcher.go,watch_cache.go}.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.fake_apiserver.event_stream import EventStream
from tests.fake_apiserver.options import ListOptions
from tests.fake_apiserver.statuses import RefusedError, expired_watch, too_large_version
from tests.fake_apiserver.store import Collection
from tests.fake_apiserver.stored import Event, event_begin

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
        """Begin at the present state. `current` returns the version of the store. Raises RefusedError."""
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
            raise RefusedError(too_large_version(options.version or 0, now), in_stream=True)
        # Only newer events are sent. A watch without initial events may begin at a future version.
        self._version = now if options.state_first else options.version or now
        if self._version < collection.floor:
            raise RefusedError(expired_watch(self._version, collection.floor), in_stream=True)
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
        self._collection.listeners.add(self._wake.set)
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
