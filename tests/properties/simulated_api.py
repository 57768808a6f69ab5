"""An API server in the process, for clients in virtual time: with latency, faults, and watches that are kept back.

The objects, and what a request does to them, are those of tests/fake_apiserver. Here is only the network before it.
"""

import asyncio
import math
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from random import Random
from typing import Final, NamedTuple

from app.api_server.client import ApiClient, ConnectionFailedError, ReadTimeoutError, StatusError
from tests.fake_apiserver.faults import Kind
from tests.fake_apiserver.listing import list_page, parse_options
from tests.fake_apiserver.single_objects import single_request
from tests.fake_apiserver.statuses import RejectedError, Status
from tests.fake_apiserver.store import Store
from tests.fake_apiserver.watching import Bookmarks, Watch, error_line
from tests.fake_apiserver.wire import Request

LATENCY: Final = (0.001, 0.006)  # seconds of a request or a response on its way
SLOW: Final = (0.05, 1.2)  # seconds; with both ways less than a decision's binding may take (Limits.settle)
_READ_TIMEOUT: Final = 75.0  # as that of ApiClient
_BOOKMARKS: Final = Bookmarks(interval=5.0, before_deadline=2.0)
_MEDIA_TYPES: Final = {"PATCH": "application/strategic-merge-patch+json"}
_ROUNDING: Final = 1e-6  # seconds; the times are sums of fractions
_RESET: Final = "the connection was reset"


class Fault(Enum):
    """What happens to one request."""

    NOT_CONNECTED = "no connection"
    LOST = "the request is lost on its way"
    RESPONSE_LOST = "the request is carried out, and its response is lost"
    FAILED = "500, and the request was not carried out"
    FAILED_AND_DONE = "500, though the request was carried out"
    UNAVAILABLE = "503"
    BUSY = "429"
    LATE = "the request takes long to arrive"
    RESPONSE_LATE = "the response takes long"


_REJECTIONS: Final = {
    Fault.FAILED: StatusError(500, "InternalError", "etcdserver: leader changed"),
    Fault.FAILED_AND_DONE: StatusError(500, "InternalError", "etcdserver: request timed out"),
    Fault.UNAVAILABLE: StatusError(503, "ServiceUnavailable", "apiserver not ready"),
    Fault.BUSY: StatusError(429, "TooManyRequests", "too many requests", 0.2),
}


class Sent(NamedTuple):
    """A request of a client."""

    client: "SimulatedClient"
    kind: Kind
    path: str
    body: bytes


class SimulatedApi:
    """The server. Its store is the truth."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.store = Store(now=_now)
        self.sent: Callable[[Sent], None] = lambda _: None
        """Called when a client writes a request to the connection."""
        self.carried_out: Callable[[Sent], None] = lambda _: None
        """Called right after a request has changed something, or read it."""
        self.received: Callable[[Sent, bytes], None] = lambda _, __: None
        """Called when a client gets a good response."""

    def latency(self) -> float:
        """Return the seconds of a way."""
        return self.random.uniform(*LATENCY)


def _now() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())


class _Pipe:
    """The lines of a watch on their way to the client. It is what Watch takes for its stream."""

    def __init__(self) -> None:
        self.lines: deque[tuple[float, bytes]] = deque()  # when it was sent, line
        self.news = asyncio.Event()
        self.broken = False

    async def begin(self) -> None:
        """Do nothing: there is no head."""

    async def act(self) -> None:
        """Do nothing: a fault befalls the client, see SimulatedClient."""

    async def send(self, lines: Sequence[bytes]) -> None:
        now = asyncio.get_running_loop().time()
        self.lines += [(now, line) for line in lines]
        self.news.set()

    async def send_objects(self, begin: bytes, rests: Sequence[bytes]) -> None:
        await self.send([b"%s%s}\n" % (begin, rest) for rest in rests])

    async def error(self, status: Status) -> None:
        await self.send([error_line(status)])


class SimulatedClient(ApiClient):
    """A client of the server, in place of one with connections."""

    def __init__(self, api: SimulatedApi, name: str) -> None:  # what is inherited is not used
        self.name = name
        self.faults: dict[Kind, deque[Fault]] = defaultdict(deque)
        """Kind of a request -> what befalls the next ones."""
        self._is_cut_off = False
        self.lag: dict[str, float] = defaultdict(float)
        """Path of a list -> seconds that each line of its watch takes."""
        self._credits: dict[str, float] = {}  # path -> lines that may still pass
        self._pipes: dict[str, _Pipe] = {}
        self._api = api

    # Faults.

    def keep_back(self, path: str) -> None:
        """Let the watch of a list say nothing."""
        self._credits[path] = 0

    def deliver(self, path: str, lines: float = math.inf) -> None:
        """Let so many lines of what was kept back pass, or all from now on."""
        self._credits[path] = self._credits.get(path, math.inf) + lines
        if path in self._pipes:
            self._pipes[path].news.set()

    def break_watch(self, path: str) -> None:
        """End the connection of a watch, with what is on its way."""
        if path in self._pipes:
            self._pipes[path].broken = True
            self._pipes[path].news.set()

    def cut_off(self) -> None:
        """Let no packet reach the server, until `heal`."""
        self._is_cut_off = True

    def heal(self) -> None:
        """End all faults."""
        self.faults.clear()
        self.lag.clear()
        self._is_cut_off = False
        for path in self._pipes.keys() | self._credits.keys():
            self.deliver(path)

    # Requests.

    async def get(self, path: str, params: Mapping[str, str], _most: int = 0) -> bytes:
        if path not in self._api.store.collections:
            return await self._exchange("GET", path, b"")
        await self._travel()
        collection = self._api.store.collections[path]
        page = list_page(collection, parse_options(params, collection.resource, "on"), self._api.store.version)
        return b"".join(page.parts())

    async def post(self, path: str, body: bytes, may_send: Callable[[], bool] | None = None) -> bytes:
        return await self._exchange("POST", path, body, may_send)

    async def put(self, path: str, body: bytes) -> bytes:
        return await self._exchange("PUT", path, body)

    async def patch(self, path: str, body: bytes) -> bytes:
        return await self._exchange("PATCH", path, body)

    async def delete(self, path: str, body: bytes) -> bytes:
        return await self._exchange("DELETE", path, body)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        await self._travel()
        collection = self._api.store.collections[path]
        options = parse_options(params, collection.resource, "on")
        pipe = self._pipes[path] = _Pipe()
        try:
            watch = Watch(collection, options, lambda: self._api.store.version, _BOOKMARKS)
        except RejectedError as rejected:
            await pipe.error(rejected.status)
            yield self._lines(path, pipe, None)
            return
        serving = asyncio.create_task(watch.serve(pipe))  # type: ignore[arg-type]  # all that it calls
        serving.add_done_callback(lambda _: pipe.news.set())
        try:
            yield self._lines(path, pipe, serving)
        finally:
            serving.cancel()

    async def _lines(self, path: str, pipe: _Pipe, serving: "asyncio.Task[None] | None") -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        last = loop.time()
        while not pipe.broken:
            if pipe.lines and self._credits.get(path, math.inf) > 0 and not self._is_cut_off:
                due = pipe.lines[0][0] + self.lag[path]
                if due <= loop.time() + _ROUNDING:
                    self._credits[path] = self._credits.get(path, math.inf) - 1
                    last = loop.time()
                    yield pipe.lines.popleft()[1]
                    continue
            elif not pipe.lines and (serving is None or serving.done()):
                return
            else:
                due = math.inf
            until = min(due, last + _READ_TIMEOUT)
            pipe.news.clear()
            timer = loop.call_at(until, pipe.news.set)
            await pipe.news.wait()
            timer.cancel()
            if loop.time() + _ROUNDING >= last + _READ_TIMEOUT:
                raise ReadTimeoutError(f"nothing for {_READ_TIMEOUT:g} s")
        raise ConnectionFailedError(_RESET)

    async def _exchange(self, method: str, path: str, body: bytes, may_send: Callable[[], bool] | None = None) -> bytes:
        headers = {"content-type": _MEDIA_TYPES.get(method, "application/json")}
        requested = single_request(Request(method, path, {}, headers, body), "v1.36.3", {})
        assert requested is not None, path
        if may_send is not None and not may_send():
            raise ConnectionFailedError("held back", unsent=True)
        waiting = self.faults[requested.kind]
        fault = waiting.popleft() if waiting else None
        if fault is Fault.NOT_CONNECTED:
            raise ConnectionFailedError("connection refused", unsent=True)
        sent = Sent(self, requested.kind, path, body)
        self._api.sent(sent)
        await self._travel(SLOW if fault is Fault.LATE else LATENCY)
        if fault is Fault.LOST:
            raise ConnectionFailedError(_RESET)
        if fault in {Fault.FAILED, Fault.UNAVAILABLE, Fault.BUSY}:
            await self._travel()
            raise _REJECTIONS[fault]
        try:
            _, response = requested.response(self._api.store)
        except RejectedError as rejected:
            status = rejected.status
            await self._travel()
            raise StatusError(status["code"], status["reason"], status["message"]) from None
        self._api.carried_out(sent)
        await self._travel(SLOW if fault is Fault.RESPONSE_LATE else LATENCY)
        if fault is Fault.RESPONSE_LOST:
            raise ConnectionFailedError(_RESET)
        if fault is Fault.FAILED_AND_DONE:
            raise _REJECTIONS[fault]
        self._api.received(sent, response)
        return response

    async def _travel(self, seconds: tuple[float, float] = LATENCY) -> None:
        await asyncio.sleep(self._api.random.uniform(*seconds))
        if self._is_cut_off:
            await asyncio.sleep(2.0)
            raise ConnectionFailedError(_RESET)
