"""Faults between a client and a kube-apiserver, which a test switches on for some requests, and the log of requests.

A `Fault` has an action, the requests that it applies to, and a number of times. Positions in a stream count lines of
any type, with bookmarks: an action `after` 3 happens as soon as three lines are sent.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import msgspec

from tests.fake_apiserver.statuses import Status, unauthorized

Kind: TypeAlias = Literal[
    "list", "page", "watch", "watch-list", "get", "bind", "delete", "patch", "create", "update", "version"
]
"""list: a list from its beginning; page: a continuation; watch-list: a watch with sendInitialEvents=true; get, bind,
delete, and patch (its status): of one pod; get, create and update: of one Lease; create: of an Event;
version: of GET /version."""
KINDS: Final[tuple[Kind, ...]] = ("list", "page", "watch", "watch-list")  # of a list path
STREAMS: Final[tuple[Kind, ...]] = ("watch", "watch-list")


@dataclass(frozen=True, slots=True)
class Response:
    """Return this response instead: an error, or nonsense."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloseOnAccept:
    """Close the connection as soon as it is accepted. Matches connections, not requests. `reset`: by RST."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection after the request was read, without a response, or right after the head of one.

    `after_head`: a request for one pod is carried out before that.
    """

    after_head: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection within a body: `extra` bytes into the following line. In a list, after `extra` bytes."""

    after: int = 0
    extra: int = 10
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """Stop sending for a time, or until `release` is called, with the connection open. Deadlines are ignored.

    `before_head`: not even the head is sent, and the request is not carried out. Otherwise half of a list is sent
    first, and a request for one pod is carried out and only its response is late.
    """

    seconds: float | None = None
    after: int = 0
    before_head: bool = False
    _released: asyncio.Event = field(default_factory=asyncio.Event, compare=False, repr=False)

    def release(self) -> None:
        """End this stall, and all later ones of the same fault."""
        self._released.set()

    async def wait(self) -> None:
        """Wait until the stall is over."""
        try:
            async with asyncio.timeout(self.seconds):
                await self._released.wait()
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True)
class StreamError:
    """End a watch with an ERROR event."""

    status: Status
    after: int = 0


@dataclass(frozen=True, slots=True)
class SendLine:
    """Insert an invalid line into a watch: no JSON, or an unknown type. A line feed is added."""

    line: bytes
    after: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """Send the last `after` lines of a watch again, and continue."""

    after: int


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Make the next object of a list or watch undecodable: `metadata.labels` is a list."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """End a watch normally."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Gzip:
    """Compress the response, whatever the client accepts."""


StreamAction: TypeAlias = Cut | Stall | StreamError | SendLine | Replay | Undecodable | End
Action: TypeAlias = Response | CloseOnAccept | Close | Gzip | StreamAction


def refuse(status: Status, headers: Mapping[str, str] | None = None) -> Response:
    """Respond with a Status, with its Retry-After."""
    retry_after = (status.get("details") or {}).get("retryAfterSeconds")
    found = {"Retry-After": str(retry_after)} if retry_after else {}
    return Response(
        status["code"], msgspec.json.encode(status), {"Content-Type": "application/json", **found, **(headers or {})}
    )


def reject_token() -> Response:
    """Respond with 401."""
    return refuse(unauthorized())


def overloaded(retry_after: int = 1) -> Response:
    """Respond with 429 as priority and fairness does: in plain text, not as a Status."""
    return Response(
        429,
        b"Too many requests, please try again later.\n",
        {"Content-Type": "text/plain; charset=utf-8", "Retry-After": str(retry_after)},
    )


@dataclass(slots=True, eq=False)
class Fault:
    """An action, and the path and kinds of the requests that it applies to. `times` None: until removed."""

    action: Action
    path: str | None = None
    kinds: tuple[Kind, ...] = ()
    times: int | None = 1
    applied: int = 0

    def matches(self, path: str, kind: Kind) -> bool:
        """Return whether the fault applies to a request."""
        return (
            not isinstance(self.action, CloseOnAccept)
            and self.path in {None, path}
            and (not self.kinds or kind in self.kinds)
        )


class FaultQueue:
    """Faults that are switched on. Only the first matching fault applies to a request."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._stalls: list[Stall] = []  # all stalls ever added, because a stall in progress is no longer in the queue

    def add(self, action: Action, path: str | None = None, *kinds: Kind, times: int | None = 1) -> Fault:
        """Switch a fault on for the next `times` requests of a path (None: any) and of some kinds (none: any)."""
        if not kinds and isinstance(action, StreamError | SendLine | Replay | End):
            kinds = STREAMS
        fault = Fault(action, path, kinds, times)
        self._faults.append(fault)
        if isinstance(action, Stall):
            self._stalls.append(action)
        return fault

    def remove(self, fault: Fault) -> None:
        """Switch a fault off. It still applies to streams that it has reached already."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Switch all faults off, and end all stalls."""
        self._faults.clear()
        for stall in self._stalls:
            stall.release()
        self._stalls.clear()

    @property
    def pending(self) -> tuple[Fault, ...]:
        """The faults that are still switched on."""
        return tuple(self._faults)

    def of_request(self, path: str, kind: Kind) -> Action | None:
        """Take the action for a request."""
        return self._take(next((fault for fault in self._faults if fault.matches(path, kind)), None))

    def of_connection(self) -> CloseOnAccept | None:
        """Take the action for a new connection."""
        found = next((fault for fault in self._faults if isinstance(fault.action, CloseOnAccept)), None)
        action = self._take(found)
        return action if isinstance(action, CloseOnAccept) else None

    def _take(self, fault: Fault | None) -> Action | None:
        if fault is None:
            return None
        fault.applied += 1
        if fault.applied == fault.times:
            self._faults.remove(fault)
        return fault.action


@dataclass(slots=True, eq=False)
class LoggedRequest:
    """One request. `time` is monotonic, in seconds. `status` 0: no response has begun."""

    path: str
    kind: Kind
    query: Mapping[str, str]
    headers: Mapping[str, str]
    time: float
    body: bytes = b""
    status: int = 0
    events: int = 0  # sent lines of a watch
    ended: bool = False


class RequestLog:
    """All requests, the oldest first."""

    def __init__(self) -> None:
        self._requests: list[LoggedRequest] = []
        self._news = asyncio.Event()
        self.connections = 0  # accepted connections, also if closed at once

    def add(self, request: LoggedRequest) -> None:
        """Log a received request."""
        self._requests.append(request)
        self.changed()

    def changed(self) -> None:
        """Wake all waiting calls of `until`."""
        self._news.set()

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> LoggedRequest:
        return self._requests[index]

    def of(self, path: str | None = None, *kinds: Kind) -> list[LoggedRequest]:
        """Return the requests of a path (None: any) and of some kinds (none: any)."""
        return [
            request
            for request in self._requests
            if path in {None, request.path} and (not kinds or request.kind in kinds)
        ]

    def clear(self) -> None:
        """Drop all logged requests."""
        self._requests.clear()

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition. It is checked after every request, response and event. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()
