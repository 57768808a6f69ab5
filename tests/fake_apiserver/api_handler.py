"""Handles requests of the API: applies faults, authenticates, and serves lists, watches and single pods."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from tests.fake_apiserver.faults import (
    Action,
    Close,
    Cut,
    FaultQueue,
    Gzip,
    LoggedRequest,
    RequestLog,
    Response,
    Stall,
    StreamAction,
    Undecodable,
    refuse,
)
from tests.fake_apiserver.listing import Body, ListOptions, WatchListMode, kind_of, list_page, parse_options
from tests.fake_apiserver.single_objects import Respond, SingleRequest, single_request
from tests.fake_apiserver.statuses import RejectedError, failure, forbidden, not_found, unauthorized
from tests.fake_apiserver.store import Collection, Store
from tests.fake_apiserver.watching import Bookmarks, EventStream, StreamEndedError, Watch, undecodable
from tests.fake_apiserver.wire import ChunkedBody, Connection, Request, send_whole

_HEADERS: Final = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_COMPRESSED_FROM: Final = 128 * 1024  # bytes; a real server does not compress shorter lists


@dataclass(slots=True)
class Behaviour:
    """The settings of the server. Changes at run time affect later requests. Times are seconds."""

    watch_list: WatchListMode = "on"
    token: str | None = None  # required bearer token
    user: str = "system:serviceaccount:kindred:kindred"
    forbidden: set[str] = field(default_factory=set)  # list paths
    absent: set[str] = field(default_factory=set)  # list paths that the server lacks, like another release
    git_version: str = "v1.34.1"
    other_apis: dict[str, Respond] = field(default_factory=dict)  # path -> response to a GET
    bookmark_interval: float = 60.0
    bookmark_before_deadline: float = 2.0
    chunk_bytes: int | None = None  # size of chunks in a stream: events are split at any byte


@dataclass(slots=True, eq=False)
class RunningWatch:
    """A watch that is being served."""

    path: str
    watch: Watch
    stream: EventStream

    def disturb(self, action: StreamAction) -> None:
        """Apply an action, at a position counted from here."""
        self.stream.disturb(action)
        self.watch.wake()


class ApiHandler:
    """Returns the response of each request, or applies its fault."""

    def __init__(self, store: Store, behaviour: Behaviour) -> None:
        self.store = store
        self.behaviour = behaviour
        self.faults = FaultQueue()
        self.requests = RequestLog()
        self.watches: set[RunningWatch] = set()

    async def handle(self, request: Request, connection: Connection) -> None:
        """Respond to a request. Raises ConnectionError if the client has disconnected."""
        target = self.store.collections.get(request.path) or single_request(
            request, self.behaviour.git_version, self.behaviour.other_apis
        )
        if target is None:
            await _response(connection, refuse(not_found()))
            return
        now = asyncio.get_running_loop().time()
        kind = kind_of(request.query) if isinstance(target, Collection) else target.kind
        logged = LoggedRequest(request.path, kind, request.query, request.headers, now, request.body)
        self.requests.add(logged)
        try:
            await self._apply_fault(request, connection, target, logged)
        finally:
            logged.ended = True
            self.requests.changed()

    async def _apply_fault(
        self,
        request: Request,
        connection: Connection,
        target: Collection | SingleRequest,
        logged: LoggedRequest,
    ) -> None:
        action = self.faults.of_request(request.path, logged.kind)
        if isinstance(action, Stall) and action.before_head:
            await action.wait()
            action = None
        match action:
            case Response():
                await _response(connection, action, logged)
            case Close(after_head=False, reset=reset):
                _close(connection, reset=reset)
            case _:
                try:
                    if isinstance(target, Collection):
                        await self._serve(request, connection, target, logged, action)
                    else:
                        await self._serve_one(request, connection, target, logged, action)
                except RejectedError as rejected:
                    await _response(connection, refuse(rejected.status), logged)

    async def _serve(
        self,
        request: Request,
        connection: Connection,
        collection: Collection,
        logged: LoggedRequest,
        action: Action | None,
    ) -> None:
        self._authenticate(request, "GET")
        self._authorize(request, collection)
        options = parse_options(request.query, collection.resource, self.behaviour.watch_list)
        if options.watch:
            await self._serve_watch(connection, collection, options, logged, action)
            return
        body = list_page(collection, options, self.store.version)
        logged.status = 200
        gzip = "gzip" in request.headers.get("accept-encoding", "")
        compress = gzip and sum(map(len, body.items)) >= _COMPRESSED_FROM
        await _serve_list(connection, body, action, compress=compress)

    async def _serve_one(
        self,
        request: Request,
        connection: Connection,
        requested: SingleRequest,
        logged: LoggedRequest,
        action: Action | None,
    ) -> None:
        self._authenticate(request, requested.method)
        status, body = requested.response(self.store)
        match action:
            case Close(reset=reset):
                await ChunkedBody(connection).begin(status, _HEADERS)
                _close(connection, reset=reset)
                return
            case Stall():
                await action.wait()
        await _response(connection, Response(status, body, _HEADERS), logged)

    def _authenticate(self, request: Request, method: str) -> None:
        if request.method != method:
            raise RejectedError(failure(405, "MethodNotAllowed", "the server does not allow this method"))
        token = self.behaviour.token
        if token is not None and request.headers.get("authorization") != f"Bearer {token}":
            raise RejectedError(unauthorized())

    def _authorize(self, request: Request, collection: Collection) -> None:
        if request.path in self.behaviour.absent:
            raise RejectedError(not_found())
        if request.path in self.behaviour.forbidden:
            verb = "watch" if kind_of(request.query) in {"watch", "watch-list"} else "list"
            raise RejectedError(forbidden(self.behaviour.user, verb, collection.resource))

    async def _serve_watch(
        self,
        connection: Connection,
        collection: Collection,
        options: ListOptions,
        logged: LoggedRequest,
        action: Action | None,
    ) -> None:
        body = ChunkedBody(connection, compress=isinstance(action, Gzip), chunk_bytes=self.behaviour.chunk_bytes)
        if isinstance(action, Close):
            logged.status = 200
            await body.begin(200, _HEADERS)
            _close(connection, reset=action.reset)
            return
        at = action if isinstance(action, StreamAction) else None
        stream = EventStream(connection, body, logged, self.requests, at)
        bookmarks = Bookmarks(self.behaviour.bookmark_interval, self.behaviour.bookmark_before_deadline)
        try:
            watch = Watch(collection, options, lambda: self.store.version, bookmarks)
        except RejectedError as rejected:
            if not rejected.in_stream:
                raise
            await stream.begin()
            await stream.error(rejected.status)
            await body.end()
            return
        running = RunningWatch(collection.resource.path, watch, stream)
        self.watches.add(running)
        try:
            await watch.serve(stream)
            await body.end()
        except StreamEndedError as ended:
            if ended.normal:
                await body.end()
            else:
                connection.close()
        finally:
            self.watches.remove(running)


async def _serve_list(connection: Connection, body: Body, action: Action | None, *, compress: bool) -> None:
    response = ChunkedBody(connection, compress=compress or isinstance(action, Gzip))
    await response.begin(200, _HEADERS)
    match action:
        case Close(reset=reset):
            _close(connection, reset=reset)
            return
        case Cut(extra=extra, reset=reset):
            await response.write([b"".join(body.parts())[:extra]])
            _close(connection, reset=reset)
            return
        case Stall():
            whole = b"".join(body.parts())
            await response.write([whole[: len(whole) // 2]])
            await action.wait()
            await response.write([whole[len(whole) // 2 :]])
        case _:
            if isinstance(action, Undecodable):
                body.items[action.after] = undecodable(b"{" + body.items[action.after])[1:]
            for part in body.parts():
                await response.write([part])
    await response.end()


def _close(connection: Connection, *, reset: bool) -> None:
    if reset:
        connection.abort()
    else:
        connection.close()


async def _response(connection: Connection, response: Response, logged: LoggedRequest | None = None) -> None:
    if logged is not None:
        logged.status = response.status
    await send_whole(connection, response.status, response.headers, response.body)
