"""A verb as an endpoint: bytes in, bytes out, and HTTP 200 whatever happens.

No FastAPI parameter or response model, middleware or thread pool stands between the socket and the decision: at 5,000
names they were measured to double the time of a request. Where a server's protocol asks an endpoint itself
(app/server/verb_protocol.py), there is no ASGI either.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, TypeAlias

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from app.logs import one_line, raised_at
from app.objects.limits import Body
from app.verbs.admission import Admission, Shed
from app.verbs.observation import Observation, VerbOutcome, VerbResponse
from app.verbs.reception import Reception
from app.verbs.request_body import RequestBody, read_body

log = logging.getLogger(__name__)

Header: TypeAlias = tuple[bytes, bytes]
CACHE_OFF: Final[Header] = (b"kindred-cache", b"off")
"""Header of a request for a fresh evaluation, to see whether the cache makes a difference."""
DRY_RUN: Final = b"kindred-dry-run"
"""The header of a request without effects, with any value but `false`."""
_JSON: Final[Header] = (b"content-type", b"application/json")
_SHED: Final = {
    Shed.DEADLINE: "it has waited for longer than the deadline (KINDRED_DEADLINE)",
    Shed.QUEUE_FULL: "too many requests wait (KINDRED_QUEUE_LIMIT)",
    Shed.BYTES: "requests take too many bytes (KINDRED_QUEUE_MAX_BYTES)",
}
CLOSE: Final[Header] = (b"connection", b"close")  # or a client that writes on would be read on


class Reply(NamedTuple):
    """The response, with status 200."""

    body: bytes
    headers: tuple[Header, ...]


class Manner(NamedTuple):
    """How a request wants to be answered, by its headers."""

    cached: bool = True
    """Whether the equivalence cache may be asked."""
    dry_run: bool = False
    """Whether the request may have no effect."""


ORDINARY: Final = Manner()


def manner_of(headers: Collection[Header]) -> Manner:
    """Return the values of a request's headers."""
    if not any(name.startswith(b"kindred-") for name, _ in headers):
        return ORDINARY
    dry_run = any(name == DRY_RUN and value.strip().lower() != b"false" for name, value in headers)
    return Manner(CACHE_OFF not in headers, dry_run)


Answer: TypeAlias = VerbResponse | Awaitable[VerbResponse]


class Verb(Protocol):
    """The handler of a body."""

    def __call__(self, body: Body, manner: Manner) -> Answer:
        """Respond, at once or after calls to other services."""


class Arrival(NamedTuple):
    """A request whose turn it is."""

    at: float
    """When it was complete, of the clock of the admission."""
    waited: float
    """Seconds since, in the queue."""
    size: int
    """Bytes of its body, which may not be held any more."""
    body: Body = b""
    traceparent: str = ""
    """The header of that name, where traces are made."""


class VerbEndpoint:
    """One verb: takes a bounded body, answers with HTTP 200 whatever happens."""

    def __init__(  # noqa: PLR0913  # what makes a verb
        self,
        name: str,
        verb: Verb,
        reception: Reception,
        *,
        error: Callable[[str], bytes],
        turned_away: Callable[[str], bytes],
        untouched: Callable[[Body], Answer | None],
    ) -> None:
        """Respond with the result of `verb` for the body, or of `error` for a message.

        `turned_away` does so under load, and has to be cheap. `untouched` answers a body about a pod that passes
        whatever the mirror is like, and nothing else.
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
        turn = AsgiTurn(self.admission, RequestBody(self.max_body_bytes, self.admission))
        try:
            await read_body(receive, turn.body)
            if turn.body.is_too_large:
                await _respond(send, self.too_large())
                return
            arrived = self.admission.clock()
            reason, waited = await turn.come()
            arrival = Arrival(arrived, waited, turn.body.size, turn.body.content, self.traceparent(scope["headers"]))
            if reason is not None:
                await _respond(send, self.reject(reason, arrival))
                return
            reply = self.reply(arrival, manner_of(scope["headers"]))
            await _respond(send, reply if isinstance(reply, Reply) else await reply)
        except ClientDisconnect:
            return
        finally:
            turn.end()

    def traceparent(self, headers: Iterable[Header]) -> str:
        """Return the trace that a request is a part of; empty if no observer needs it."""
        if not self._reception.traces:
            return ""
        return next((value.decode("latin-1") for name, value in headers if name == b"traceparent"), "")

    def reply(self, arrival: Arrival, manner: Manner) -> Reply | Awaitable[Reply]:
        """Answer a request whose turn it is, at once or later."""
        reserve = self._reception.stale_policy.reserve(self.name)
        not_leading = self._reception.state.refusal()
        refusal = not_leading or reserve.refusal
        answer: Answer | None
        try:
            answer = self._untouched(arrival.body) if refusal else self._verb(arrival.body, manner)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            answer = self._failed(error)
        if answer is None:
            outcome = VerbOutcome.NOT_LEADING if not_leading else VerbOutcome.STALE
            return self._replied(VerbResponse(self._error(refusal), outcome=outcome, error=refusal), arrival)
        if isinstance(answer, VerbResponse):
            return self._replied(answer, arrival, reserve.warning)
        return self._later(answer, arrival, reserve.warning)

    def reject(self, reason: Shed, arrival: Arrival) -> Reply:
        """Answer a request that is not to be answered, as there are too many."""
        message = f"shed: {_SHED[reason]}"
        shed = VerbResponse(self._turned_away(message), outcome=VerbOutcome.SHED, error=message)
        return self._replied(shed, arrival, more_headers=((b"kindred-shed", reason.value.encode()),))

    def too_large(self) -> Reply:
        """Answer a body that was not taken in."""
        message = f"body: larger than {self.max_body_bytes} bytes (KINDRED_MAX_BODY_BYTES)"
        refusal = VerbResponse(self._error(message), outcome=VerbOutcome.BAD_REQUEST, error=message)
        return self._replied(refusal, Arrival(self.admission.clock(), 0.0, 0), more_headers=(CLOSE,))

    async def _later(self, answer: Awaitable[VerbResponse], arrival: Arrival, warning: str) -> Reply:
        try:
            return self._replied(await answer, arrival, warning)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            return self._replied(self._failed(error), arrival)

    def _failed(self, error: Exception) -> VerbResponse:
        # kube-scheduler must get a decodable answer, and the next request its chance.
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
                arrival.traceparent,
                arrival.body,
                answer.body,
                answer.result,
            )
        )
        headers = [_JSON, (b"content-length", b"%d" % len(answer.body)), *more_headers]
        if self._reception.state.closes_connections() and CLOSE not in more_headers:
            headers.append(CLOSE)
        if answer.source:
            headers.append((b"kindred-equivalence", answer.source.encode()))
        if warning:  # a header is a line of Latin-1; a problem may quote a server in any language
            headers.append((b"kindred-stale", one_line(warning).encode("ascii", "backslashreplace")))
        return Reply(answer.body, tuple(headers))


class AsgiTurn:
    """The turn of a request that came by ASGI."""

    def __init__(self, admission: Admission, body: RequestBody) -> None:
        self.began: float = admission.clock()
        self.gone: Final = False  # a client that disconnects while it waits is served nevertheless; rare
        self.body: Final = body
        self._admission = admission
        self._came: asyncio.Future[tuple[Shed | None, float]] = asyncio.get_running_loop().create_future()
        admission.in_flight += 1

    async def come(self) -> tuple[Shed | None, float]:
        """Wait for the turn; return why there will be none, and the seconds of waiting."""
        if self.body.is_over_budget:
            self._admission.reject(self, Shed.BYTES)
        else:
            self._admission.enter(self)
        return await self._came

    def take(self, waited: float) -> None:
        """Answer."""
        self._came.set_result((None, waited))

    def reject(self, reason: Shed, waited: float) -> None:
        """Do not answer."""
        self._came.set_result((reason, waited))

    def end(self) -> None:
        """Record that there is a response, or no client to read it."""
        self._admission.in_flight -= 1
        self.body.release()


async def _respond(send: Send, reply: Reply) -> None:
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": reply.headers})
    await send({"type": "http.response.body", "body": reply.body})
