"""A minimal HTTP client. The cost of a larger client would hide the difference between two servers."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

_END_OF_HEAD: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TIMEOUT: Final = 120.0  # seconds


class WireError(Exception):
    """A response that is not 200, has no Content-Length, or never ended."""


def request(method: str, path: str, body: bytes, *headers: tuple[str, str]) -> bytes:
    """Make the bytes of a request."""
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(head).encode() + _END_OF_HEAD + body


class Wire:
    """One kept connection. `largest` is the limit of a response in bytes, with its head.

    It is for requests in a row, because servers close it after some idle seconds.
    """

    def __init__(self, connection: socket.socket, largest: int) -> None:
        self._socket = connection
        self._buffer = memoryview(bytearray(largest))

    def ask(self, sent: bytes) -> tuple[float, memoryview]:
        """Send a request and wait for its response. Return the seconds and the body. The next response overwrites it.

        Raises WireError, OSError.
        """
        began = time.perf_counter()
        self._socket.sendall(sent)
        filled = self._more(0)
        body, end = self._span(filled)
        while filled < end:
            filled = self._more(filled)
        return time.perf_counter() - began, self._buffer[body:end]

    def _span(self, filled: int) -> tuple[int, int]:
        """Return the begin and the end of the body. The measured servers send a head in one piece."""
        head, separator, _ = bytes(self._buffer[: min(filled, 4096)]).partition(_END_OF_HEAD)
        length = _LENGTH.search(head)
        if not separator or length is None or not head.startswith(b"HTTP/1.1 200 "):
            raise WireError(f"unexpected answer: {head[:500].decode(errors='replace')}")
        begins = len(head) + len(separator)
        ends = begins + int(length[1])
        if ends > len(self._buffer):
            raise WireError(f"an answer of {ends} bytes; at most {len(self._buffer)} were expected")
        return begins, ends

    def _more(self, filled: int) -> int:
        """Receive available bytes. Return the number of filled bytes of the buffer."""
        received = self._socket.recv_into(self._buffer[filled:])
        if received == 0:
            raise WireError("the server closed the connection")
        return filled + received


@contextmanager
def connected(url: str, largest: int) -> Iterator[Wire]:
    """Connect to a server. `url` has no path."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 80), _TIMEOUT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield Wire(connection, largest)
