"""HTTP/1.1 on the connections of a port, within the limits of the port, in front of an ASGI app.

uvicorn serves the port and calls the app's lifespan. This protocol takes the place of uvicorn's own (`http=`), which
waits for the rest of a request without a limit, accepts heads of any size, and keeps responses that no client reads.

It reads one request at a time, and pipelined requests wait. A body has a Content-Length: kube-scheduler sends one
always (extender.go, send). So the end of a request follows from its head, and the parser sees heads only. This leaves
no way in which a proxy could find other requests in the same bytes.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from app.server.connections import Connections, Peer, RejectReason
from app.server.exchange import Exchange, Head, LargeHeadError, MalformedError, begin, head_of_response
from app.server.tls import peer_names
from app.verbs.endpoint import CLOSE, ExtenderApp, Header, VerbEndpoint

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

_NEVER: Final = float("inf")
_OK: Final = HTTPStatus.OK.value  # each access to a member is a Python function
_MAX_RETAINED_BODY: Final = 64 * 1024
"""Bytes of a body that are kept for an app that does not read them. Then the client has to wait."""
_DISCARDED_BODIES: Final = 4
"""Up to this multiple of the largest body is read and discarded, so that a client that writes before it reads gets its
response. A larger one is cut off."""
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_GONE: Final = asyncio.Transport()
"""The transport of a lost connection."""


class Phase(Enum):
    """The event that a connection waits for until its deadline."""

    IDLE = 0
    """A request."""
    HEAD = 1
    """The rest of a head."""
    BODY = 2
    """The rest of a body."""
    RESPONDING = 3
    """The app's response."""
    FLUSHING = 4
    """The client must read a written response. A request may follow."""
    CLOSING = 5
    """The client must read the last response."""

    __hash__ = object.__hash__  # each member is one object, and Enum's own hash is a Python function


_READING: Final = frozenset({Phase.IDLE, Phase.HEAD, Phase.FLUSHING})


class Connection(asyncio.Protocol):
    """A connection that `Connections.watch` ends after its deadline."""

    def __init__(  # the last four are what uvicorn passes to a protocol
        self,
        app: "ASGIApp",
        port: Connections,
        *,
        config: object,  # noqa: ARG002  # the port has its settings by `port`
        server_state: Any,  # noqa: ANN401  # uvicorn's, whose class is not public
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Serve `app`."""
        self.phase = Phase.IDLE
        self.deadline = _NEVER
        """Time of the event loop's clock after which `expire` must be called."""
        self.transport = _GONE
        self.is_secure = False  # whether it has TLS
        self.write_paused = False
        self.body_left = 0
        """Bytes of the request's body that have not arrived."""
        self._app = app
        self._port = port
        self._limits = port.limits
        self._verbs: Mapping[str, VerbEndpoint] = app.verbs if isinstance(app, ExtenderApp) else {}
        self._scope: dict[str, Any] = {"type": "http", "asgi": _ASGI, "root_path": ""}
        self._server_state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._peer: Peer = None
        self._unread = b""
        self._head: Head | None = None
        self._exchange: Exchange | None = None
        self._is_unknown_client = False
        self._closes = False  # after the response
        self._read_paused = False
        self._drained: asyncio.Future[None] | None = None

    @property
    def default_headers(self) -> Iterable[Header]:
        """Headers of every response of the port."""
        headers: Iterable[Header] = self._server_state.default_headers
        return headers

    # What the event loop calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is one of a stream
        """Begin to wait for requests, from the clients that the port allows."""
        self.transport = transport
        self._port.beginning.discard(self)
        self._port.connections.add(self)
        self._peer = _address(transport, "peername")
        secure = transport.get_extra_info("sslcontext") is not None
        self.is_secure = secure
        self._scope["server"] = _address(transport, "sockname")
        self._scope["client"] = self._peer
        self._scope["scheme"] = "https" if secure else "http"
        self.deadline = self._loop.time() + self._limits.idle_timeout
        certificate = transport.get_extra_info("peercert")
        names = peer_names(certificate) if certificate else ()
        allowed = self._port.client_names
        if allowed and allowed.isdisjoint(names):
            # The response to the first request has the reason. A client would get none if the connection closed now.
            self._is_unknown_client = True
            detail = f"its certificate is for {', '.join(names) or 'nobody'}, not for one of KINDRED_TLS_CLIENT_NAMES"
            self._port.refuse(RejectReason.CLIENT_NAME, self._peer, detail)

    def data_received(self, data: bytes) -> None:
        """Read a request. A client that exceeds a limit gets an error status, and its connection is closed."""
        if self.phase is Phase.BODY:
            data = self._take_body(data)
        if self.phase is Phase.CLOSING or not data:
            return
        self._unread = self._unread + data if self._unread else data
        if self.phase is Phase.RESPONDING:
            self._pause()
        else:
            self.read_on()

    def eof_received(self) -> None:
        """Let the transport close. A client that sends no more is taken for one that has left."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # the signature of asyncio
        """Drop all references to this object, so that it and its TLS buffers are freed at once.

        The garbage collector finds cycles, but not among frozen objects (app/feeds/objects.py). So connections that
        were open during a sync would leak.
        """
        self.phase = Phase.CLOSING
        self._port.connections.discard(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.leave()
        self.resume_writing()
        self.transport = _GONE
        self._head, self._unread = None, b""

    def pause_writing(self) -> None:
        """Wait for a client that reads its response slowly."""
        self.write_paused = True
        if self.phase is Phase.RESPONDING:
            self.deadline = self._loop.time() + self._limits.read_timeout

    def resume_writing(self) -> None:
        """Continue after the client has read."""
        self.write_paused = False
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        if self.phase is Phase.RESPONDING:
            self.deadline = _NEVER
        elif self.phase is Phase.FLUSHING:
            self._loop.call_soon(self.read_on)

    # What uvicorn and the port call

    def shutdown(self) -> None:
        """Close, after the response to a request whose head is read."""
        if self._exchange is None:
            self.close()
        else:
            self._closes = self._exchange.closes = True

    def expire(self, now: float) -> None:
        """Apply the deadline that has passed."""
        if self.phase is Phase.CLOSING or self.transport.is_closing():
            self.transport.abort()
        elif self.phase is Phase.IDLE:
            self.close()
        elif self.phase is Phase.FLUSHING and not (self.write_paused or self.transport.get_write_buffer_size()):
            self.phase = Phase.IDLE
            self.deadline = max(now, self.deadline + self._limits.idle_timeout - self._limits.read_timeout)
        elif self.phase in {Phase.FLUSHING, Phase.RESPONDING} or self.write_paused:
            self._port.refuse(RejectReason.RESPONSE_NOT_READ, self._peer)
            self.transport.abort()
        else:
            self._refuse(RejectReason.SLOW_REQUEST, HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive.")

    # What an exchange calls

    async def drained(self) -> None:
        """Wait until the client has read enough of what was written, or has left."""
        while self.write_paused:
            if self._drained is None:
                self._drained = self._loop.create_future()
            await self._drained

    def resume_reading(self) -> None:
        """Read on, if the connection has paused."""
        if self._read_paused:
            self._read_paused = False
            self.transport.resume_reading()

    def end_exchange(self, *, closes: bool) -> None:
        """Prepare for the next request after a complete response, or close."""
        self._exchange = None
        self._closes = self._closes or closes
        if self.body_left > _DISCARDED_BODIES * self._limits.max_body_bytes:
            self._port.refuse(RejectReason.LARGE_BODY, self._peer)
            self.close()
        elif self.body_left:
            self.resume_reading()
        else:
            self._end_request()

    def close(self) -> None:
        """Close after the last write, at the latest at the deadline. Else a client that never reads would stay."""
        self.phase = Phase.CLOSING
        self._unread = b""
        self.deadline = self._loop.time() + self._limits.read_timeout
        self.transport.close()

    # The steps of a request

    def read_on(self) -> None:
        """Read the head of the next request, if there is one, the client reads its responses, and the port lets it."""
        if self.phase not in _READING:
            return
        if self.write_paused or not self._port.may_read(self):
            self._pause()
            return
        if self._head is None:
            self._unread = self._unread.lstrip(b"\r\n")  # empty lines before a request (RFC 9112, 2.2)
            if self._unread:
                self._begin_head()
        if self._head is not None:
            self._read_head(self._head)
        has_next = self.phase is Phase.FLUSHING and self._unread  # a request, whose turn is in another round
        if self._read_paused and self.phase in _READING and not has_next:
            self.resume_reading()

    def _begin_head(self) -> None:
        if self._is_unknown_client:
            self._respond_and_close(HTTPStatus.FORBIDDEN, "The client certificate is not allowed.")
            return
        head = self._port.heads.get(self._unread)
        if head is not None and self._responds_at_once(head):
            return
        self.phase = Phase.HEAD
        self.deadline = self._loop.time() + self._limits.read_timeout
        self._head = head or Head(self._limits.max_header_bytes)

    def _read_head(self, head: Head) -> None:
        before = head.parsed
        try:
            size = head.read(self._unread)
            if size:
                self._begin_request(head, size)
        except MalformedError as error:
            text = "A body needs a Content-Length." if error.status is HTTPStatus.LENGTH_REQUIRED else "Not HTTP/1.1."
            self._refuse(RejectReason.MALFORMED, error.status, text, str(error))
        except LargeHeadError:
            text = f"The head of the request is larger than {self._limits.max_header_bytes} bytes."
            self._refuse(RejectReason.LARGE_HEAD, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        finally:
            self._port.count_read(head.parsed - before)

    def _responds_at_once(self, head: Head) -> bool:
        """Pass a request that has arrived whole to its verb, without ASGI. Return False if it has another form.

        The request takes no task and no further round of the event loop, and a tenth of the calls.
        """
        size, end = head.parsed, head.parsed + head.length
        if head.verb is None or self._closes or len(self._unread) < end:
            return False
        response = head.verb.at_once(self._unread[size:end])
        if response is None:
            return False
        self._unread = self._unread[end:]
        if isinstance(response, tuple):
            headers, body = response
            self.transport.write(head_of_response(_OK, (*self._server_state.default_headers, *headers)) + body)
            self._closes = CLOSE in headers
            self._end_request()
        else:
            self._exchange = Exchange(self, head.scope(self._scope), closes=False, expects=False)
            self.phase, self.deadline = Phase.RESPONDING, _NEVER
            self._keep(self._exchange.run(response))
        if self._unread:
            self._pause()
        return True

    def _begin_request(self, head: Head, size: int) -> None:
        """Respond at once, or call the app with the part of the body that has arrived."""
        scope = head.scope(self._scope)
        verb = self._verbs.get(scope["path"]) if scope["method"] == "POST" else None
        if verb is not None:
            head.verb = verb if head.asks_nothing() else None
            self._port.heads.keep(self._unread[:size], head)
        self._head = None
        if self._responds_at_once(head):
            return
        scope["state"] = self._app_state.copy()
        exchange = self._exchange = Exchange(self, scope, closes=self._closes or head.closes, expects=head.expects)
        self.body_left = head.length
        self.phase = Phase.BODY
        self._unread = self._take_body(self._unread[size:])
        if self._unread:
            self._pause()
        if verb is not None:
            begin(exchange.run(verb), self._keep)
        else:
            self._keep(exchange.run(self._app))

    def _take_body(self, data: bytes) -> bytes:
        """Take the body from received bytes. Return the bytes behind it."""
        left = self.body_left
        piece, rest = (data, b"") if len(data) <= left else (data[:left], data[left:])
        self.body_left -= len(piece)
        exchange = self._exchange
        if not self.body_left:
            self.phase = Phase.RESPONDING
            self.deadline = _NEVER
        if exchange is not None:
            if exchange.take(piece) > _MAX_RETAINED_BODY and self.body_left:
                self._pause()
        elif not self.body_left:
            self._end_request()
        return rest

    def _end_request(self) -> None:
        if self._closes:
            self.close()
            return
        self.phase = Phase.FLUSHING
        self.deadline = self._loop.time() + self._limits.read_timeout
        if self._unread:
            self._loop.call_soon(self.read_on)  # one request in each round of the loop
        elif self._read_paused:
            self.resume_reading()

    def _refuse(self, reason: RejectReason, status: HTTPStatus, text: str, detail: str = "") -> None:
        self._port.refuse(reason, self._peer, detail)
        self._respond_and_close(status, text)

    def _respond_and_close(self, status: HTTPStatus, text: str) -> None:
        """Reject a request without reading further, unless its response has begun."""
        exchange, self._exchange = self._exchange, None
        in_body = self.phase is Phase.BODY
        if exchange is not None:
            exchange.leave()
        if not in_body or (exchange is not None and not exchange.has_begun):
            headers = [
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", b"%d" % len(text)),
                (b"connection", b"close"),
                *self.default_headers,
            ]
            self.transport.write(head_of_response(status, headers) + text.encode())
        self.close()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._server_state.tasks.add(task)  # uvicorn waits for `tasks` at the shutdown
        task.add_done_callback(self._server_state.tasks.discard)

    def _pause(self) -> None:
        if not self._read_paused:
            self._read_paused = True
            self.transport.pause_reading()


def _address(transport: asyncio.Transport, which: str) -> Peer:
    found = transport.get_extra_info(which)
    return (str(found[0]), int(found[1])) if isinstance(found, (list, tuple)) else None
