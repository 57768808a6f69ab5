"""Keeps the known objects of one resource equal to the API server, through every fault of the connection.

Source: k8s.io/client-go tools/cache/reflector.go (v1.34). The steps:

1. A sync reads the whole state: by WatchList (a watch that begins with all objects, and continues as a watch), or page
   by page if the server has no WatchList. While nothing is known, objects are applied as they come. Any other sync
   changes the mirror only when it is complete, and applies only the differences.
2. A watch follows, from the version of the sync or of the last event. After a normal end the next watch resumes there.
3. After an error and a wait with backoff, the next watch resumes from the same version. A new sync is made only if the
   watch cannot continue. The server no longer has the version (410), or does not have it yet ("too large resource
   version"). Or it rejects the request as such, or sends an internal error, or what is no event, at the same version
   twice.
4. A watch that stays quiet, or ends quietly after a while, is checked. A server accepts a watch from a future version,
   and sends no events.

Meanwhile the mirror keeps its objects, and `ResourceState` has its freshness.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from http import HTTPStatus
from itertools import chain
from typing import Final, TypeVar

import msgspec

from app.api_server.client import ApiClient, ReadTimeoutError, StatusError
from app.feeds.freshness import ResourceState
from app.feeds.known_objects import ADDED_AT_ONCE, Listing, Unreadable
from app.feeds.memory import UNLIMITED, MemoryPressureError, MemoryWatch
from app.feeds.objects import MirrorFeed, ObjectReader
from app.feeds.retry import OUTSIDE_ERRORS, Retries, Retry
from app.feeds.stream import (
    FOLLOWING,
    LOADING,
    MAX_PAGE_BYTES,
    BrokenWatchError,
    GarbledWatchError,
    InStreamError,
    ListPage,
    LoopShare,
    NoInitialEventsEndError,
    Pages,
    WatchEvent,
    bookmark_of,
    decode_page,
    is_older,
    is_too_large_version,
    status_of,
    watch_events,
)
from app.objects.decode_pod import WirePod
from app.process.logs import one_line
from core.events import Object

log = logging.getLogger(__name__)
Received = TypeVar("Received", bound=Object | Unreadable | str)

_EXPIRED_LISTS: Final = 2  # after so many lists in a row that expired between two pages: no pages
_MARK_LATE: Final = 5.0  # seconds: an event takes some milliseconds, and a list of 150,000 pods takes seconds
_LOOKS_EVERY: Final = 0.01  # seconds
_REJECTIONS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Errors of the request itself. The server would reject a retry, too."""


class Reflector:
    """List+watch of one resource, for as long as `run` runs."""

    def __init__(
        self,
        state: ResourceState,
        client: ApiClient,
        feed: MirrorFeed,
        retries: Retries,
        memory: MemoryWatch = UNLIMITED,
    ) -> None:
        """Pass every change to `feed`, in order, while there is memory. All reflectors share `retries`."""
        self.state = state
        self.known = feed.known(state.resource.kind)
        self._client = client
        self._feed = feed
        self._timing = retries.timing
        self._memory = memory
        self._allowed = 0  # bytes that the process may have during the present sync
        self._clock = retries.timing.clock
        self._retry = Retry(state, retries, self._interrupt)
        self._wait = retries.wait
        self._reader = ObjectReader(state)
        self._turns = LoopShare()
        self.version = ""  # up to which the mirror has all changes, to watch from; empty: a sync is due
        self._has_watch_list = True
        self._list_next = False  # the next sync is a list, not a WatchList
        self._expired_lists = 0  # in a row
        self._broken_version = ""  # version of the last watch that was garbled or sent an ERROR
        self._was_quiet = False  # whether the last watch sent nothing for long
        self._step_limit: asyncio.Timeout | None = None  # timeout of the present step
        self._requested = False  # whether a call of `resync` waits for a sync to begin
        self._syncs = 0  # that have begun
        self._complete = 0  # the number of the last complete one

    async def resync(self) -> None:
        """Sync again, and return when the mirror has all present objects of the server. Syncs are consistent reads.

        For callers that need all changes up to now. A watch may lag by an unknown time.
        """
        last = self._syncs
        self._requested = True
        self._interrupt()
        while self._complete <= last:  # noqa: ASYNC110 - a list takes much longer
            await asyncio.sleep(_LOOKS_EVERY)

    async def shows(self, write: Callable[[], Awaitable[str]]) -> bool:
        """Make a change, and return whether the mirror has all changes before it. False if the watch does not show it.

        `write` changes an object of this resource, and returns its version, or an empty text. An API server sends the
        events of one resource in the order of versions, whichever server of a cluster made the changes. Of two
        resources, each has a cache of its own, so nothing follows for the other one (k8s.io/apiserver
        pkg/storage/cacher).
        """
        before = self.version
        version = await write()
        if not is_older(before, version):  # nothing was written, etcd was restored from a backup, or a sync is due
            return False
        until = self._clock() + _MARK_LATE
        while self._clock() < until:
            if not is_older(self.version or before, version):  # or newer: the object may have changed again
                return True
            await asyncio.sleep(_LOOKS_EVERY)
        log.warning("%s: listed, because the watch did not show a change within %g s", self.state.plural, _MARK_LATE)
        return False

    async def run(self) -> None:
        """Sync and watch until cancelled."""
        while True:
            if self._requested:
                self._requested = False
                self._relist("asked")
            try:
                await self._breakable_step()
                continue
            except (*OUTSIDE_ERRORS, MemoryPressureError) as error:
                wait = self._recover(error)
            except Exception as error:
                # A bug of Kindred must not end the watch; a sync repairs a half-applied change.
                log.exception("%s: internal error", self.state.plural, extra=self.state.in_log)
                self._relist("internal")
                wait = self._retry.failed(error)
            if wait is not None:
                await self._wait(wait)

    def _interrupt(self) -> None:
        # A step that is ending cannot be ended again.
        if self._step_limit is not None and not self._step_limit.expired():
            self._step_limit.reschedule(asyncio.get_running_loop().time())

    async def _breakable_step(self) -> None:
        """Make a request, which `_interrupt` ends."""
        limit = asyncio.timeout(None)
        self._retry.begin()
        try:
            async with limit:
                self._step_limit = limit
                await self._step()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            self._step_limit = None

    async def _step(self) -> None:
        if self.version and self._was_quiet:
            await self._check_version()
        elif self.version:
            await self._watch()
        else:
            await self._sync()

    @property
    def _uses_watch_list(self) -> bool:
        return self._has_watch_list and not self._list_next

    # Syncs.

    async def _sync(self) -> None:
        try:
            await (self._watch_list() if self._uses_watch_list else self._list())
        except MemoryPressureError:
            if not self.state.synced:  # what it has applied would leave too little to the next one
                for _ in self.known.replace(Listing()):
                    if self._turns.over:
                        await self._turns.checkpoint()
            raise

    async def _watch_list(self) -> None:
        self._begin_sync()
        params = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with self._events("watch-list", params) as events:
            # Unless this WatchList completes. If it breaks for any reason, a list may succeed (upstream ListAndWatch).
            self._list_next = True
            with self._feed.loading(), closing(Listing(is_applied=not self.known)) as listing:
                version = await self._initial_events(events, listing)
                await self._replace(listing, version, self._clock())
            await self._follow(events)

    async def _initial_events(self, chunks: AsyncIterator[Iterator[WatchEvent]], listing: Listing) -> str:
        """Collect objects up to the bookmark that ends the initial events. Return the bookmark's version."""
        try:
            async with asyncio.timeout(self._timing.initial_events):
                async for events in chunks:
                    for event in events:
                        if event.type == "BOOKMARK":
                            bookmark = bookmark_of(event)
                            if bookmark.initial_events_end:
                                return bookmark.resource_version
                        elif event.type == "DELETED":
                            listing.remove(self._readable(event, self._reader.read(event.object)))
                        else:
                            found = self._read(event.object, listing)
                            self._collect(listing, self._readable(event, found))
                    self._admit(listing)
        except TimeoutError:
            text = f"initial events without end for {self._timing.initial_events:g} s"
            raise NoInitialEventsEndError(f"{self.state.resource.path}: {text}") from None
        raise BrokenWatchError(f"{self.state.resource.path}: the watch ended before the end of the initial events")

    async def _list(self) -> None:
        began = self._clock()
        self._begin_sync()
        pages = Pages(self._client, self.state.resource.path) if self._expired_lists < _EXPIRED_LISTS else None
        params = self.state.resource.params
        page = await self._page(pages, params)
        with self._feed.loading(), closing(Listing(is_applied=not self.known)) as listing:
            await self._gather(page, listing)
            while page.continue_token:
                page = await self._page(pages, {**params, "continue": page.continue_token})
                await self._gather(page, listing)
            await self._replace(listing, page.resource_version, began)

    async def _page(self, pages: Pages | None, params: Mapping[str, str]) -> ListPage:
        """Return a page. Without `pages`, return the whole list, limited only by memory."""
        self.state.requests["list"] += 1
        try:
            if pages is None:
                # Half: the bytes exist twice when the last of them has arrived, and their objects come on top.
                body = await self._client.get(self.state.resource.path, params, self._memory.room() // 2)
            else:
                body = await pages.get(params)
        except StatusError as error:
            if error.code == HTTPStatus.GONE:  # the list took longer than the server keeps versions
                self._expired_lists += 1
                self._relist("expired-continue")
            raise
        page = decode_page(body)
        self._retry.succeeded()
        return page

    async def _gather(self, page: ListPage, listing: Listing) -> None:
        for item in page.items:
            self._collect(listing, self._read(item, listing))
            if self._turns.over:
                self._admit(listing)
                await self._turns.checkpoint()
        self._admit(listing)

    def _read(self, raw: msgspec.Raw | WirePod, listing: Listing) -> Object | Unreadable | str:
        if listing.is_applied:  # no object is listed twice, unless it has changed
            return self._reader.read(raw)
        return self._reader.read_unless_known(raw, self.known)

    def _collect(self, listing: Listing, found: Object | Unreadable | str) -> None:
        listing.add(found)
        if listing.is_applied and len(listing.objects) >= listing.applied + ADDED_AT_ONCE:
            self.known.put_new(listing)

    def _begin_sync(self) -> None:
        """Check that there is memory for a sync. Raises MemoryPressureError."""
        self._syncs += 1
        self._allowed = self._memory.allowance()
        self._turns.shortest = LOADING
        self.state.listed = 0

    def _admit(self, listing: Listing) -> None:
        """Record the objects of a sync. Raises MemoryPressureError."""
        self.state.listed = len(listing.objects)
        self._memory.refuse(self._allowed)

    async def _replace(self, listing: Listing, version: str, as_of: float) -> None:
        for _ in chain(self.known.replace(listing), self._feed.derive(self.state.resource.kind)):
            if self._turns.over:
                await self._turns.checkpoint()
        self.version = version
        self._list_next = False
        self._expired_lists = 0
        self.state.complete(as_of)
        self.state.objects, self.state.listed = len(self.known), 0
        self._follows(as_of)
        self._complete = self._syncs
        log.info("%s: synced, %d objects", self.state.plural, len(self.known), extra=self.state.in_log)

    # Watching.

    async def _watch(self) -> None:
        received, shortest = self.state.events.total(), self._timing.shortest_watch
        async with self._events("watch", {"resourceVersion": self.version}) as events:
            accepted = self._clock()
            # An accepted watch is no evidence yet, because it may end at once: see ResourceState.followed_at.
            timer = asyncio.get_running_loop().call_later(shortest, lambda: self._follows(self._clock()))
            try:
                await self._follow(events)
            finally:  # a proxy may end a quiet watch before the read timeout
                timer.cancel()
                stood = self._clock() - accepted
                self._was_quiet |= stood >= self._timing.quiet and self.state.events.total() == received
        if stood < shortest:
            if self.state.events.total() == received:
                raise BrokenWatchError(
                    f"{self.state.resource.path}: the watch ended within {shortest:g} s, without an event"
                )
            await asyncio.sleep(shortest - stood)

    async def _follow(self, chunks: AsyncIterator[Iterator[WatchEvent]]) -> None:
        self._turns.shortest = FOLLOWING
        try:
            async for events in chunks:
                for event in events:
                    if event.type == "ADDED" and self._memory.is_full():
                        self._memory.refuse(0)  # deletions and changes before an addition are still applied
                    self._take(event)
                    self._follows(self._clock())
                    if self._turns.over:
                        await self._turns.checkpoint()
        except ReadTimeoutError:
            # Bookmarks are not guaranteed. So nothing happened, or the connection is dead, or the version is a future
            # one. Only new requests can show which. The next watch resumes from the same version.
            log.debug("%s: no data on the watch, requesting it again", self.state.plural)
            self._was_quiet = True

    async def _check_version(self) -> None:
        """Sync if the server's version is older than the watch's version.

        This happens if etcd was wiped, or restored from a backup. A watch does not show it: cacher.go accepts the
        watch, and cache_watcher.go holds back events and bookmarks up to that version.
        """
        self.state.requests["list"] += 1
        page = decode_page(await self._client.get(self.state.resource.path, {"limit": "1"}, MAX_PAGE_BYTES))
        self._retry.succeeded()
        self._was_quiet = False
        if is_older(page.resource_version, self.version):
            log.warning(
                "%s: the server is at version %s and was at %s: another cluster, or one restored from a backup",
                self.state.plural,
                one_line(page.resource_version),
                one_line(self.version),
            )
            self._relist("went-back")

    def _take(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            self.version = bookmark_of(event).resource_version
            return
        received = self._readable(event, self._reader.read(event.object))
        if event.type == "DELETED":
            self.known.drop(received.full_name, received.uid)
        elif isinstance(received, Unreadable):
            self.known.drop_predecessor(received.full_name, received.uid)
        else:
            self.known.put(received)
        self.state.objects = len(self.known)
        # Only after `apply`: an event that could not be applied must be sent again.
        self.version = received.resource_version or self.version

    def _readable(self, event: WatchEvent, received: Received) -> Received:
        if isinstance(received, Unreadable) and not received.full_name:
            # The change and its object are unknown. The change may be a deletion.
            raise GarbledWatchError(f"{self.state.resource.path}: {event.type} of an object without a readable name")
        return received

    def _follows(self, as_of: float) -> None:
        self.state.followed_at = as_of
        if self._retry.followed_since is None or self.state.problem:  # not for each event
            self._retry.followed()

    # Requests and their errors.

    @asynccontextmanager
    async def _events(self, kind: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[Iterator[WatchEvent]]]:
        """Request a watch, and yield its events."""
        self.state.requests[kind] += 1
        timeout = round(self._timing.watch_timeout * (1.0 + self._timing.random()))
        watch = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout)}
        async with (
            self._client.stream(self.state.resource.path, {**self.state.resource.params, **watch, **params}) as chunks,
            aclosing(watch_events(chunks, self.state, self._turns)) as events,
        ):
            self._retry.succeeded()
            yield events

    def _recover(self, error: Exception) -> float | None:
        """Choose the next request after an error. Return the seconds before it. None: no wait."""
        if self._retry.is_absence(error):
            self.version = ""
            self.known.clear()
            return self._retry.absent()
        if self.version:
            self._resume_or_relist(error)
        elif self._falls_back(error):
            log.info(
                "%s: listing without WatchList: %s", self.state.plural, one_line(str(error)), extra=self.state.in_log
            )
            return None
        return self._retry.failed(error, self._timing.memory if isinstance(error, MemoryPressureError) else 0.0)

    def _resume_or_relist(self, error: Exception) -> None:
        status = status_of(error)
        if status is not None and status.code == HTTPStatus.GONE:
            self._relist("expired")
        elif status is not None and is_too_large_version(status):
            self._relist("too-large-version")
        elif status is not None and status.code in _REJECTIONS:
            self._relist("refused")
        elif isinstance(error, GarbledWatchError) or (
            isinstance(error, InStreamError) and error.status.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        ):
            # The first error may be temporary. A second one at the same version is permanent.
            if self._broken_version == self.version:
                self._relist("broken")
            self._broken_version = self.version

    def _falls_back(self, error: Exception) -> bool:
        """Return whether to sync by a list at once, because WatchList does not work."""
        if self._uses_watch_list:  # the server did not accept it
            self._has_watch_list = not (isinstance(error, StatusError) and error.code in _REJECTIONS)
            return not self._has_watch_list
        if isinstance(error, NoInitialEventsEndError):
            self._has_watch_list = False
            return True
        # For example, etcd has no progress notification. The next sync may reach another server.
        return isinstance(error, GarbledWatchError) or (
            isinstance(error, InStreamError) and error.status.code == HTTPStatus.INTERNAL_SERVER_ERROR
        )

    def _relist(self, reason: str) -> None:
        self.version, self._was_quiet = "", False
        self.state.relists[reason] += 1
