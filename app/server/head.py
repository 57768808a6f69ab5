"""The head of a request: its end, its limits, and what it says about the body behind it."""

import re
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

import httptools

_END: Final = b"\r\n\r\n"
"""Ends each head. The parser does not accept bare line feeds as line ends."""
_FIELD_COST: Final = 32
"""Bytes that each header counts in addition to its own, as in HTTP/2 (RFC 9113, 6.5.2). As Python objects, headers of 4
bytes take 40 times their size."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
"""The parser accepts any version up to 2.0."""
_PLAIN_PATH: Final = re.compile(rb"/[a-z/]*")
"""Targets that need no parser, which takes 1 us."""


_MEANINGFUL: Final = frozenset({b"content-length", b"transfer-encoding", b"connection", b"expect"})


class MalformedError(Exception):
    """A request that is not HTTP/1.1, or not in a form that this port reads."""

    def __init__(self, detail: str = "", status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        """Take the `status` of the response."""
        super().__init__(detail)
        self.status: Final = status


class LargeHeadError(Exception):
    """A head that is larger than allowed."""


class _Head:
    """What the parser reports. It has no reference to the parser, because only the garbage collector would end both."""

    __slots__ = (
        "_most",
        "closes",
        "expects",
        "has_coding",
        "headers",
        "is_complete",
        "is_large",
        "length",
        "url",
    )

    def __init__(self, most: int) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.length = 0
        self.closes = False
        self.expects = False
        self.has_coding = False
        self.is_complete = False
        self.is_large = False
        self._most = most // _FIELD_COST

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        headers = self.headers
        headers.append((name, value))
        if name in _MEANINGFUL:
            self._interpret(name, value)
        if len(headers) > self._most:
            self.is_large = True  # the parser does not pass the error on
            raise LargeHeadError

    def on_headers_complete(self) -> None:
        self.is_complete = True

    def _interpret(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            self.length = int(value)  # the parser rejects what is no number, and a second length
        elif name == b"transfer-encoding":
            self.has_coding = True
        elif name == b"connection":
            self.closes = self.closes or b"close" in value.lower().replace(b" ", b"").split(b",")
        else:
            self.expects = value.lower() == b"100-continue"


class HeadReader:
    """Reads a head, as it arrives."""

    __slots__ = (
        "_head",
        "_most",
        "_parser",
        "_size",
    )

    def __init__(self, most: int) -> None:
        """Accept a head of `most` bytes."""
        self._most = most
        self._size = 0  # bytes that were parsed
        self._head = _Head(most)
        self._parser = httptools.HttpRequestParser(self._head)

    def read(self, data: bytes) -> int:
        """Parse more of a head. `data` begins with the head. Return the size of the head, or 0 if it is not complete.

        Raises MalformedError and LargeHeadError.
        """
        begin, most, head = self._size, self._most, self._head
        found = data.find(_END, max(0, begin - len(_END) + 1), most)
        end = self._size = found + len(_END) if found >= 0 else min(len(data), most)
        try:
            self._parser.feed_data(data[begin:end])
        except httptools.HttpParserUpgrade:
            pass  # see `scope`
        except httptools.HttpParserError as error:
            if head.is_large:
                raise LargeHeadError from None
            raise MalformedError(str(error)) from None
        if head.is_complete != (found >= 0):
            raise MalformedError("the head has another end")
        if (found < 0 and end == most) or end + _FIELD_COST * len(head.headers) > most:
            raise LargeHeadError
        return end if head.is_complete else 0

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return self._head.length

    @property
    def expects(self) -> bool:
        """Whether the client waits for `100 Continue` before it sends the body."""
        return self._head.expects

    @property
    def closes(self) -> bool:
        """Whether the connection ends with the response. In HTTP/1.0 it does, although a client may ask otherwise."""
        return self._head.closes or self._parser.get_http_version() == "1.0"

    def scope(self, connection: dict[str, Any]) -> dict[str, Any]:
        """Return the ASGI scope, with the parts that belong to the connection. Raises MalformedError."""
        head, parser = self._head, self._parser
        version = parser.get_http_version()
        if version not in _VERSIONS:
            raise MalformedError("not HTTP/1.1")
        if parser.should_upgrade():
            raise MalformedError("Upgrade or CONNECT: the port has no other protocol")
        if head.has_coding:
            raise MalformedError("a body without Content-Length", HTTPStatus.LENGTH_REQUIRED)
        raw_path, query = head.url, b""
        if not _PLAIN_PATH.fullmatch(raw_path):
            raw_path, query = _target(raw_path)
        path = raw_path.decode("ascii")
        return {
            **connection,
            "http_version": version,
            "method": parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": head.headers,
        }


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
