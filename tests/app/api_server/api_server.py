"""A server on a real port that answers with exactly the bytes that a test wants, and remembers what it was asked."""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

END: Final = b"\x00end"
"""Instead of bytes to send: close the connection."""
RESET: Final = b"\x00reset"
"""Instead of bytes to send: tear the connection."""
NO_TLS: Final = b"\x00no-tls"
"""Instead of bytes to send: break the TLS of the connection."""


class Request(NamedTuple):
    """What was asked, and on which connection, from 0 on."""

    line: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    client: str
    """Common name of the client's certificate."""
    connection: int
    body: bytes = b""


Response = Callable[[Request], AsyncIterator[bytes]]


class ApiServer:
    """A running server."""

    def __init__(self, response: Response, *, tls: bool) -> None:
        self.requests: list[Request] = []
        self.hung_up = asyncio.Event()
        """Set when a client has closed a connection."""
        self.port = 0
        self._requested = asyncio.Condition()
        self._scheme = "https" if tls else "http"
        self._response = response
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._count = 0

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def logins(self) -> list[str]:
        """Return the Authorization headers of the requests so far."""
        return [request.headers.get("authorization", "") for request in self.requests]

    async def requested(self, times: int) -> None:
        """Wait for as many requests."""
        async with self._requested:
            await self._requested.wait_for(lambda: len(self.requests) >= times)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        number, self._count = self._count, self._count + 1
        # Cancelled by stop(), it just ends: asyncio of Python 3.11 reports a cancelled connection as an error.
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while not writer.is_closing():
                request = _parsed(await reader.readuntil(b"\r\n\r\n"), writer, number)
                request = request._replace(body=await reader.readexactly(int(request.headers.get("content-length", 0))))
                async with self._requested:
                    self.requests.append(request)
                    self._requested.notify_all()
                await self._send(self._response(request), writer)
        self.hung_up.set()
        writer.close()

    async def stop(self) -> None:
        """Close all connections."""
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for writer in self._connections.values():
            writer.close()
            with suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _send(self, pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
        async for piece in pieces:
            if piece not in {END, RESET, NO_TLS}:
                writer.write(piece)
                await writer.drain()
                continue
            connection = writer.get_extra_info("socket")
            if piece == NO_TLS:
                os.write(connection.fileno(), b"220 mail ready\r\n")
                return
            if piece == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
            writer.close()
            return


@asynccontextmanager
async def serving(response: Response, tls: ssl.SSLContext | None = None) -> AsyncIterator[ApiServer]:
    """Serve on a free port of this machine."""
    api = ApiServer(response, tls=tls is not None)
    server = await asyncio.start_server(api.converse, "127.0.0.1", 0, ssl=tls)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
        await api.stop()
        await server.wait_closed()


def response(
    body: bytes = b'{"kind":"PodList"}', status: str = "200 OK", kind: str = "application/json", **headers: str
) -> bytes:
    """Write a whole response; Retry_After is the header Retry-After."""
    return head(status, kind, Content_Length=str(len(body)), **headers) + body


def head(status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    """Write the head of a response."""
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """Write one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def in_turn(*pieces: bytes | Sequence[bytes]) -> Response:
    """Answer the n-th request with the n-th of these, and all further ones with the last."""
    rest = list(pieces)

    async def response(_: Request) -> AsyncIterator[bytes]:
        now = rest.pop(0) if len(rest) > 1 else rest[0]
        for piece in [now] if isinstance(now, bytes) else now:
            yield piece

    return response


def _parsed(text: bytes, writer: asyncio.StreamWriter, connection: int) -> Request:
    line, *rest = text.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest if each)}
    url = urlsplit(line.split(" ")[1])
    certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
    names = {key: value for relative in certificate.get("subject", ()) for key, value in relative}
    return Request(line, url.path, parse_qs(url.query), headers, names.get("commonName", ""), connection)


class ConnectProxy:
    """A running proxy, with the heads of the requests that it got."""

    def __init__(self, rejection: bytes | None) -> None:
        self.heads: list[str] = []
        self.port = 0
        self._rejection = rejection
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client through, to wherever it wants on this machine."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self._rejection is not None:
                writer.write(self._rejection)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                port = int(head.split()[1].rpartition(":")[2])
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))
                finally:
                    far_writer.close()
        writer.close()

    async def stop(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def proxying(rejection: bytes | None = None) -> AsyncIterator[ConnectProxy]:
    """Run a proxy on a free port of this machine; with `rejection` it answers that to everybody."""
    proxy = ConnectProxy(rejection)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
        await server.wait_closed()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
