"""Received bytes that are not parsed yet, cut into pieces where a head or a request may end.

The parser reports no position. So each piece ends where a head or a request may end. Bytes after a request stay unread
until that request has its response.
"""

import re
from typing import Final, TypeAlias

Piece: TypeAlias = bytes | memoryview
_END: Final = b"\r\n\r\n"
"""Ends each head and each chunked body. The parser does not accept bare line feeds as line ends."""

_LENGTH: Final = b"\r\nContent-Length: "
"""The spelling of Go and curl. A request with another spelling is parsed in two pieces, which takes 3 us more."""
_EMPTY_LINES: Final = re.compile(rb"[\r\n]*")


def head_of_whole_request(data: bytes, most: int) -> int:
    """Return the size of the head, if the data looks like exactly one request with a length. Else return 0.

    This is a guess that takes 0.3 us. The parser decides whether the request is valid.
    """
    end = data.find(_END, 0, most)
    said = data.find(_LENGTH, 0, end + 2)
    if end < 0 or said < 0:
        return 0
    head = end + len(_END)
    return head if data.startswith(b"%d\r\n" % (len(data) - head), said + len(_LENGTH)) else 0


class Unread:
    """The bytes, in order. False when there are none."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._tail = b""  # end of the last piece, in which an empty line may have begun
        self.at_end = False
        """Whether the last piece was cut behind an empty line."""

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def add(self, data: bytes) -> None:
        """Append received bytes."""
        self._data = self._data[self._at :] + data if self else data
        self._at = 0

    def clear(self) -> None:
        """Drop all bytes."""
        self._data = self._tail = b""
        self._at = 0

    def skip_empty_lines(self) -> int:
        """Skip the empty lines before a request (RFC 9112, 2.2). Return the number of skipped bytes."""
        if self._data[self._at] not in b"\r\n":
            return 0
        begin = self._at
        if found := _EMPTY_LINES.match(self._data, begin):
            self._at = found.end()
        return self._at - begin

    def take(self, most: int) -> Piece:
        """Return the next bytes, at most `most`."""
        self._tail = b""
        self.at_end = False
        return self._piece(min(self._at + most, len(self._data)))

    def take_until_end(self, most: int) -> Piece:
        """Return the next bytes, at most `most`, up to an empty line. The line may have begun in the last piece."""
        limit = min(self._at + most, len(self._data))
        end = self._end(limit)
        self.at_end = end > 0
        self._tail = b"" if self.at_end else (self._tail + self._data[max(self._at, limit - 3) : limit])[-3:]
        return self._piece(end or limit)

    def put_back(self, data: Piece) -> None:
        """Put data back in front of the unread bytes."""
        self._data = bytes(data) + self._data[self._at :]
        self._at = 0

    def _end(self, limit: int) -> int:
        """Return the position behind the next empty line. 0 if there is none up to `limit`."""
        if self._tail:
            for count in (1, 2, 3):
                if self._tail.endswith(_END[:-count]) and self._data.startswith(_END[-count:], self._at):
                    return self._at + count
        found = self._data.find(_END, self._at, limit)
        return found + len(_END) if found >= 0 else 0

    def _piece(self, end: int) -> Piece:
        begin, self._at = self._at, end
        whole = begin == 0 and end == len(self._data)
        return self._data if whole else memoryview(self._data)[begin:end]
