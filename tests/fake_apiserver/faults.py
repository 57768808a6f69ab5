"""What can go wrong between a client and a kube-apiserver, to be switched on for the requests that it shall befall.

A `Fault` is an action, the requests that it applies to, and how often. Positions in a stream count its lines of any
type, bookmarks too: an action `after` 3 happens as soon as three lines are sent.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import msgspec

from tests.fake_apiserver.statuses import Status, too_many_requests, unauthorized

Kind: TypeAlias = Literal[
    "list", "page", "watch", "watch-list", "get", "bind", "delete", "patch", "create", "update", "version"
]
"""list: a list from its beginning; page: a continuation; watch-list: a watch with sendInitialEvents=true; get, bind,
delete, and patch (its status): of one pod; get, create and update: of one Lease; create: of an Event;
version: of GET /version."""
KINDS: Final[tuple[Kind, ...]] = ("list", "page", "watch", "watch-list")  # of a list path
STREAMS: Final[tuple[Kind, ...]] = ("watch", "watch-list")


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer this instead: an error, or nonsense."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CloseOnAccept:
    """Close the connection as soon as it is made; matches connections, not requests. `reset`: by RST."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection when the request has been read, without an answer, or right behind the head of one.

    `after_head`: what was asked of one pod is done before that.
    """

    after_head: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection inside of a body: `extra` bytes into the line that follows. Of a list, `extra` bytes in."""

    after: int = 0
    extra: int = 10
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """Stop sending for a time, or until `release` is called, with the connection open. Deadlines pass unheeded.

    `before_head`: not even the head is sent, and nothing is done. Of a list, the head and half of the body are sent
    first; what was asked of one pod is done, and only the answer is late.
    """

    seconds: float | None = None
    after: int = 0
    before_head: bool = False
    _released: asyncio.Event = field(default_factory=asyncio.Event, compare=False, repr=False)

    def release(self) -> None:
        """Let it go on, now and whenever this fault comes again."""
        self._released.set()

    async def wait(self) -> None:
        """Wait until it is over."""
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
    """Put a line into a watch that does not belong there: no JSON, or an unknown type. A line feed is added."""

    line: bytes
    after: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """Send the last `after` lines of a watch again, and go on."""

    after: int


@dataclass(frozen=True, slots=True)
class Undecodable:
    """Make the next object of a list or watch one that no client can decode: `metadata.labels` is a list."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """End a watch normally."""

    after: int = 0


@dataclass(frozen=True, slots=True)
class Gzip:
    """Compress the answer, whatever the client accepts."""


StreamAction: TypeAlias = Cut | Stall | StreamError | SendLine | Replay | Undecodable | End
Action: TypeAlias = Answer | CloseOnAccept | Close | Gzip | StreamAction


def refuse(status: Status, headers: Mapping[str, str] | None = None) -> Answer:
    """Answer a Status, with the Retry-After that it asks for."""
    retry_after = (status.get("details") or {}).get("retryAfterSeconds")
    found = {"Retry-After": str(retry_after)} if retry_after else {}
    return Answer(
        status["code"], msgspec.json.encode(status), {"Content-Type": "application/json", **found, **(headers or {})}
    )


def reject_token() -> Answer:
    """Answer 401."""
    return refuse(unauthorized())


def overloaded(retry_after: int = 1) -> Answer:
    """Answer 429 as priority and fairness does: in plain text, not as a Status."""
    return Answer(
        429,
        b"Too many requests, please try again later.\n",
        {"Content-Type": "text/plain; charset=utf-8", "Retry-After": str(retry_after)},
    )


def unready(retry_after: int = 1) -> Answer:
    """Answer 429 as a watch cache does that is not yet ready: with a Status."""
    return refuse(too_many_requests(retry_after))


@dataclass(slots=True, eq=False)
class Fault:
    """An action, and the requests that it applies to: of a path, of some kinds. `times` None: until removed."""

    action: Action
    path: str | None = None
    kinds: tuple[Kind, ...] = ()
    times: int | None = 1
    applied: int = 0

    def matches(self, path: str, kind: Kind) -> bool:
        """Tell whether it applies to a request."""
        return (
            not isinstance(self.action, CloseOnAccept)
            and self.path in {None, path}
            and (not self.kinds or kind in self.kinds)
        )


class FaultQueue:
    """Faults that are switched on. The first that matches a request applies, alone."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._stalls: list[Stall] = []  # all that ever were added: those under way are no longer in the queue

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
        """Switch a fault off; streams that it has befallen already stay as they are."""
        if fault in self._faults:
            self._faults.remove(fault)

    def clear(self) -> None:
        """Switch all faults off, and let go on what is stalled."""
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
