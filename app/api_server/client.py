"""Requests to the API server over kept connections: whole responses, or streams of bytes as they arrive.

No other code sends requests to the API server. aiohttp sends them, because its parser is in C, and Kindred receives
each change of each pod. It sends a request once: no redirects, no cookies, no unconfigured proxies, no second attempt
on another connection.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, suppress
from http import HTTPStatus
from types import SimpleNamespace
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from app import __version__
from app.api_server.api_errors import (
    ApiError,
    ConnectionFailedError,
    ReadTimeoutError,
    ResponseTooLargeError,
    StatusError,
    system_reason,
)
from app.api_server.credentials import Credentials
from app.api_server.login import bearer
from app.api_server.tls import ConfigurationError, without_authorities

with without_authorities():  # aiohttp makes two contexts that no connection here uses: 50 ms, and 3 MB
    import aiohttp
    from aiohttp.http_exceptions import ContentLengthError, TransferEncodingError


__all__ = ["ApiClient", "ApiError", "ConnectionFailedError", "ReadTimeoutError", "ResponseTooLargeError", "StatusError"]

T = TypeVar("T")
Headers: TypeAlias = tuple[tuple[str, str], ...]

MAX_CONNECTIONS: Final = 128
"""21 watches and their lists, and 64 POSTs at once, with headroom. At the limit, requests wait, so a connection leak
shows as slow requests."""
IDLE_SECONDS: Final = 30.0
"""Time for which an unused connection is kept. Servers and load balancers keep it longer."""
_JSON: Final = "application/json"
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
_MAX_ERROR_LENGTH: Final = 64 * 1024  # bytes read of a response other than 200
_MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024  # of a response with one object, as MAX_LINE_BYTES
_USER_AGENT: Final = f"kindred/{__version__}"
_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=~%"  # of RFC 3986 (pchar), and what is quoted already; all others are quoted
_DECODED: Final = {"", "identity", "gzip", "deflate"}
_SUCCESS: Final = {
    "GET": {HTTPStatus.OK},
    "POST": {HTTPStatus.OK, HTTPStatus.CREATED},
    "PUT": {HTTPStatus.OK},
    "PATCH": {HTTPStatus.OK},
    "DELETE": {HTTPStatus.OK, HTTPStatus.ACCEPTED},
}
_FAULTS: Final = (aiohttp.ClientError, OSError)
_UNSENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)


class _Request(NamedTuple):
    path: str
    params: Mapping[str, str] | tuple[tuple[str, str], ...]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    body: bytes | None = None
    content_type: str = _JSON
    may_send: Callable[[], bool] | None = None
    more_headers: tuple[tuple[str, str], ...] = ()


class _FailedError(Exception):
    """A failed attempt, as an error that aiohttp does not answer with a second attempt of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _ThrottledError(Exception):
    """`may_send` returned False."""


class _Connector(aiohttp.TCPConnector):
    """Connections with one TLS context."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[aiohttp.tracing.Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # of the class above
    ) -> aiohttp.connector.Connection:
        """Return a connection on which nothing was received unasked: that would be taken for the next response."""
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class _Pool:
    """Connections with one TLS context. A retired pool closes when its last user leaves."""

    __slots__ = ("_users", "generation", "retired", "session")

    def __init__(self, credentials: Credentials, timeout: aiohttp.ClientTimeout) -> None:
        self.generation = credentials.generation
        self.retired = False
        tracing = aiohttp.TraceConfig()
        tracing.on_request_chunk_sent.append(_hold_back)
        self.session = aiohttp.ClientSession(
            connector=_Connector(
                ssl=credentials.tls() or (ssl.create_default_context() if credentials.proxy else True),
                limit=MAX_CONNECTIONS,
                keepalive_timeout=IDLE_SECONDS,
                resolver=aiohttp.ThreadedResolver(),
                use_dns_cache=False,
                socket_factory=_watched_socket,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=timeout,
            proxy=credentials.proxy,
            trace_configs=[tracing],
            middlewares=(_send_once,),
        )
        self._users = 0

    async def __aenter__(self) -> None:
        self._users += 1

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        await self.close_if_unused()

    async def close_if_unused(self) -> None:
        """Close the idle connections of a retired pool."""
        if self.retired and not self._users:
            await self.session.close()


def impersonating(user: str, groups: Sequence[str] = ()) -> Headers:
    """Return the headers of requests for a user and groups, none for an empty user. Raises ConfigurationError.

    Source: k8s.io/client-go transport/round_trippers.go (impersonatingRoundTripper).
    """
    if not user:
        if groups:
            raise ConfigurationError("--as-group: needs --as, the user to be impersonated with these groups")
        return ()
    for option, value in (("--as", user), *(("--as-group", group) for group in groups)):
        if not value or not value.isascii() or not value.isprintable():
            raise ConfigurationError(f"{option}: {value!r} cannot be the value of a header")
    return (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups))


class ApiClient:
    """Sends requests to one API server, with credentials that are kept fresh."""

    def __init__(
        self,
        credentials: Credentials,
        impersonation: Headers = (),
        *,
        connect_timeout: float = 10.0,
        read_timeout: float = 75.0,
    ) -> None:
        """Limits in seconds: `connect_timeout` with the TLS handshake, `read_timeout` without a received byte."""
        self._credentials = credentials
        self._impersonation = impersonation
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout, sock_read=read_timeout)
        self._pool: _Pool | None = None  # made by the first request, because it belongs to the event loop
        self._closed = False
        proxy = f" through proxy {urlsplit(credentials.proxy).hostname}" if credentials.proxy else ""
        self._place = f"at {credentials.server}{proxy}"

    async def get(self, path: str, params: Mapping[str, str], most: int = _MAX_OBJECT_BYTES) -> bytes:
        """Return the body of a response, of at most `most` bytes. Raises ApiError, CredentialsError."""
        return await self._whole(_Request(path, params), most)

    async def post(self, path: str, body: bytes, may_send: Callable[[], bool] | None = None) -> bytes:
        """Send JSON, and return the body of the response. Raises ApiError, CredentialsError.

        `may_send` is called right before the first byte is written, on an open connection. If it returns False, a
        ConnectionFailedError has `unsent`.

        After a response, or a ConnectionFailedError with `unsent`, it is certain whether the server carried out the
        request. After any other error, and after a cancellation, it is unknown. If the server rejects the login, the
        login is renewed and the request sent again, as by `get`. No other request is sent again.
        """
        return await self._whole(_Request(path, {}, "POST", body, may_send=may_send))

    async def post_dry_run(self, path: str, body: bytes) -> bytes:
        """Send JSON with `dryRun=All`, and return what would be stored. Nothing is. Otherwise like `post`."""
        return await self._whole(_Request(path, {"dryRun": "All"}, "POST", body))

    async def post_as(self, token: str, path: str, body: bytes) -> bytes:
        """Send JSON with the bearer token of another user. Otherwise like `post`.

        Only for a client without a login (Credentials.without_login), because the API server prefers a client
        certificate to a token. Raises ValueError for a token that is not valid in a header.
        """
        headers = (("Authorization", bearer(token)),)
        return await self._whole(_Request(path, {}, "POST", body, more_headers=headers))

    async def post_to_proxy(
        self, path: str, params: Mapping[str, Sequence[str]], body: bytes, headers: Mapping[str, str]
    ) -> bytes:
        """Send JSON to a service or pod through the API server's proxy, and return the body of the response.

        If the target returns an error, `StatusError.body` has its response. An error of the API server itself is a
        Status, and has a reason. Otherwise like `post`.
        """
        query = tuple((name, value) for name, values in params.items() for value in values)
        return await self._whole(_Request(path, query, "POST", body, more_headers=tuple(headers.items())))

    async def put(self, path: str, body: bytes) -> bytes:
        """Replace an object, and return the body of the response. Otherwise like `post`."""
        return await self._whole(_Request(path, {}, "PUT", body))

    async def patch(self, path: str, body: bytes) -> bytes:
        """Send a strategic merge patch, and return the body of the response. Otherwise like `post`."""
        return await self._whole(_Request(path, {}, "PATCH", body, _STRATEGIC_MERGE_PATCH))

    async def delete(self, path: str, body: bytes) -> bytes:
        """Delete an object with DeleteOptions, and return the body of the response. Otherwise like `post`."""
        return await self._whole(_Request(path, {}, "DELETE", body))

    def stream(self, path: str, params: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a response, and yield its body in decoded chunks of any size, as they arrive.

        The block begins after the server has accepted the request. Leaving the block early closes the connection.
        Raises ApiError, also between two chunks, and CredentialsError.
        """
        return self._stream(_Request(path, params))

    async def close(self) -> None:
        """Close the connections: unused ones at once, the others when their users leave."""
        self._closed = True
        if self._pool is not None:
            self._pool.retired = True
            await self._pool.close_if_unused()

    async def _whole(self, request: _Request, most: int = _MAX_OBJECT_BYTES) -> bytes:
        body = bytearray()  # one growing buffer, not a list of pieces: pieces may have one byte each
        async with self._stream(request) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise ResponseTooLargeError(f"{self._where(request)}: the response has more than {most} bytes")
        return bytes(body)

    @asynccontextmanager
    async def _stream(self, request: _Request) -> AsyncIterator[AsyncIterator[bytes]]:
        async with AsyncExitStack() as stack:
            response = await self._logged_in(lambda login: self._attempt(stack, request, login))
            yield await stack.enter_async_context(aclosing(self._chunks(request, response)))

    async def _logged_in(self, attempt: Callable[[Mapping[str, str]], Awaitable[T]]) -> T:
        """Send a request. If the server rejects the login, send it again, once, with a new login."""
        login = await self._credentials.headers()
        generation = self._credentials.generation
        try:
            return await attempt(login)
        except StatusError as error:
            if error.code != HTTPStatus.UNAUTHORIZED:
                raise
        current = await self._credentials.headers()
        if current == login and self._credentials.generation == generation:  # else another request has renewed it
            current = await self._credentials.headers(refresh=True)
        return await attempt(current)

    async def _attempt(
        self, stack: AsyncExitStack, request: _Request, login: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        before, pool = self._pool, self._current_pool()
        await stack.enter_async_context(pool)  # nothing is awaited before, so no other request can close it meanwhile
        if before is not None and before is not pool:
            await before.close_if_unused()
        try:
            response = await pool.session.request(
                request.method,
                self._url(request),
                data=request.body,
                headers=[*self._headers(request), *login.items()],
                allow_redirects=False,
                server_hostname=self._credentials.server_name or None,
                trace_request_ctx=request.may_send,
            )
        except _FailedError as failed:
            pool.retired = True  # other idle connections may be dead, too, and each would cost a failed request
            raise self._failure(request, failed.error) from None
        stack.callback(response.close)  # also closes the connection, unless the whole response was received
        if response.status < HTTPStatus.OK:
            raise ConnectionFailedError(f"{self._where(request)}: the response is another protocol")
        if response.status not in _SUCCESS[request.method]:
            raise await self._status_error(request, response)
        self._check_content(request, response.headers)
        return response

    def _current_pool(self) -> _Pool:
        before = self._pool
        if before is not None and not before.retired and before.generation == self._credentials.generation:
            return before
        self._pool = made = _Pool(self._credentials, self._timeout)
        made.retired = self._closed  # closes right after a request that is made by then
        if before is not None:
            before.retired = True
        return made

    def _url(self, request: _Request) -> str:
        query = f"?{urlencode(request.params)}" if request.params else ""
        return f"{self._credentials.server}{quote(request.path, _PATH_CHARACTERS)}{query}"

    def _headers(self, request: _Request) -> list[tuple[str, str]]:
        return [
            ("Accept", _JSON),
            *([("Content-Type", request.content_type)] if request.body is not None else []),
            # Compression of events would cost the server time, and may delay them until a block is full.
            ("Accept-Encoding", "identity"),
            ("User-Agent", _USER_AGENT),
            *request.more_headers,
            *self._impersonation,
        ]

    async def _chunks(self, request: _Request, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        try:
            while chunk := await response.content.readany():
                yield chunk
        except _FAULTS as error:
            raise self._failure(request, error) from None

    async def _status_error(self, request: _Request, response: aiohttp.ClientResponse) -> StatusError:
        """Return the error of a failed response, with as much of its body as can be read."""
        body = b""
        # A cut body is not reported, because the status is enough.
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._timeout.connect), aclosing(self._chunks(request, response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > _MAX_ERROR_LENGTH:
                        break
        return StatusError.of_response(response.status, response.headers, body, self._where(request))

    def _check_content(self, request: _Request, headers: Mapping[str, str]) -> None:
        """Reject responses that no API server sends: a page of HTML for JSON, or an encoding that was not requested."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _JSON:
            message = f"the response is {kind or 'of no type'}, not {_JSON}"
            raise ConnectionFailedError(f"{self._where(request)}: {message}: is a proxy or a login page in between?")
        # At most one encoding, because each multiplies the size of a decoded chunk by up to a thousand.
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in _DECODED:
            raise ConnectionFailedError(f"{self._where(request)}: Content-Encoding {encoding} was not requested")

    def _where(self, request: _Request) -> str:
        return f"{request.method} {request.path} {self._place}"

    def _failure(self, request: _Request, error: Exception) -> ApiError:
        where = self._where(request)
        if isinstance(error.__cause__, _ThrottledError):
            return ConnectionFailedError(f"{where}: held back", unsent=True)
        if isinstance(error, aiohttp.SocketTimeoutError):
            return ReadTimeoutError(f"{where}: nothing received for {self._timeout.sock_read:g} s")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return ConnectionFailedError(f"{where}: no connection within {self._timeout.connect:g} s", unsent=True)
        return ConnectionFailedError(f"{where}: {_reason(error)}", unsent=isinstance(error, _UNSENT))


async def _send_once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request, and turn its failure into an error after which aiohttp does not send it again.

    Else a broken connection would repeat GET, PUT and DELETE, though the server may have carried out the first attempt.
    """
    try:
        return await send(request)
    except _FAULTS as error:
        raise _FailedError(error) from None


async def _hold_back(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    """Call `may_send`, between the last wait and the first written byte. aiohttp writes head and body together."""
    may_send = context.trace_request_ctx
    if may_send is not None and not may_send():
        raise _ThrottledError


def _watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Return a socket with the options that detect a dead peer within a minute, as far as the system supports them."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def _reason(error: Exception) -> str:
    """Return the cause in one line, without the URL, which aiohttp would repeat with what a proxy's has in it."""
    match error:
        case aiohttp.ClientHttpProxyError():
            return f"{error.status} {error.message}"
        case aiohttp.ClientResponseError():
            return f"the response is not HTTP: {error.message}"
        case aiohttp.ServerDisconnectedError():
            return "Server disconnected without sending a response."
        case aiohttp.ClientPayloadError(__cause__=ContentLengthError() | TransferEncodingError()):
            return "peer closed connection within its response"
        case aiohttp.ClientPayloadError():
            return str(error)
    return system_reason(error.__cause__ or error)
