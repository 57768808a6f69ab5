"""A verb as an endpoint: bytes in, bytes out, and always HTTP 200.

The endpoint uses no FastAPI parameter, response model, middleware or thread pool: at 5,000 names they doubled the time
of a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.feeds.freshness import SyncStatus
from app.process.logs import one_line, raised_at
from app.verbs.admission import Admission, ServingState, Shed
from app.verbs.request import LargeBodyError, Request, VerbOutcome, VerbResponse

log = logging.getLogger(__name__)

Header: TypeAlias = tuple[bytes, bytes]
Headers: TypeAlias = list[Header]
_JSON: Final[Header] = (b"content-type", b"application/json")
_OK: Final = HTTPStatus.OK.value  # each access to a member is a Python function
_SHED: Final = {
    Shed.DEADLINE: "the request waited longer than the deadline (KINDRED_HTTP_TIMEOUT)",
    Shed.QUEUE_FULL: "too many requests are in the queue ({limit})",
    Shed.BYTES: "the bodies of requests take too many bytes (a quarter of the memory limit)",
}
CLOSE: Final[Header] = (b"connection", b"close")
"""Else the server would keep reading a client that keeps writing."""
_MOST_AT_ONCE: Final = 256 * 1024
"""Bytes of a body that is written at once. A client may read a longer one slowly."""
_SCORES: Final = "prioritize"
"""The verb with a result from a stale mirror, because a score breaks no rule."""


class Verb(NamedTuple):
    """A verb without its endpoint."""

    name: str
    run: Callable[[Request], VerbResponse | Awaitable[VerbResponse]]
    """Responds, at once or after calls to other services."""
    error: Callable[[str], bytes]
    """The body of the response with a message instead of a result."""
    shed: Callable[[str], bytes]
    """The same for shed requests. It must be cheap."""
    bypassed: Callable[[Request], VerbResponse | Awaitable[VerbResponse | None] | None]
    """Responds for pods that pass untouched, whatever the state of the mirror. None for all others."""


class VerbEndpoint:
    """Takes a body of limited size, and always responds with HTTP 200."""

    def __init__(  # a verb, and what the verbs of a port share
        self,
        verb: Verb,
        *,
        state: ServingState,
        admission: Admission,
        observe: Callable[[Request], None],
        max_body_bytes: int,
    ) -> None:
        """`observe` is called for each request, after its response was made. Only `verb` differs between endpoints."""
        self.admission: Final = admission
        self.verb: Final = verb
        self._state = state
        self._observe = observe
        self._max_body_bytes = max_body_bytes

    def at_once(self, body: bytes) -> tuple[Headers, bytes] | ASGIApp | None:
        """Respond to a whole request without options, in this round of the event loop. Return a response with HTTP 200.

        An app sends one that is large, or not there yet. None: nothing was done, and `__call__` serves the request.
        """
        admission, size = self.admission, len(body)
        if size > self._max_body_bytes or not admission.takes(size):
            return None
        request = Request(body=body, verb=self.verb.name, size=size, arrived=admission.clock())
        headers = self.reply(request)
        if isinstance(headers, list) and len(request.response.body) <= _MOST_AT_ONCE:
            return headers, request.response.body
        request.buffered = size
        admission.buffer(size)
        admission.in_flight += 1
        return partial(self._send, request, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        self.admission.in_flight += 1
        request = Request(verb=self.verb.name)
        await self._send(request, self._read(request, scope, receive), scope, receive, send)

    async def _read(self, request: Request, scope: Scope, receive: Receive) -> Headers | None:
        """Read a request, and respond when its turn has come. Return None if its client has left."""
        admission = self.admission
        began = admission.clock()
        try:
            is_buffered = await request.read(scope, receive, self._max_body_bytes, admission)
        except LargeBodyError:
            return self._too_large(request)
        request.arrived = admission.clock()
        turn = admission.enter(began) if is_buffered else admission.shed_now(Shed.BYTES)
        if turn is None:
            turn = await admission.wait(began, request.has_left)
        if turn is None:
            return None
        request.waited = turn.waited
        headers = self.reply(request) if turn.shed is None else self.reject(turn.shed, request)
        if isinstance(headers, list):
            return headers
        await asyncio.sleep(0)  # a call to another service needs a task, which this request may not have yet
        return await headers

    async def _send(
        self, request: Request, headers: Headers | Awaitable[Headers | None], _: Scope, receive: Receive, send: Send
    ) -> None:
        """Send the response, and end the request."""
        request.has_left = partial(_has_left, receive)
        try:
            found = headers if isinstance(headers, list) else await headers
            if found is not None:
                request.release(self.admission)
                await send({"type": "http.response.start", "status": _OK, "headers": found})
                await send({"type": "http.response.body", "body": request.response.body})
        except ClientDisconnect:
            return
        finally:
            self.admission.in_flight -= 1
            request.release(self.admission)

    def reply(self, request: Request) -> Headers | Awaitable[Headers]:
        """Respond to a request whose turn has come, at once or later. Return the headers of the response."""
        rejected = None
        try:
            rejected = self._rejected(request)
            response = self.verb.run(request) if rejected is None else self.verb.bypassed(request)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            response = self._failed(error)
        if response is None or isinstance(response, VerbResponse):
            return self._replied(request, response, rejected)
        return self._later(request, response, rejected)

    def reject(self, reason: Shed, request: Request) -> Headers:
        """Respond to a shed request, without an evaluation."""
        message = f"shed: {_SHED[reason].format(limit=self.admission.queue_limit)}"
        request.response = VerbResponse(self.verb.shed(message), outcome=VerbOutcome.SHED, error=message)
        return self._observed(request, (b"kindred-shed", reason.value.encode()))

    def _too_large(self, request: Request) -> Headers:
        request.arrived, request.size = self.admission.clock(), 0
        request.response = self._error(f"body: larger than {self._max_body_bytes} bytes", VerbOutcome.BAD_REQUEST)
        return self._observed(request, CLOSE)

    def _rejected(self, request: Request) -> VerbResponse | None:
        """Return the response to a request that is not evaluated. None: it is.

        A request to a stale mirror is not, but a score has a warning instead. While the mirror has never been complete,
        no response could be right.
        """
        freshness, rejection = self._state.freshness, ""
        status = freshness.status()
        if status is not SyncStatus.FRESH:
            request.is_fresh = False
            state = f"the mirror is {status.value}"
            problems = "; ".join(freshness.problems()) if self._state.names else ""
            if status is SyncStatus.STALE and self.verb.name == _SCORES:
                request.stale = problems or state
            else:
                rejection = f"{state}: {problems}" if problems else state
        if not_leading := self._state.rejection():
            return self._error(not_leading, VerbOutcome.NOT_LEADING)
        return self._error(rejection, VerbOutcome.STALE) if rejection else None

    async def _later(
        self, request: Request, response: Awaitable[VerbResponse | None], rejected: VerbResponse | None
    ) -> Headers:
        try:
            found = await response
        except Exception as error:  # noqa: BLE001 - logged, and answered
            found = self._failed(error)
        return self._replied(request, found, rejected)

    def _replied(self, request: Request, response: VerbResponse | None, rejected: VerbResponse | None) -> Headers:
        """Take the response, or the refusal if there is none: the pod does not pass untouched."""
        if response is not None:
            request.response = response
        elif rejected is not None:
            request.response, request.stale = rejected, ""
        return self._observed(request)

    def _failed(self, error: Exception) -> VerbResponse:
        # kube-scheduler must get a decodable response, and the next request must be served.
        log.error("%s: failed: %s at %s", self.verb.name, type(error).__name__, raised_at(error))
        log.debug("%s: failed", self.verb.name, exc_info=error)
        return self._error(f"internal error: {type(error).__name__}", VerbOutcome.INTERNAL_ERROR)

    def _error(self, message: str, outcome: VerbOutcome) -> VerbResponse:
        return VerbResponse(self.verb.error(message), outcome=outcome, error=message)

    def _observed(self, request: Request, *more_headers: Header) -> Headers:
        """Return the headers of the response, once it was observed."""
        response = request.response
        request.seconds = self.admission.clock() - request.arrived
        self._observe(request)
        headers = [_JSON, (b"content-length", b"%d" % len(response.body)), *more_headers]
        if self._state.closes_connections() and CLOSE not in more_headers:
            headers.append(CLOSE)
        if response.source:
            headers.append((b"kindred-equivalence", response.source.encode()))
        if request.stale:  # a header is one line of Latin-1, but a warning may quote a server in any language
            headers.append((b"kindred-stale", one_line(request.stale).encode("ascii", "backslashreplace")))
        return headers


class ExtenderApp(FastAPI):
    """The app of the scheduler's port, which calls the verbs itself, without FastAPI's middleware and routing.

    With a scheduler at 500 nodes, these took 8 % of Kindred's time for a pod that is filtered, scored and bound.
    `VerbEndpoint` replaces them: it limits bodies, and responds after every error.
    """

    verbs: Mapping[str, VerbEndpoint] = MappingProxyType({})
    """Path -> the endpoint for a POST there."""

    def add_verbs(self, *endpoints: VerbEndpoint) -> None:
        """Serve verbs, each at its name. FastAPI serves the other methods of these paths."""
        self.verbs = {f"/{each.verb.name}": each for each in endpoints}
        self.router.routes.extend(Route(path, each, methods=["POST"]) for path, each in self.verbs.items())


def _has_left(receive: Receive) -> bool:
    """Return whether the client has disconnected. Then `receive` returns at once, and else it waits."""
    waiting = receive().__await__()
    try:
        next(waiting)
    except StopIteration as returned:
        return bool(returned.value["type"] == "http.disconnect")
    waiting.close()
    return False
