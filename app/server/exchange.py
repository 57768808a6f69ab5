"""One request and its response, between a connection and an ASGI app. The head is parsed, the rest is passed on."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Generator, Iterable
from http import HTTPStatus
from types import coroutine
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import httptools
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message

from app.verbs.endpoint import CLOSE, Header, VerbEndpoint
from app.verbs.request import OPTION

if TYPE_CHECKING:
    from app.server.port import Connection

log = logging.getLogger(__name__)

# The head of a request: its end, its limits, and what it says about the body behind it.

END_OF_HEAD: Final = b"\r\n\r\n"
"""Ends each head. The parser does not accept bare line feeds as line ends."""
_FIELD_COST: Final = 32
"""Bytes that each header counts in addition to its own, as in HTTP/2 (RFC 9113, 6.5.2). As Python objects, headers of 4
bytes take 40 times their size."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
"""The parser accepts any version up to 2.0."""
_PLAIN_PATH: Final = re.compile(rb"/[a-z/]*")
"""Targets that need no parser, which takes 1 us."""


class MalformedError(Exception):
    """A request that is not HTTP/1.1, or not in a form that this port reads."""

    def __init__(self, detail: str = "", status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        """Take the `status` of the response."""
        super().__init__(detail)
        self.status: Final = status


class LargeHeadError(Exception):
    """A head that is larger than allowed."""


class _Report:
    """What the parser reports. It has no reference to the parser, because only the garbage collector would end both."""

    __slots__ = ("_most", "headers", "is_complete", "is_large", "url")

    def __init__(self, most: int) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False
        self.is_large = False
        self._most = most // _FIELD_COST

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))
        if len(self.headers) > self._most:
            self.is_large = True  # the parser does not pass the error on
            raise LargeHeadError

    def on_headers_complete(self) -> None:
        self.is_complete = True


class Head:
    """A head, as it arrives."""

    __slots__ = ("_most", "_parser", "_parts", "_report", "closes", "expects", "length", "parsed", "verb")

    def __init__(self, most: int) -> None:
        """Accept a head of `most` bytes."""
        self.length = 0
        """Bytes of the body. This and the following are known after `scope`."""
        self.expects = False
        """Whether the client waits for `100 Continue` before it sends the body."""
        self.closes = False
        """Whether the connection ends with the response."""
        self.parsed = 0
        """Bytes that were parsed."""
        self.verb: VerbEndpoint | None = None
        """Responds at once to requests with this head. None: they go by ASGI."""
        self._most = most
        self._report = _Report(most)
        self._parser = httptools.HttpRequestParser(self._report)
        self._parts: dict[str, Any] = {}  # of the scope, once they are known

    def read(self, data: bytes) -> int:
        """Parse more of a head. `data` begins with the head. Return the size of the head, or 0 if it is not complete.

        Raises MalformedError and LargeHeadError.
        """
        if self._parts:  # the same bytes as in an earlier request
            return self.parsed
        begin, most, report = self.parsed, self._most, self._report
        found = data.find(END_OF_HEAD, max(0, begin - len(END_OF_HEAD) + 1), most)
        end = self.parsed = found + len(END_OF_HEAD) if found >= 0 else min(len(data), most)
        try:
            self._parser.feed_data(data[begin:end])
        except httptools.HttpParserUpgrade:
            pass  # see `scope`
        except httptools.HttpParserError as error:
            if report.is_large:
                raise LargeHeadError from None
            raise MalformedError(str(error)) from None
        if report.is_complete != (found >= 0):
            raise MalformedError("the head has another end")
        if (found < 0 and end == most) or end + _FIELD_COST * len(report.headers) > most:
            raise LargeHeadError
        return end if report.is_complete else 0

    def scope(self, connection: dict[str, Any]) -> dict[str, Any]:
        """Return the ASGI scope, with the parts that belong to the connection. Raises MalformedError."""
        if not self._parts:
            self._parts = self._read()
        return {**connection, **self._parts}

    def asks_nothing(self) -> bool:
        """Return whether the head asks for nothing but the response: no option, no end, no `100 Continue`."""
        options = any(name.startswith(OPTION) for name, _ in self._report.headers)
        return not (self.closes or self.expects or options)

    def _read(self) -> dict[str, Any]:
        report, parser = self._report, self._parser
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise MalformedError("not HTTP/1.1")
        if parser.should_upgrade():
            raise MalformedError("Upgrade or CONNECT: the port has no other protocol")
        self.closes = version == "1.0"  # although a client may ask otherwise
        for name, value in report.headers:
            if name == b"content-length":
                self.length = int(value)  # the parser rejects what is no number, and a second length
            elif name == b"transfer-encoding":
                raise MalformedError("a body without Content-Length", HTTPStatus.LENGTH_REQUIRED)
            elif name == b"connection":
                self.closes = self.closes or b"close" in value.lower().replace(b" ", b"").split(b",")
            elif name == b"expect":
                self.expects = value.lower() == b"100-continue"
        raw_path, query = report.url, b""
        if not _PLAIN_PATH.fullmatch(raw_path):
            raw_path, query = _target(raw_path)
        path = raw_path.decode("ascii")
        return {
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": report.headers,
        }


_MAX_KNOWN_HEAD: Final = 512  # bytes
_MAX_KNOWN_HEADS: Final = 64


class KnownHeads:
    """The heads of recent requests to verbs. A scheduler sends the same one, but for the length of the body.

    To parse a head takes 10 us. Heads of other routes are not kept, because they may have a token.
    """

    def __init__(self) -> None:
        self._heads: dict[bytes, Head] = {}

    def get(self, data: bytes) -> Head | None:
        """Return the head with which received bytes begin. None: it must be parsed."""
        return self._heads.get(data[: data.find(END_OF_HEAD, 0, _MAX_KNOWN_HEAD) + len(END_OF_HEAD)])

    def keep(self, text: bytes, head: Head) -> None:
        """Keep a complete head with its bytes."""
        if len(text) <= _MAX_KNOWN_HEAD and text not in self._heads:
            if len(self._heads) >= _MAX_KNOWN_HEADS:
                self._heads.clear()
            self._heads[text] = head


def _target(url: bytes) -> tuple[bytes, bytes]:
    """Return the path and the query of a target. Raises MalformedError."""
    try:
        parsed = httptools.parse_url(url)
    except httptools.HttpParserError:  # whose text quotes the target
        raise MalformedError("invalid target") from None
    path = parsed.path or b"/"
    if not path.isascii():
        raise MalformedError("invalid target")
    return path, parsed.query or b""


_AT_ONCE: Final = 256 * 1024
"""Bytes of a response that are encrypted in one call. OpenSSL keeps a buffer for the longest write until the connection
closes. With 5,000 whole nodes that would be more than 32 MB for each connection."""
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_CHUNKED: Final[Header] = (b"transfer-encoding", b"chunked")
_FAILED: Final = b"Internal Server Error"
_NO_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


def head_of_response(status: int, headers: Iterable[Header]) -> bytes:
    """Return the head of a response. Raises ValueError for a header of several lines."""
    lines = [*map(b"%b: %b\r\n".__mod__, headers)]
    head = b"".join((_STATUS_LINES[status], *lines, b"\r\n"))
    if head.count(b"\n") != len(lines) + 2:
        raise ValueError("a header of the response has several lines")
    return head


class Exchange:
    """A request, from its head to the end of its response."""

    __slots__ = (
        "_body",
        "_chunked",
        "_connection",
        "_expects",
        "_has_read",
        "_head",
        "_left",
        "_news",
        "_scope",
        "closes",
        "has_begun",
    )

    def __init__(self, connection: "Connection", scope: dict[str, Any], *, closes: bool, expects: bool) -> None:
        """Begin. `closes`: the connection ends with the response. `expects`: the client waits for `100 Continue`."""
        self.closes = closes
        self.has_begun = False
        """Whether a part of the response was written, or waits for its body."""
        self._connection: Connection | None = connection
        self._scope = scope
        self._expects = expects
        self._body = b""  # of the request: what has arrived, and the app has not taken
        self._news: asyncio.Event | None = None
        self._has_read = False  # whether the app has the whole body
        self._head = b""  # of the response; written with the first piece of its body
        self._chunked = False
        self._left = 0  # bytes of the response's body to come

    def take(self, piece: bytes) -> int:
        """Keep a piece of the body for the app. Return the bytes that are kept."""
        self._body += piece  # short mostly: the app takes what has arrived, or the connection stops reading
        self._tell()
        return len(self._body)

    def leave(self) -> None:
        """Let the app know that its client has left, or that nobody waits for its response."""
        self._connection = None
        self._body = b""
        self._tell()

    async def run(self, app: ASGIApp) -> None:
        """Call the app."""
        try:
            await app(self._scope, self._receive, self._send)
        except ClientDisconnect:  # in the middle of its body
            pass
        except Exception:
            log.exception("a route failed")
            await self._fail()
        finally:
            if self._connection is not None:  # the response is not complete
                self._connection.transport.abort()

    async def _fail(self) -> None:
        if not self.has_begun:
            length = b"%d" % len(_FAILED)
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", length), CLOSE]
            await self._send({"type": "http.response.start", "status": 500, "headers": headers})
            await self._send({"type": "http.response.body", "body": _FAILED})

    async def _receive(self) -> Message:
        while (connection := self._connection) is not None:
            if not self._has_read and (self._body or not connection.body_left):
                body, self._body = self._body, b""
                self._has_read = not connection.body_left
                return {"type": "http.request", "body": body, "more_body": not self._has_read}
            if self._expects and not self._has_read:
                self._expects = False
                connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            connection.resume_reading()
            if self._news is None:
                self._news = asyncio.Event()
            self._news.clear()
            await self._news.wait()
        return {"type": "http.disconnect"}

    def _tell(self) -> None:
        if self._news is not None:
            self._news.set()

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(message["status"], message.get("headers", ()))
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._scope["method"] == "HEAD":
            body, self._left = b"", 0
        if self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        else:
            self._left -= len(body)
        await self._write(body)
        if not more:
            self._end()

    def _begin(self, status: int, headers: Iterable[Header]) -> None:
        """Prepare the head of the response. Names of headers are in lower case, as ASGI demands."""
        connection = self._connection
        if connection is None:
            return
        written = list(connection.default_headers)
        length = b""
        closes = False
        for header in headers:
            name, value = header
            if name == b"content-length":
                length = value
            elif name == b"connection":
                closes = value.lower() == b"close"
            written.append(header)
        if self.closes and not closes:
            written.append(CLOSE)
        self.closes = self.closes or closes
        if length:
            self._left = int(length)
        elif self._scope["method"] != "HEAD" and status not in _NO_BODY:
            self._chunked = True
            written.append(_CHUNKED)
        self._head = head_of_response(status, written)
        self.has_begun = True
        if self._chunked:  # the first event of a stream may be far away
            connection.transport.write(self._head)
            self._head = b""

    async def _write(self, body: bytes) -> None:
        """Write the head, if it waits, and a part of the body, as the client reads it."""
        head, self._head = self._head, b""
        connection = self._connection
        if connection is not None and connection.write_paused:
            await connection.drained()
            connection = self._connection
        if connection is None:
            return
        if len(body) <= _AT_ONCE or not connection.is_secure:
            connection.transport.writelines((head, body))
            return
        connection.transport.write(head)
        view = memoryview(body)
        for begin in range(0, len(body), _AT_ONCE):
            await connection.drained()
            if self._connection is None:
                return
            connection.transport.write(view[begin : begin + _AT_ONCE])

    def _end(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._body = b""
        self._tell()
        if self._left:  # the client waits for bytes that never come, or takes some for the next response
            log.error("a response has another length than its Content-Length")
            connection.transport.abort()
        else:
            connection.end_exchange(closes=self.closes)


def begin(work: Coroutine[Any, Any, None], keep: Callable[[Coroutine[Any, Any, None]], None]) -> None:
    """Begin some work at once, and pass the rest, if it must wait for something, to `keep`, which makes a task of it.

    Work that never waits needs no task and no further round of the event loop, which saves 20 us of a request. Up to
    its first wait it must not need a task, as `asyncio.timeout` does. asyncio can do this from Python 3.12 on
    (eager_start).
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return
    keep(_rest(work, waits_for))


@coroutine
def _rest(work: Coroutine[Any, Any, None], waits_for: object) -> Generator[Any, Any, None]:
    """Continue work that waits for a future, or for the next round of the loop."""
    while True:
        try:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001  # whatever the task throws, such as CancelledError
                waits_for = work.throw(error)
            else:
                waits_for = work.send(None)
        except StopIteration:
            return
