"""A verb as an endpoint: bytes in, bytes out, and always HTTP 200.

The endpoint uses no FastAPI parameter, response model, middleware or thread pool: at 5,000 names they doubled the time
of a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from fastapi import FastAPI
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.logs import one_line, raised_at
from app.objects.limits import Body
from app.verbs.admission import Admission, ServingState, Shed
from app.verbs.request import Observation, VerbOutcome, VerbResponse
from app.watch.freshness import Freshness, SyncStatus

# The responses to requests while the mirror is stale.


class Reserve(NamedTuple):
    """The effect of a stale mirror on a response. At most one of the two texts is not empty."""

    refusal: str = ""
    """Why there is no result."""
    warning: str = ""
    """A warning about the response."""


NO_RESERVE = Reserve()
_ANSWERED: Final = "prioritize"


class StalePolicy:
    """A request to a stale mirror is rejected. A score has a warning instead, because it breaks no rule.

    While the mirror has never been complete, all requests are rejected, because no response could be right.
    """

    def __init__(
        self,
        freshness: Freshness,
        count: Callable[[str], None],
        *,
        names: bool = True,
    ) -> None:
        """Call `count` with the verb for each request to a stale mirror.

        `names`: whether the effects may name resources, and quote the API server.
        """
        self._freshness = freshness
        self._count = count
        self._names = names

    def reserve(self, verb: str) -> Reserve:
        """Check the mirror for one request."""
        standing = self._freshness.status()
        if standing is SyncStatus.FRESH:
            return NO_RESERVE
        self._count(verb)
        state = f"the mirror is {standing.value}"
        problems = "; ".join(self._freshness.problems()) if self._names else ""
        if standing is SyncStatus.STALE and verb == _ANSWERED:
            return Reserve(warning=problems or state)
        return Reserve(refusal=f"{state}: {problems}" if problems else state)


# The steps before and after every verb: access, the queue, and the observers.


class Reception(NamedTuple):
    """The parts that the verbs of one port share."""

    state: ServingState
    stale_policy: StalePolicy
    admission: Admission
    observe: Callable[[Observation], object]
    """Called for each request, after its response was made."""
    max_body_bytes: int


# The body of a request, collected as it arrives. At most the allowed size is held.


class RequestBody:
    """Collects the pieces of a body. Once the body is too large, or the budget is spent, it holds none of them."""

    __slots__ = (
        "_budget",
        "_held",
        "_most",
        "content",
        "is_over_budget",
        "is_too_large",
        "size",
    )

    content: Body
    """The held bytes of the body."""

    def __init__(self, most: int, budget: Admission | None = None) -> None:
        """Allow a body of `most` bytes. `budget`: counts the bytes that all requests hold, and limits them."""
        self.content = b""
        self.size = 0
        """Bytes received, held or not."""
        self.is_too_large = False
        """Whether the body is larger than allowed."""
        self.is_over_budget = False
        """Whether the budget was spent when the body arrived."""
        self._most = most
        self._budget = budget
        self._held = 0

    async def read(self, scope: Scope, receive: Receive) -> None:
        """Read the body by ASGI, unless its Content-Length is too large already. Raises ClientDisconnect."""
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > self._most:
                self.is_too_large = True
                return
        more = True
        while more and not self.is_too_large:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self.add(message.get("body", b""))
            more = message.get("more_body", False)

    def add(self, piece: Body) -> None:
        """Add a piece."""
        self.size += len(piece)
        if self.size > self._most:
            self.is_too_large = True
            self.release()
            return
        if self._budget is not None and not self.is_over_budget:
            self._held += len(piece)
            self.is_over_budget = not self._budget.hold(len(piece))
        if self.is_over_budget:
            self.release()
        # Not a list of pieces: a body in pieces of one byte would take 40 times its size.
        elif not self.content:
            self.content = piece
        elif isinstance(self.content, bytearray):
            self.content += piece
        else:
            self.content = bytearray(self.content) + piece

    def release(self) -> None:
        """Release the body."""
        if self._budget is not None and self._held:
            self._budget.release(self._held)
            self._held = 0
        self.content = b""


log = logging.getLogger(__name__)

Header: TypeAlias = tuple[bytes, bytes]
CACHE_OFF: Final[Header] = (b"kindred-cache", b"off")
"""Header of a request for a fresh evaluation, to see whether the cache makes a difference."""
DRY_RUN: Final = b"kindred-dry-run"
"""The header of a request without effects, with any value but `false`."""
_JSON: Final[Header] = (b"content-type", b"application/json")
_SHED: Final = {
    Shed.DEADLINE: "the request waited longer than the deadline (KINDRED_HTTP_TIMEOUT)",
    Shed.QUEUE_FULL: "too many requests are in the queue ({limit})",
    Shed.BYTES: "the bodies of requests take too many bytes (a quarter of the memory limit)",
}
CLOSE: Final[Header] = (b"connection", b"close")  # else the server would keep reading a client that keeps writing


class Reply(NamedTuple):
    """The response, with status 200."""

    body: bytes
    headers: tuple[Header, ...]


class Manner(NamedTuple):
    """The options of a request, by its headers."""

    cached: bool = True
    """Whether the equivalence cache may be used."""
    dry_run: bool = False
    """Whether the request may have no effect."""


ORDINARY: Final = Manner()


def manner_of(headers: Collection[Header]) -> Manner:
    """Return the options in a request's headers."""
    for name, _ in headers:
        if name.startswith(b"kindred-"):
            break
    else:
        return ORDINARY
    dry_run = any(name == DRY_RUN and value.strip().lower() != b"false" for name, value in headers)
    return Manner(CACHE_OFF not in headers, dry_run)


Answer: TypeAlias = VerbResponse | Awaitable[VerbResponse]


Untouched: TypeAlias = VerbResponse | Awaitable[VerbResponse | None] | None
"""The response for a pod that passes untouched, at once or after calls to other services. None for other pods."""


class Verb(Protocol):
    """The handler of a body."""

    def __call__(self, body: Body, manner: Manner) -> Answer:
        """Respond, at once or after calls to other services."""


class Arrival(NamedTuple):
    """A request whose turn it is."""

    at: float
    """Time at which the request was complete, by the clock of the admission."""
    waited: float
    """Seconds in the queue."""
    size: int
    """Bytes of the request's body. The body itself may have been released."""
    body: Body = b""
    manner: Manner = ORDINARY


class VerbEndpoint:
    """One verb: takes a body of limited size, and always responds with HTTP 200."""

    def __init__(  # noqa: PLR0913  # what makes a verb
        self,
        name: str,
        verb: Verb,
        reception: Reception,
        *,
        error: Callable[[str], bytes],
        turned_away: Callable[[str], bytes],
        untouched: Callable[[Body, Manner], Untouched],
    ) -> None:
        """Respond with the result of `verb` for the body, or of `error` for a message.

        `turned_away` takes the place of `error` for shed requests, and must be cheap. `untouched` responds for pods
        that pass untouched, whatever the state of the mirror, and returns None for all others.
        """
        self.name: Final = name
        self.admission: Final = reception.admission
        self.max_body_bytes: Final = reception.max_body_bytes
        self._verb = verb
        self._error = error
        self._turned_away = turned_away
        self._untouched = untouched
        self._reception = reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        admission = self.admission
        began = admission.clock()
        admission.in_flight += 1
        body = RequestBody(self.max_body_bytes, admission)
        try:
            await body.read(scope, receive)
            arrived = admission.clock()
            if body.is_too_large:
                reply: Reply | Awaitable[Reply] = self.too_large()
            else:
                turn = admission.shed_now(Shed.BYTES) if body.is_over_budget else admission.enter(began)
                if turn is None:
                    turn = await admission.wait(began, lambda: _has_left(receive))
                if turn is None:
                    return
                arrival = Arrival(arrived, turn.waited, body.size, body.content, manner_of(scope["headers"]))
                reply = self.reply(arrival) if turn.shed is None else self.reject(turn.shed, arrival)
            if not isinstance(reply, Reply):
                # A call to another service needs a task, which this request may not have yet: see exchange.begin.
                await asyncio.sleep(0)
                reply = await reply
            body.release()
            await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": reply.headers})
            await send({"type": "http.response.body", "body": reply.body})
        except ClientDisconnect:
            return
        finally:
            admission.in_flight -= 1
            body.release()

    def reply(self, arrival: Arrival) -> Reply | Awaitable[Reply]:
        """Respond to a request whose turn has come, at once or later."""
        reserve = self._reception.stale_policy.reserve(self.name)
        not_leading = self._reception.state.refusal()
        refusal = not_leading or reserve.refusal
        outcome = VerbOutcome.NOT_LEADING if not_leading else VerbOutcome.STALE
        answer: Untouched
        try:
            verb = self._untouched if refusal else self._verb
            answer = verb(arrival.body, arrival.manner)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            answer = self._failed(error)
        if answer is None:
            return self._replied(self._refused(refusal, outcome), arrival)
        if isinstance(answer, VerbResponse):
            return self._replied(answer, arrival, reserve.warning)
        return self._later(answer, arrival, reserve.warning, refusal, outcome)

    def reject(self, reason: Shed, arrival: Arrival) -> Reply:
        """Respond to a shed request, without an evaluation."""
        message = f"shed: {_SHED[reason].format(limit=self.admission.queue_limit)}"
        shed = VerbResponse(self._turned_away(message), outcome=VerbOutcome.SHED, error=message)
        return self._replied(shed, arrival, more_headers=((b"kindred-shed", reason.value.encode()),))

    def too_large(self) -> Reply:
        """Respond to a body that is larger than allowed."""
        message = f"body: larger than {self.max_body_bytes} bytes"
        refusal = VerbResponse(self._error(message), outcome=VerbOutcome.BAD_REQUEST, error=message)
        return self._replied(refusal, Arrival(self.admission.clock(), 0.0, 0), more_headers=(CLOSE,))

    async def _later(
        self,
        answer: Awaitable[VerbResponse | None],
        arrival: Arrival,
        warning: str,
        refusal: str,
        outcome: VerbOutcome,
    ) -> Reply:
        try:
            response = await answer
        except Exception as error:  # noqa: BLE001 - logged, and answered
            return self._replied(self._failed(error), arrival)
        if response is None:
            return self._replied(self._refused(refusal, outcome), arrival)
        return self._replied(response, arrival, warning)

    def _refused(self, refusal: str, outcome: VerbOutcome) -> VerbResponse:
        return VerbResponse(self._error(refusal), outcome=outcome, error=refusal)

    def _failed(self, error: Exception) -> VerbResponse:
        # kube-scheduler must get a decodable response, and the next request must be served.
        log.error("%s: failed: %s at %s", self.name, type(error).__name__, raised_at(error))
        log.debug("%s: failed", self.name, exc_info=error)
        message = f"internal error: {type(error).__name__}"
        return VerbResponse(self._error(message), outcome=VerbOutcome.INTERNAL_ERROR, error=message)

    def _replied(
        self, answer: VerbResponse, arrival: Arrival, warning: str = "", more_headers: tuple[Header, ...] = ()
    ) -> Reply:
        self._reception.observe(
            Observation(
                self.name,
                answer.outcome,
                self.admission.clock() - arrival.at,
                arrival.waited,
                arrival.size,
                len(answer.body),
                answer.asked,
                answer.source,
                answer.error,
                warning,
                arrival.body,
                answer.body,
                answer.result,
                arrival.manner.dry_run,
            )
        )
        headers = [_JSON, (b"content-length", b"%d" % len(answer.body)), *more_headers]
        if self._reception.state.closes_connections() and CLOSE not in more_headers:
            headers.append(CLOSE)
        if answer.source:
            headers.append((b"kindred-equivalence", answer.source.encode()))
        if warning:  # a header is one line of Latin-1, but a warning may quote a server in any language
            headers.append((b"kindred-stale", one_line(warning).encode("ascii", "backslashreplace")))
        return Reply(answer.body, tuple(headers))


def verb_route(endpoint: VerbEndpoint) -> Route:
    """Return the route of a verb."""
    return Route(f"/{endpoint.name}", endpoint, methods=["POST"])


class ExtenderApp(FastAPI):
    """The app of the scheduler's port. It dispatches to the verbs before FastAPI's own middleware and routing.

    With a scheduler at 500 nodes, middleware and routing took 8 % of Kindred's time for a pod that is filtered, scored
    and bound. `VerbEndpoint` replaces them: it limits bodies, and responds after every error.
    """

    verbs: Mapping[str, VerbEndpoint] = MappingProxyType({})
    """Path -> the endpoint for a POST there."""

    def add_verbs(self, *routes: Route) -> None:
        """Serve routes of verbs. FastAPI serves the other methods of these paths."""
        self.verbs = {route.path: route.app for route in routes if isinstance(route.app, VerbEndpoint)}
        self.router.routes.extend(routes)

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
