"""The verbs as plain endpoints: bytes in, bytes out.

No FastAPI parameter or response model, middleware or thread pool stands between the socket and the decision: at 5,000
names they were measured to double the time of a request. Where a server's protocol asks an endpoint itself
(app/verb_protocol.py), there is no ASGI either.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from app.binding.binder import Binder
from app.binding.binding_v1 import binding_result
from app.extender_results import filter_error, prioritize_error
from app.extender_v1 import Answer, Extender
from app.limits import Body
from app.logs import one_line
from app.preempt_v1 import preempt_error
from app.stale_policy import StalePolicy

log = logging.getLogger(__name__)

DRAINED_BODIES: Final = 4
"""How many times the largest body is read and thrown away, so that a client which writes before it reads gets its
answer; after that the connection is closed."""

_LOOKS_AGAIN: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)
"""Seconds; together half of the shortest httpTimeout in manifests/scheduler. A watch is mostly late by milliseconds."""

Header: TypeAlias = tuple[bytes, bytes]
CACHE_OFF: Final[Header] = (b"kindred-cache", b"off")
"""Of a request that is to be answered afresh, to see whether the cache makes a difference."""
CLOSE: Final[Header] = (b"connection", b"close")  # or a client that writes on would be read on


class Reply(NamedTuple):
    """What is answered, with status 200."""

    body: bytes
    headers: tuple[Header, ...]


class Verb(Protocol):
    """What answers a body."""

    def __call__(self, body: Body, *, cached: bool) -> Answer | Awaitable[Answer]:
        """Answer, from the equivalence cache or afresh; at once, or later where others are to be asked."""


class ClientGoneError(Exception):
    """The client went away before its request was complete."""


class VerbEndpoint:
    """One verb: takes a bounded body, answers with HTTP 200 whatever happens."""

    def __init__(
        self,
        verb: Verb,
        error: Callable[[str], bytes],
        stale_policy: StalePolicy,
        max_body_bytes: int,
    ) -> None:
        """Answer with what `verb` makes of the body, or with what `error` makes of a message."""
        self.max_body_bytes: Final = max_body_bytes
        self._verb = verb
        self._error = error
        self._stale_policy = stale_policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        try:
            body = await self._body(receive)
        except ClientGoneError:
            return
        if body is None:
            await _respond(send, self.too_large())
            return
        reply = self.reply(body, scope["path"], cached=CACHE_OFF not in scope["headers"])
        await _respond(send, reply if isinstance(reply, Reply) else await reply)

    def reply(self, body: Body, path: str, *, cached: bool) -> Reply | Awaitable[Reply]:
        """Answer a body, at once or later; `path` is what the verb is called."""
        reserve = self._stale_policy.reserve(path.removeprefix("/"))
        if reserve.refusal:
            return _reply(self._error(reserve.refusal))
        try:
            answer = self._verb(body, cached=cached)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            return self._failed(path, error)
        if isinstance(answer, Answer):
            return _answered(answer, reserve.warning)
        return self._later(path, answer, reserve.warning)

    def too_large(self) -> Reply:
        """Answer a body that was not taken in."""
        message = f"body: larger than {self.max_body_bytes} bytes (KINDRED_MAX_BODY_BYTES)"
        log.warning(message)
        return _reply(self._error(message), CLOSE)

    async def _later(self, path: str, answer: Awaitable[Answer], warning: str) -> Reply:
        try:
            return _answered(await answer, warning)
        except Exception as error:  # noqa: BLE001 - logged, and answered
            return self._failed(path, error)

    def _failed(self, path: str, error: Exception) -> Reply:
        # kube-scheduler must get a decodable answer, and the next request its chance.
        log.error("%s: failed", path, exc_info=error)
        return _reply(self._error(f"internal error: {type(error).__name__}"))

    async def _body(self, receive: Receive) -> Body | None:
        """Return the body, or None if it is larger than allowed; then at most the allowed size was ever held."""
        body: bytes
        gathered = bytearray()  # not a list: a body in chunks of one byte would weigh 40 times its size
        size = 0
        while True:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            body = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(body)
            if size > self.max_body_bytes:
                gathered.clear()
                if not more or size > DRAINED_BODIES * self.max_body_bytes:
                    return None
            elif not more and not gathered:
                return body
            else:
                gathered += body
                if not more:
                    return gathered


class PatientFilter:
    """`filter` that looks again for a moment where its answer is doubtful; the scheduler waits, with all its pods."""

    def __init__(self, extender: Extender) -> None:
        self._extender = extender

    def __call__(self, body: Body, *, cached: bool) -> Answer | Awaitable[Answer]:
        """Answer at once, or later."""
        answer = self._extender.filter(body, cached=cached)
        return self._later(body, cached=cached) if answer.doubtful else answer

    async def _later(self, body: Body, *, cached: bool) -> Answer:
        for pause in _LOOKS_AGAIN:
            await asyncio.sleep(pause)
            answer = self._extender.filter(body, cached=cached)
            if not answer.doubtful:
                return answer
        log.info("filter: a nominated node does not fit; the watch may be late with its victims")
        return answer


class ExtenderApp(FastAPI):
    """The app of the scheduler's port, which reaches the verbs before FastAPI's own middleware and routing.

    Measured with a scheduler at 500 nodes: those took 8 % of Kindred's time for a pod that is filtered, scored and
    bound. What they do, `VerbEndpoint` does: it bounds bodies, and answers whatever happens.
    """

    verbs: Mapping[str, VerbEndpoint] = MappingProxyType({})
    """Path -> what answers a POST there."""

    def add_verbs(self, *routes: Route) -> None:
        """Serve routes of verbs; with other methods they are answered as all others are."""
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


def extender_routes(extender: Extender, stale_policy: StalePolicy, max_body_bytes: int) -> list[Route]:
    """Return the routes of the extender verbs."""
    verbs = (
        ("/filter", PatientFilter(extender), filter_error),
        ("/prioritize", extender.prioritize, prioritize_error),
    )
    return [
        Route(path, VerbEndpoint(verb, error, stale_policy, max_body_bytes), methods=["POST"])
        for path, verb, error in verbs
    ]


def binding_route(binder: Binder, stale_policy: StalePolicy, max_body_bytes: int) -> Route:
    """Return the route of the verb `bind`, which has nothing to do with the cache."""

    async def bind(body: Body, *, cached: bool) -> Answer:  # noqa: ARG001  # the protocol's
        return Answer(await binder.bind(body))

    return Route("/bind", VerbEndpoint(bind, binding_result, stale_policy, max_body_bytes), methods=["POST"])


def preemption_route(preempt: Verb, stale_policy: StalePolicy, max_body_bytes: int) -> Route:
    """Return the route of the verb `preempt`, which is answered by a Preempter or by its stand-in."""
    return Route("/preempt", VerbEndpoint(preempt, preempt_error, stale_policy, max_body_bytes), methods=["POST"])


def _answered(answer: Answer, warning: str) -> Reply:
    headers = [(b"kindred-equivalence", answer.source.encode())] if answer.source else []
    if warning:  # a header is a line of Latin-1; a problem may quote a server in any language
        headers.append((b"kindred-stale", one_line(warning).encode("ascii", "backslashreplace")))
    return _reply(answer.body, *headers)


def _reply(body: bytes, *more_headers: Header) -> Reply:
    return Reply(body, ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more_headers))


async def _respond(send: Send, reply: Reply) -> None:
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": reply.headers})
    await send({"type": "http.response.body", "body": reply.body})
