"""Requests to the API server over kept connections: whole responses, or streams of bytes as they arrive.

No other code sends requests to the API server. Each bound pod costs a POST, so POSTs use the cheapest way (posting.py),
except through a proxy. All other requests use httpx's transport without its client. So there are no redirects, no
cookies, no unconfigured proxies, and no log line for each request.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote

import httpx

from app import __version__
from app.api_server.api_errors import (
    ApiError,
    ConnectionFailedError,
    ReadTimeoutError,
    ResponseTooLargeError,
    StatusError,
    system_reason,
)
from app.api_server.connection_options import IDLE_SECONDS, MAX_CONNECTIONS, keepalive_options
from app.api_server.credentials import Credentials
from app.api_server.impersonation import NOBODY_ELSE, Impersonation
from app.api_server.login import bearer
from app.api_server.posting import PostConnections, PostLimits, PostResponse, decompressed

__all__ = [
    "ApiClient",
    "ApiError",
    "ConnectionFailedError",
    "ReadTimeoutError",
    "ResponseTooLargeError",
    "StatusError",
]

T = TypeVar("T")

_JSON: Final = "application/json"
_STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
_MAX_REFUSAL_LENGTH: Final = 64 * 1024  # bytes read of a response other than 200
_MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024  # of a response with one object, as MAX_LINE_BYTES
_USER_AGENT: Final = f"kindred/{__version__}"
_DECODED: Final = {"", "identity", "gzip", "deflate"}
_SUCCESS: Final = {
    "GET": {HTTPStatus.OK},
    "POST": {HTTPStatus.OK, HTTPStatus.CREATED},
    "PUT": {HTTPStatus.OK},
    "PATCH": {HTTPStatus.OK},
    "DELETE": {HTTPStatus.OK, HTTPStatus.ACCEPTED},
}
# anyio and httpcore pass on an SSLError during a read unchanged.
_FAULTS: Final = (httpx.TransportError, httpx.DecodingError, ssl.SSLError)
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)


class _Request(NamedTuple):
    path: str
    params: Mapping[str, str] | tuple[tuple[str, str], ...]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    body: bytes | None = None
    content_type: str = _JSON
    may_send: Callable[[], bool] | None = None
    more_headers: tuple[tuple[str, str], ...] = ()


class _Pool:
    """Connections with one TLS context. A retired pool closes when its last user leaves."""

    __slots__ = ("_users", "generation", "retired", "transport")

    def __init__(self, credentials: Credentials) -> None:
        self.generation = credentials.generation
        self.retired = False
        self.transport = httpx.AsyncHTTPTransport(
            verify=credentials.tls() or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),  # unused for plain HTTP
            trust_env=False,
            # httpcore counts watches as kept connections. So a lower number would close the connections of lists.
            limits=httpx.Limits(
                max_connections=MAX_CONNECTIONS,
                max_keepalive_connections=MAX_CONNECTIONS,
                keepalive_expiry=IDLE_SECONDS,
            ),
            proxy=credentials.proxy,
            socket_options=keepalive_options(),
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
            await self.transport.aclose()


class ApiClient:
    """Sends requests to one API server, with credentials that are kept fresh."""

    def __init__(
        self,
        credentials: Credentials,
        impersonation: Impersonation = NOBODY_ELSE,
        *,
        connect_timeout: float = 10.0,
        read_timeout: float = 75.0,
    ) -> None:
        """Limits in seconds: `connect_timeout` with the TLS handshake, `read_timeout` without a received chunk.

        Raises ConfigurationError for an impersonation that is not valid in a header.
        """
        self._credentials = credentials
        self._impersonation = impersonation.headers()
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._pool = _Pool(credentials)
        limits = PostLimits(connect_timeout, read_timeout, _MAX_OBJECT_BYTES, _MAX_REFUSAL_LENGTH)
        self._posts = None if credentials.proxy else PostConnections(credentials, limits, _SUCCESS["POST"])
        proxy = f" through proxy {httpx.URL(credentials.proxy).host}" if credentials.proxy else ""
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
        request = _Request(path, {}, "POST", body, may_send=may_send)
        if self._posts is None:
            return await self._whole(request)
        posts = self._posts
        return await self._logged_in(lambda login: self._posted(posts, request, login))

    async def post_as(self, token: str, path: str, body: bytes) -> bytes:
        """Send JSON with the bearer token of another user. Otherwise like `post`.

        Only for a client without a login (Credentials.without_login), because the API server prefers a client
        certificate to a token. Raises ValueError for a token that is not valid in a header.
        """
        headers = (("Authorization", bearer(token).authorization),)
        request = _Request(path, {}, "POST", body, more_headers=headers)
        posts = self._posts
        if posts is None:
            return await self._whole(request)
        return await self._logged_in(lambda login: self._posted(posts, request, login))

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

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a response, and yield its body in decoded chunks of any size, as they arrive.

        The block begins after the server has accepted the request. Leaving the block early closes the connection.
        Raises ApiError, also between two chunks, and CredentialsError.
        """
        async with self._stream(_Request(path, params)) as chunks:
            yield chunks

    async def close(self) -> None:
        """Close the connections: unused ones at once, the others when their users leave."""
        self._pool.retired = True
        await self._pool.close_if_unused()
        if self._posts is not None:
            self._posts.close()

    async def _posted(self, posts: PostConnections, request: _Request, login: Mapping[str, str]) -> bytes:
        where, body = self._where(request), request.body or b""
        lines = (
            f"POST {posts.base_path}{quote(request.path)} HTTP/1.1",
            f"Host: {posts.host_header}",
            *(f"{name}: {value}" for name, value in (*self._headers(request), *login.items())),
            f"Content-Length: {len(body)}",
        )
        response = await posts.post("\r\n".join((*lines, "", "")).encode("ascii") + body, where, request.may_send)
        if response.status not in _SUCCESS["POST"]:
            raise StatusError.of_response(response.status, response.headers, _decoded(response, where), where)
        self._check_content(request, response.headers)
        return _decoded(response, where)

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

    async def _attempt(self, stack: AsyncExitStack, request: _Request, login: Mapping[str, str]) -> httpx.Response:
        pool = await self._current_pool()
        await stack.enter_async_context(pool)
        try:
            response = await pool.transport.handle_async_request(self._request(request, login))
        except _FAULTS as error:
            # Behind a proxy, httpcore never drops a connection whose TLS failed. So the whole pool is replaced.
            pool.retired = True
            raise self._failure(request, error) from None
        stack.push_async_callback(response.aclose)
        if response.status_code not in _SUCCESS[request.method]:
            raise await self._refusal(request, response)
        self._check_content(request, response.headers)
        return response

    async def _current_pool(self) -> _Pool:
        before = self._pool
        if before.retired or before.generation != self._credentials.generation:
            before.retired = True
            self._pool = _Pool(self._credentials)
            await before.close_if_unused()
        return self._pool

    def _request(self, request: _Request, login: Mapping[str, str]) -> httpx.Request:
        return httpx.Request(
            request.method,
            self._credentials.server + request.path,
            params=request.params,
            content=request.body,
            headers=[*self._headers(request), *login.items()],
            extensions={
                "timeout": httpx.Timeout(self._connect_timeout, read=self._read_timeout).as_dict(),
                **({"trace": self._held_back(request, request.may_send)} if request.may_send is not None else {}),
            },
        )

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

    def _held_back(self, request: _Request, may_send: Callable[[], bool]) -> Callable[[str, object], Awaitable[None]]:
        """Return a hook that httpcore calls at each step, and that can stop a request right before it is sent."""

        async def trace(step: str, _: object) -> None:
            if step.endswith("send_request_headers.started") and not may_send():
                raise ConnectionFailedError(f"{self._where(request)}: held back", unsent=True)

        return trace

    async def _chunks(self, request: _Request, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except _FAULTS as error:
            raise self._failure(request, error) from None

    async def _refusal(self, request: _Request, response: httpx.Response) -> StatusError:
        """Return the error of a failed response, with as much of its body as can be read."""
        body = b""
        # A cut body is not reported, because the status is enough.
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._connect_timeout), aclosing(self._chunks(request, response)) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > _MAX_REFUSAL_LENGTH:
                        break
        return StatusError.of_response(response.status_code, response.headers, body, self._where(request))

    def _check_content(self, request: _Request, headers: Mapping[str, str]) -> None:
        """Reject responses that no API server sends: a page of HTML for JSON, or an encoding that was not requested."""
        kind = _media_type(headers.get("content-type", ""))
        if kind != _JSON:
            told = f"the response is {kind or 'of no type'}, not {_JSON}"
            raise ConnectionFailedError(f"{self._where(request)}: {told}: is a proxy or a login page in between?")
        # At most one encoding, because each multiplies the size of a decoded chunk by up to a thousand.
        encoding = headers.get("content-encoding", "").strip().lower()
        if encoding not in _DECODED:
            raise ConnectionFailedError(f"{self._where(request)}: Content-Encoding {encoding} was not requested")

    def _where(self, request: _Request) -> str:
        return f"{request.method} {request.path} {self._place}"

    def _failure(self, request: _Request, error: Exception) -> ApiError:
        where = self._where(request)
        unsent = isinstance(error, _UNSENT)
        if isinstance(error, httpx.ReadTimeout):
            return ReadTimeoutError(f"{where}: nothing received for {self._read_timeout:g} s")
        if isinstance(error, httpx.TimeoutException):
            return ConnectionFailedError(f"{where}: no connection within {self._connect_timeout:g} s", unsent=unsent)
        return ConnectionFailedError(f"{where}: {_reason(error)}", unsent=unsent)


def _decoded(response: PostResponse, where: str) -> bytes:
    """Return the decompressed body. An error response that cannot be decompressed is returned unchanged."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return response.body
    try:
        return decompressed(response.body, _MAX_OBJECT_BYTES, where)
    except (zlib.error, ResponseTooLargeError) as error:
        if response.status not in _SUCCESS["POST"]:
            return response.body
        if isinstance(error, ResponseTooLargeError):
            raise
        raise ConnectionFailedError(f"{where}: {error}") from None


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _reason(error: Exception) -> str:
    """Return the message of the system or of OpenSSL, if there is one. Layers in between have less detail."""
    if isinstance(error, (httpx.NetworkError, ssl.SSLError)):
        return system_reason(error)
    return str(error) or type(error).__name__
