"""The bytes of list and watch, to pages and events. Their objects are left as bytes, except for pods of a watch.

Source of the envelopes: k8s.io/apimachinery meta/v1 types.go (ListMeta, WatchEvent), and the WatchList bookmark of
KEP-3157.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from http import HTTPStatus
from time import perf_counter
from typing import Final, Literal, TypeAlias

import msgspec

from app.api_server.client import ApiClient, ResponseTooLargeError, StatusError
from app.feeds.freshness import ResourceState
from app.objects.decode import DecodeError, decoding
from app.objects.resources import PodEvent, Resource, pod_events
from core.objects.pod import Pod

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_FEW_BYTES: Final = 8 * 1024 * 1024  # elements of smaller pages are not counted
_MAX_ELEMENTS: Final = 5_000_000
"""JSON elements in one page. An item of two bytes of JSON takes about 100 bytes of memory."""
_BYTES_AN_ELEMENT: Final = 10  # of a list without pages, which may have GBs
_VERSION: Final = re.compile(r"[1-9][0-9]*")


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct, gc=False):
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


class ListPage(msgspec.Struct, frozen=True, gc=False):
    """One page of a list. `continue_token` is empty on the last page."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


class RawEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch, with the object as bytes. The effect of an unknown type on the object is unknown."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


WatchEvent: TypeAlias = RawEvent | PodEvent


class _BookmarkMetadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str | None = None
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMetadata | None = None


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """The version of the watch, and whether it is the end of the initial events."""

    resource_version: str
    initial_events_end: bool


_page_decoder: Final = msgspec.json.Decoder(_Page)
_event_decoder: Final = msgspec.json.Decoder(RawEvent)
_BEGINS: Final[tuple[tuple[bytes, Literal["ADDED", "MODIFIED", "DELETED"]], ...]] = (
    (b'{"type":"ADDED","object":{', "ADDED"),
    (b'{"type":"MODIFIED","object":{', "MODIFIED"),
    (b'{"type":"DELETED","object":{', "DELETED"),
)
"""The begins of lines, as Go encodes a WatchEvent: the object follows, and one more brace."""
_bookmark_decoder: Final = msgspec.json.Decoder(_Bookmark)


def decode_page(body: bytes) -> ListPage:
    """Decode a page of a list. Raises DecodeError."""
    if len(body) > _FEW_BYTES and body.count(b",") > max(_MAX_ELEMENTS, len(body) // _BYTES_AN_ELEMENT):
        raise DecodeError("", f"a page of {len(body)} bytes with too many elements")
    page = decoding(_page_decoder.decode, body)
    metadata = page.metadata or _ListMeta()
    if not metadata.resource_version:
        raise DecodeError("metadata.resourceVersion", "required")
    return ListPage(page.items or [], metadata.resource_version, metadata.continue_ or "")


def is_older(version: str, other: str) -> bool:
    """Return whether a resource version is older than another of the same resource. False for unknown forms.

    Source: k8s.io/apimachinery pkg/util/resourceversion CompareResourceVersion (v0.35).
    """
    forms = _VERSION.fullmatch(version), _VERSION.fullmatch(other)
    return all(forms) and (len(version), version) < (len(other), other)


PAGE_SIZE: Final = 500
"""Objects in a page of a list. The request has no resourceVersion, because with "0" the server ignores the limit."""
MAX_PAGE_BYTES: Final = 64 * 1024 * 1024
"""Ten times a page of ordinary pods, and enough for several of the largest objects."""
_FEWER: Final = 8


class Pages:
    """Gets the pages of one list after the other, limited in objects and in bytes.

    500 pods are a few MB. But a tenant may have 500 of the largest pods that etcd accepts: 1.5 MiB each, and up to
    9 MiB as JSON. So a page that is too large is requested again with fewer objects. A continue token allows another
    number.
    """

    def __init__(self, client: ApiClient, path: str) -> None:
        self._client = client
        self._path = path
        self._objects = PAGE_SIZE

    async def get(self, params: Mapping[str, str]) -> bytes:
        """Return a page. Raises ApiError, CredentialsError. ResponseTooLargeError: one object alone is too large."""
        while True:
            limited = {**params, "limit": str(self._objects)}
            try:
                page = await self._client.get(self._path, limited, MAX_PAGE_BYTES)
            except ResponseTooLargeError:
                if self._objects == 1:
                    raise
                self._objects = max(1, self._objects // _FEWER)
                continue
            self._objects = min(PAGE_SIZE, 2 * self._objects)  # large objects are mostly neighbours
            return page


async def pages_of(client: ApiClient, resource: Resource) -> AsyncIterator[ListPage]:
    """Yield the pages of a list of all objects. Raises ApiError, CredentialsError and DecodeError."""
    params = resource.params
    pages = Pages(client, resource.path)
    while True:
        page = decode_page(await pages.get(params))
        yield page
        if not page.continue_token:
            return
        params["continue"] = page.continue_token


LOADING: Final = 0.005
"""Seconds of a turn while a list is loaded: the longest time that a request waits for events."""
FOLLOWING: Final = 0.0002
"""Seconds of a turn that follows a watch: about one event, after which a request is answered before the next one."""
_WAITED: Final = 0.00005
"""Seconds. Bytes that are there already mostly come within 5 us, but a full buffer takes up to a millisecond."""
_TO_OTHERS: Final = 4
"""Turns of a busy loop to those of the other tasks. With 1, a watch of 2,000 events a second fell behind a flood."""


class LoopShare:
    """Yields the loop after a turn has lasted long enough. Called between short steps.

    A turn lasts four times as long as the other tasks have had the loop before it, at least `shortest` and at most
    LOADING. So a request waits for little, and the mirror keeps pace beside a flood of requests.
    """

    def __init__(self) -> None:
        self.shortest = LOADING
        self._ends = 0.0

    @property
    def over(self) -> bool:
        """Whether it is time to call `checkpoint`. Two methods, because an await for each of 150,000 steps adds up."""
        return perf_counter() > self._ends

    def arrived(self, left: float) -> None:
        """Begin a short turn with bytes that the caller has waited for since `left`: meanwhile others had the loop.

        Else each event that arrives alone would end with a checkpoint, a round of the loop before the next wait. It is
        short even while a list is loaded, because to read bytes that were there may take as long as a wait.
        """
        now = perf_counter()
        if now - left > _WAITED:
            self._ends = max(self._ends, now + FOLLOWING)

    async def checkpoint(self) -> None:
        """Let the other tasks of the loop run once, and begin a new turn."""
        left = perf_counter()
        await asyncio.sleep(0)
        began = perf_counter()
        self._ends = began + min(max(_TO_OTHERS * (began - left), self.shortest), LOADING)


MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""An object in etcd has at most 1.5 MiB by default. Its JSON may be six times as large, if every character is escaped.
A tenant can make such a pod, and some etcds have a higher limit. An endless line must not take all memory."""


class LineTooLongError(ValueError):
    """A line of more than MAX_LINE_BYTES."""


class LineSplitter:
    """Collects chunks that break anywhere, and returns whole lines. Only a line feed ends a line.

    JSON may have U+0085 and U+2028 unescaped. Text readers, such as httpx's `aiter_lines`, treat them as line ends.
    """

    def __init__(self) -> None:
        self._unfinished = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that a chunk completes, without their line feeds. Raises LineTooLongError."""
        lines, begin = [], 0
        while (end := chunk.find(b"\n", begin)) >= 0:  # `split` looks at each byte in turn: 1 us a pod
            lines.append(chunk[begin:end])
            begin = end + 1
        rest = chunk[begin:]
        if lines and self._unfinished:
            # One growing buffer, not a list of pieces: pieces may have one byte each.
            self._unfinished += lines[0]
            lines[0] = bytes(self._unfinished)
            self._unfinished = bytearray()
        if rest:
            self._unfinished += rest
        if len(self._unfinished) > MAX_LINE_BYTES or (lines and len(lines[0]) > MAX_LINE_BYTES):
            raise LineTooLongError(f"a line of more than {MAX_LINE_BYTES} bytes")
        return lines

    @property
    def unfinished(self) -> bool:
        """Whether the stream so far ends in the middle of a line."""
        return bool(self._unfinished)


class BrokenWatchError(Exception):
    """The server accepted a watch, but the response was no watch, or it broke.

    Itself: it ended at once, in the middle of a line, or before the end of the initial events.
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


def is_too_large_version(status: StatusError) -> bool:
    """Upstream isTooLargeResourceVersionError: by the cause since 1.17, in older versions by the message."""
    return "ResourceVersionTooLarge" in status.causes or (
        status.code == HTTPStatus.GATEWAY_TIMEOUT and "Too large resource version" in status.message
    )


_LINES_AT_ONCE: Final = 32  # of pods, less than a millisecond
_MAX_BLOCK_BYTES: Final = 1024 * 1024  # of lines at once, whose elements are not counted


def event_of(line: bytes) -> RawEvent:
    """Return the event of a line. Raises DecodeError.

    The object of an ordinary line is cut out, not decoded: that would take as long as to read the object afterwards. If
    the line is malformed, or goes on after the object, then the object is malformed, too.
    """
    for begin, kind in _BEGINS:
        if line.startswith(begin) and line.endswith(b"}"):
            return RawEvent(kind, msgspec.Raw(line[len(begin) - 1 : -1]))
    return decoding(_event_decoder.decode, line)


def _pod_events_of(lines: Sequence[bytes], state: ResourceState) -> Sequence[PodEvent]:
    """Return the events of lines that all have a pod, decoded in one call, or none: a call for each takes 2 us more."""
    text = b"\n".join(lines)
    relisted = state.synced and state.listed  # most pods are known then, and to read their versions takes less
    if state.resource.kind is not Pod or relisted or len(text) > _MAX_BLOCK_BYTES:
        return ()
    try:
        events = pod_events(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()  # a bookmark is among them, or a line that has to be named
    if len(events) != len(lines):
        return ()  # one is empty, or goes on in the next line, which is no event
    for event in events:  # mostly one: `update` takes four times as long for it
        state.events[event.type] += 1
    state.read_objects += len(events)
    state.read_bytes += len(text)
    return events


def _events_of(lines: Sequence[bytes], state: ResourceState) -> Iterator[WatchEvent]:
    if events := _pod_events_of(lines, state):
        yield from events
        return
    for line in filter(None, lines):
        try:
            event = event_of(line)
        except DecodeError as error:
            raise GarbledWatchError(f"{state.resource.path}: not a watch event: {error}") from None
        state.events[event.type] += 1
        if event.type == "ERROR":
            raise InStreamError(StatusError.of(event.object))
        yield event


async def watch_events(
    chunks: AsyncIterator[bytes], state: ResourceState, turns: LoopShare
) -> AsyncGenerator[Iterator[WatchEvent], None]:
    """Yield the events of a stream up to its end, some at once, and count them.

    Events that the caller did not read come again. Raises BrokenWatchError, also for an ERROR event. The iterators of
    events raise it, too.
    """
    splitter, left = LineSplitter(), perf_counter()
    async for chunk in chunks:
        turns.arrived(left)
        try:
            lines = splitter.feed(chunk)
        except LineTooLongError as error:
            raise GarbledWatchError(f"{state.resource.path}: {error}") from None
        for begin in range(0, len(lines), _LINES_AT_ONCE):
            events = _events_of(lines[begin : begin + _LINES_AT_ONCE], state)
            yield events
            yield events  # the rest, if the caller stopped at the end of the initial events
            if turns.over:
                await turns.checkpoint()
        left = perf_counter()
    if splitter.unfinished:
        raise BrokenWatchError(f"{state.resource.path}: the watch ended in the middle of a line")


def bookmark_of(event: RawEvent) -> Bookmark:
    """Return the contents of a BOOKMARK event. Raises GarbledWatchError."""
    try:
        metadata = decoding(_bookmark_decoder.decode, event.object).metadata or _BookmarkMetadata()
    except DecodeError as error:
        raise GarbledWatchError(f"bookmark: {error}") from None
    if not metadata.resource_version:
        raise GarbledWatchError("bookmark: metadata.resourceVersion: required")
    return Bookmark(metadata.resource_version, (metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true")
