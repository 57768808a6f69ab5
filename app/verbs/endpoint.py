"""A verb as an endpoint: bytes in, bytes out, and always HTTP 200.

The endpoint uses no FastAPI parameter, response model, middleware or thread pool: at 5,000 names they doubled the time
of a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

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
_CLOSE: Final[Header] = (b"connection", b"close")  # else the server would keep reading a client that keeps writing
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        admission = self.admission
        began = admission.clock()
        admission.in_flight += 1
        request = Request(verb=self.verb.name)
        try:
            try:
                is_buffered = await request.read(scope, receive, self._max_body_bytes, admission)
            except LargeBodyError:
                headers: Headers | Awaitable[Headers] = self._too_large(request)
            else:
                request.arrived = admission.clock()
                turn = admission.enter(began) if is_buffered else admission.shed_now(Shed.BYTES)
                if turn is None:
                    turn = await admission.wait(began, lambda: _has_left(receive))
                if turn is None:
                    return
                request.waited = turn.waited
                headers = self.reply(request) if turn.shed is None else self.reject(turn.shed, request)
            if not isinstance(headers, list):
                # A call to another service needs a task, which this request may not have yet: see exchange.begin.
                await asyncio.sleep(0)
                headers = await headers
            request.release(admission)
            await send({"type": "http.response.start", "status": _OK, "headers": headers})
            await send({"type": "http.response.body", "body": request.response.body})
        except ClientDisconnect:
            return
        finally:
            admission.in_flight -= 1
            request.release(admission)

    def reply(self, request: Request) -> Headers | Awaitable[Headers]:
        """Respond to a request whose turn has come, at once or later. Return the headers of the response."""
        rejected = self._rejected(request)
        try:
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
        return self._observed(request, _CLOSE)

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
        if self._state.closes_connections() and _CLOSE not in more_headers:
            headers.append(_CLOSE)
        if response.source:
            headers.append((b"kindred-equivalence", response.source.encode()))
        if request.stale:  # a header is one line of Latin-1, but a warning may quote a server in any language
            headers.append((b"kindred-stale", one_line(request.stale).encode("ascii", "backslashreplace")))
        return headers


class ExtenderApp(FastAPI):
    """The app of the scheduler's port. It dispatches to the verbs before FastAPI's own middleware and routing.

    With a scheduler at 500 nodes, middleware and routing took 8 % of Kindred's time for a pod that is filtered, scored
    and bound. `VerbEndpoint` replaces them: it limits bodies, and responds after every error.
    """

    verbs: Mapping[str, VerbEndpoint] = MappingProxyType({})
    """Path -> the endpoint for a POST there."""

    def add_verbs(self, *endpoints: VerbEndpoint) -> None:
        """Serve verbs, each at its name. FastAPI serves the other methods of these paths."""
        self.verbs = {f"/{each.verb.name}": each for each in endpoints}
        self.router.routes.extend(Route(path, each, methods=["POST"]) for path, each in self.verbs.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "http" and scope["method"] == "POST":
            verb = self.verbs.get(scope["path"])
            if verb is not None:
                await verb(scope, receive, send)
                return
        await super().__call__(scope, receive, send)


def _has_left(receive: Receive) -> bool:
    """Return whether the client has disconnected. Then `receive` returns at once, and else it waits."""
    waiting = receive().__await__()
    try:
        next(waiting)
    except StopIteration as returned:
        return bool(returned.value["type"] == "http.disconnect")
    waiting.close()
    return False
