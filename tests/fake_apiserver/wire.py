"""The part of HTTP/1.1 that a kube-apiserver and its clients use, on transports that allow every fault.

A connection has one request at a time. A response is a whole body or chunks. This module is independent of Kubernetes.
"""

import asyncio
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

_WRITE_HIGH: Final = 512 * 1024  # bytes that may wait in a transport before the writer waits
_END_OF_HEAD: Final = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Header names are in lower case. Of a repeated parameter or header, the last one counts."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


Handler = Callable[[Request, "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One connection of a client. It reads requests, passes each to the handler, and ends with the client."""

    def __init__(self, handler: Handler, opened: Callable[["Connection"], None]) -> None:
        """Call `opened` when the client has connected. `opened` may close the connection."""
        self._handler = handler
        self._opened = opened
        self._received = bytearray()
        self._keep_alive = True
        self._writable = asyncio.Event()
        self._writable.set()
        self.serving: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=_WRITE_HIGH)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._serve_next()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.closed.set()
        self._writable.set()
        if self.serving is not None:
            self.serving.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # Called by the handler.

    async def write(self, parts: Sequence[bytes]) -> None:
        """Send bytes, and wait while the client does not read them. Raises ConnectionError after a disconnect."""
        if self._transport.is_closing():
            raise ConnectionResetError
        # Not writelines(): before Python 3.12.9 and 3.13.2 it never pauses the writer (CVE-2024-12254).
        self._transport.write(b"".join(parts))
        await self._writable.wait()

    @property
    def unsent_bytes(self) -> int:
        """Number of written bytes that the client's side has not received yet."""
        return 0 if self.closed.is_set() else self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Close the connection after the written bytes are sent."""
        self._keep_alive = False
        self._transport.close()

    def abort(self) -> None:
        """Reset the connection (RST), and drop bytes that were not sent yet."""
        self._keep_alive = False
        raw = self._transport.get_extra_info("socket")
        if raw is not None and not self._transport.is_closing():
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _serve_next(self) -> None:
        if self.serving is None and not self._transport.is_closing():
            try:
                request = self._parsed()
            except ValueError:
                self._transport.write(head(HTTPStatus.BAD_REQUEST, {"Content-Length": "0"}))
                self.close()
                return
            if request is not None:
                self.serving = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: Request) -> None:
        try:
            await self._handler(request, self)
        except ConnectionError:
            self.close()
        finally:
            self.serving = None
        if not self._keep_alive or request.headers.get("connection", "").lower() == "close":
            self.close()
        self._serve_next()

    def _parsed(self) -> Request | None:
        """Return one whole request from the received bytes, if there is one."""
        head_length = self._received.find(_END_OF_HEAD)
        if head_length < 0:
            return None
        first, *lines = self._received[:head_length].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        begin = head_length + len(_END_OF_HEAD)
        end = begin + int(headers.get("content-length", "0"))
        if len(self._received) < end:
            return None
        body = bytes(self._received[begin:end])
        del self._received[:end]
        split = urlsplit(target)
        return Request(method, unquote(split.path), dict(parse_qsl(split.query, keep_blank_values=True)), headers, body)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Write the head of a response."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join((*lines, "", "")).encode("latin-1")


class ChunkedBody:
    """A response with an unknown length."""

    def __init__(self, connection: Connection, *, compress: bool = False, chunk_bytes: int | None = None) -> None:
        """With `chunk_bytes`, every chunk except the last of a write has exactly this size."""
        self._connection = connection
        self._compressor = zlib.compressobj(level=1, wbits=31) if compress else None
        self._chunk_bytes = chunk_bytes

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head, at once."""
        encoding = {"Content-Encoding": "gzip"} if self._compressor else {}
        await self._connection.write([head(status, {**headers, **encoding, "Transfer-Encoding": "chunked"})])

    async def write(self, parts: Sequence[bytes]) -> None:
        """Send bytes that the client can read at once."""
        if self._compressor is not None:
            parts = [self._compressor.compress(b"".join(parts)) + self._compressor.flush(zlib.Z_SYNC_FLUSH)]
        if self._chunk_bytes is None:
            await self._connection.write(_chunk(parts))
            return
        data = b"".join(parts)
        for begin in range(0, len(data), self._chunk_bytes):
            await self._connection.write(_chunk([data[begin : begin + self._chunk_bytes]]))
            await asyncio.sleep(0)  # so that the client can read before the next chunk arrives

    async def end(self) -> None:
        """Send the end of the body."""
        rest = _chunk([self._compressor.flush()]) if self._compressor else []
        await self._connection.write([*rest, b"0\r\n\r\n"])


async def send_whole(connection: Connection, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Send a response whose body is short."""
    await connection.write([head(status, {**headers, "Content-Length": str(len(body))}), body])


def _chunk(parts: Sequence[bytes]) -> list[bytes]:
    return [b"%x\r\n" % sum(map(len, parts)), *parts, b"\r\n"]
