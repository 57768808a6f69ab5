"""POSTs to the API server with the least CPU: httptools over asyncio's own TLS, on kept connections.

Each pod costs the POST of a binding. httpx takes 0.6 ms of CPU for it, in httpcore, h11 and the TLS of anyio. This
module takes 0.04 ms. A connection has one request at a time. Proxies are not supported.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Callable, Collection
from contextlib import suppress
from http import HTTPStatus
from typing import Final, NamedTuple

import httptools
import httpx

from app.api_server.api_errors import (
    ApiError,
    ConnectionFailedError,
    ReadTimeoutError,
    ResponseTooLargeError,
    system_reason,
)
from app.api_server.connection_options import IDLE_SECONDS, MAX_CONNECTIONS, keepalive_options
from app.api_server.credentials import Credentials

_MAX_HEAD_BYTES: Final = 64 * 1024
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32  # zlib detects which of the two


class PostResponse(NamedTuple):
    """A response. The body of an error response may be cut."""

    status: int
    headers: dict[str, str]
    """Name in lower case -> value."""
    body: bytes


class PostLimits(NamedTuple):
    """The limits of a POST."""

    connect_timeout: float
    """Seconds for a connection with its TLS handshake, and for the body of an error response."""
    read_timeout: float
    """Seconds without a received byte."""
    max_body: int
    """Bytes of a successful response."""
    max_refusal: int
    """Bytes that are read of an error response."""


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time. The parser calls the methods `on_...`."""

    def __init__(self, limits: PostLimits, success: Collection[int], ended: Callable[["_Connection"], None]) -> None:
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._success = success
        self._ended = ended
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._where = ""
        self._answer: asyncio.Future[PostResponse] | None = None  # None: no check
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._headers: dict[str, str] = {}
        self._begin()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP and TLS it is
        """Store the transport."""
        self._transport = transport

    @property
    def is_open(self) -> bool:
        """Whether a request may be sent, as far as is known."""
        return not self._transport.is_closing()

    def ask(self, request: bytes, where: str) -> "asyncio.Future[PostResponse]":
        """Send a request. Errors name `where`. After a cancellation, close the connection."""
        self._where = where
        self._begin()
        self._answer = self._loop.create_future()
        self._wait(self._limits.read_timeout)
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close at once, also during a request."""
        self._stop_waiting()
        self._answer = None
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._answer is None:  # such as 408 of a server that closes an unused connection
            self.close()
            return
        if not self._refused:
            self._deadline = self._loop.time() + self._limits.read_timeout
        if not self._in_body:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionFailedError(f"{self._where}: the response is another protocol"))
        except httptools.HttpParserError as error:
            self._fail(ConnectionFailedError(f"{self._where}: the response is not HTTP: {error}"))
        if not self._in_body and self._head_bytes > _MAX_HEAD_BYTES:
            self._fail(ConnectionFailedError(f"{self._where}: headers of more than {_MAX_HEAD_BYTES} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response. A body without a length ends with the connection, and an error status needs no body."""
        if self._answer is not None:
            if self._refused or (self._in_body and not self._framed and exc is None):
                self._finish(keep=False)
            elif exc is not None:
                self._fail(ConnectionFailedError(f"{self._where}: {system_reason(exc)}"))
            elif self._in_body:
                self._fail(ConnectionFailedError(f"{self._where}: peer closed connection within its response"))
            else:
                self._fail(ConnectionFailedError(f"{self._where}: Server disconnected without sending a response."))
        self._ended(self)

    def on_message_begin(self) -> None:
        """Begin a head. Extra bytes close the connection, because they would be treated as the next response."""
        self._headers = {}
        if self._answer is None:
            self._transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Begin the body."""
        self._status = self._parser.get_status_code()
        if self._status < HTTPStatus.OK:  # such as 100 Continue; the response follows
            return
        self._in_body = True
        self._framed = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._status not in self._success:
            self._refused = True
            self._wait(self._limits.connect_timeout)

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body, up to the limit."""
        if self._answer is None:
            return
        self._body += data
        if self._refused and len(self._body) > self._limits.max_refusal:
            self._finish(keep=False)
        elif not self._refused and len(self._body) > self._limits.max_body:
            text = f"{self._where}: the response has more than {self._limits.max_body} bytes"
            self._fail(ResponseTooLargeError(text))

    def on_message_complete(self) -> None:
        """Return the response to its request."""
        if self._status >= HTTPStatus.OK:
            self._finish(keep=self._parser.should_keep_alive())

    def _begin(self) -> None:
        self._status = 0
        self._body = bytearray()
        self._head_bytes = 0
        self._in_body = False
        self._framed = False
        self._refused = False

    def _finish(self, *, keep: bool) -> None:
        answer, self._answer = self._answer, None
        self._stop_waiting()
        if answer is not None and not answer.done():
            answer.set_result(PostResponse(self._status, self._headers, bytes(self._body)))
        if not keep:
            self._transport.abort()

    def _fail(self, error: ApiError) -> None:
        answer, self._answer = self._answer, None
        self._stop_waiting()
        if answer is not None and not answer.done():
            answer.set_exception(error)
        self._transport.abort()

    def _wait(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now."""
        self._stop_waiting()
        self._deadline = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._deadline, self._look)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Fail the request after its deadline. There is one timer for a request, not one for each received piece."""
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look)
        elif self._refused:
            self._finish(keep=False)
        else:
            text = f"{self._where}: nothing received for {self._limits.read_timeout:g} s"
            self._fail(ReadTimeoutError(text))


class PostConnections:
    """The connections to one API server."""

    def __init__(self, credentials: Credentials, limits: PostLimits, success: Collection[int]) -> None:
        """`success` has the status codes of a success."""
        url = httpx.URL(credentials.server)
        self.host_header: str = url.netloc.decode()
        self.base_path: str = url.raw_path.decode().rstrip("/")
        self._host = url.host
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._credentials = credentials
        self._limits = limits
        self._success = success
        self._generation = credentials.generation
        self._places = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[_Connection] = []  # the last used one is last
        self._closed = False

    async def post(self, request: bytes, where: str, may_send: Callable[[], bool] | None) -> PostResponse:
        """Send a whole request and return the response, with any status. Errors name `where`.

        Raises ApiError. A ConnectionFailedError has `unsent` if the server certainly did not get the request.
        `may_send` is called right before the first byte is written.
        """
        await self._take_place(where)
        try:
            connection = self._kept() or await self._connect(where)
            if may_send is not None and not may_send():
                self._keep(connection)
                raise ConnectionFailedError(f"{where}: held back", unsent=True)
            try:
                response = await connection.ask(request, where)
            except BaseException as error:
                connection.close()
                if isinstance(error, ApiError):
                    self._close_idle()  # older idle connections may be dead, too, and each would cost a failed request
                raise
            self._keep(connection)
            return response
        finally:
            self._places.release()

    def close(self) -> None:
        """Close the connections: unused ones at once, the others after their responses."""
        self._closed = True
        self._close_idle()

    async def _take_place(self, where: str) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                await self._places.acquire()
        except TimeoutError:
            raise self._no_connection(where) from None

    def _kept(self) -> _Connection | None:
        if self._generation != self._credentials.generation:  # the connection was made with older certificates
            self._generation = self._credentials.generation
            self._close_idle()
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def _keep(self, connection: _Connection) -> None:
        if self._closed or self._generation != self._credentials.generation:
            connection.close()
        elif connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
            if connection.idle_since - self._idle[0].idle_since > IDLE_SECONDS:
                self._idle.pop(0).close()

    def _ended(self, connection: _Connection) -> None:
        with suppress(ValueError):  # a connection in use is not in the list
            self._idle.remove(connection)

    def _close_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    async def _connect(self, where: str) -> _Connection:
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                return await self._shake_hands(await self._reach())
        except TimeoutError:
            raise self._no_connection(where) from None
        except (OSError, ssl.CertificateError) as error:
            raise ConnectionFailedError(f"{where}: {system_reason(error)}", unsent=True) from None

    async def _reach(self) -> socket.socket:
        """Return a socket that is connected to the first reachable address. Raises OSError."""
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        until = loop.time() + self._limits.connect_timeout
        error: OSError = OSError("no address")
        for index, (family, kind, protocol, _, address) in enumerate(addresses):
            connected = socket.socket(family, kind, protocol)
            try:
                connected.settimeout(0.0)
                for option in (*keepalive_options(), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)):
                    connected.setsockopt(*option)
                # Each address gets a share of the time, because packets to the first one may be lost.
                async with asyncio.timeout((until - loop.time()) / (len(addresses) - index)):
                    await loop.sock_connect(connected, address)
            except OSError as failed:  # TimeoutError is an OSError
                connected.close()
                error = failed
            except BaseException:
                connected.close()
                raise
            else:
                return connected
        raise error

    async def _shake_hands(self, connected: socket.socket) -> _Connection:
        tls = self._credentials.tls() if self._credentials.server.startswith("https") else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(self._limits, self._success, self._ended),
                sock=connected,
                ssl=tls,
                server_hostname=self._host if tls is not None else None,
            )
        except BaseException:
            connected.close()
            raise
        return connection

    def _no_connection(self, where: str) -> ConnectionFailedError:
        text = f"{where}: no connection within {self._limits.connect_timeout:g} s"
        return ConnectionFailedError(text, unsent=True)


def decompressed(body: bytes, most: int, where: str) -> bytes:
    """Return the decoded body for Content-Encoding gzip or deflate. Raises zlib.error, ResponseTooLargeError."""
    text = zlib.decompressobj(_ZLIB_OR_GZIP).decompress(body, most + 1)
    if len(text) > most:
        raise ResponseTooLargeError(f"{where}: the response has more than {most} bytes")
    return text
