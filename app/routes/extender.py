"""The hot verbs as plain ASGI endpoints: bytes in, bytes out.

No FastAPI parameter or response model, middleware or thread pool stands between the socket and the decision: at 5,000
names they were measured to double the time of a request.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.binding.binder import Binder
from app.binding.binding_v1 import binding_result
from app.extender_results import filter_error, prioritize_error
from app.extender_v1 import Answer, Extender
from app.limits import Body
from app.logs import one_line
from app.preempt_v1 import preempt_error
from app.stale_policy import StalePolicy

log = logging.getLogger(__name__)

_DRAINED_BODIES: Final = 4
"""How many times the largest body is read and thrown away, so that a client which writes before it reads gets its
answer; after that the connection is closed."""


_LOOKS_AGAIN: Final = (0.01, 0.02, 0.04, 0.08, 0.15, 0.2)
"""Seconds; together half of the shortest httpTimeout in manifests/scheduler. A watch is mostly late by milliseconds."""

Header: TypeAlias = tuple[bytes, bytes]
_CACHE_OFF: Final[Header] = (b"kindred-cache", b"off")
"""Of a request that is to be answered afresh, to see whether the cache makes a difference."""
_CLOSE: Final[Header] = (b"connection", b"close")  # or a client that writes on would be read on


class Verb(Protocol):
    """What answers a body."""

    def __call__(self, body: Body, *, cached: bool) -> Answer | Awaitable[Answer]:
        """Answer, from the equivalence cache or afresh; at once, or later where others are to be asked."""


class ClientGoneError(Exception):
    """The client went away before its request was complete."""


class VerbEndpoint:
    """One verb: reads a bounded body, answers with HTTP 200 whatever happens."""

    def __init__(
        self,
        verb: Verb,
        error: Callable[[str], bytes],
        stale_policy: StalePolicy,
        max_body_bytes: int,
    ) -> None:
        """Answer with what `verb` makes of the body, or with what `error` makes of a message."""
        self._verb = verb
        self._error = error
        self._stale_policy = stale_policy
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        try:
            body = await self._body(receive)
        except ClientGoneError:
            return
        if body is None:
            await _respond(send, self._too_large(), _CLOSE)
            return
        reserve = self._stale_policy.reserve(scope["path"].removeprefix("/"))
        if reserve.refusal:
            await _respond(send, self._error(reserve.refusal))
            return
        answer = await self._answer(body, scope["path"], cached=_CACHE_OFF not in scope["headers"])
        headers = [(b"kindred-equivalence", answer.source.encode())] if answer.source else []
        if reserve.warning:
            headers.append(_stale_header(reserve.warning))
        await _respond(send, answer.body, *headers)

    async def _answer(self, body: Body, path: str, *, cached: bool) -> Answer:
        try:
            answer = self._verb(body, cached=cached)
            return answer if isinstance(answer, Answer) else await answer
        except Exception as error:
            # kube-scheduler must get a decodable answer, and the next request its chance.
            log.exception("%s: failed", path)
            return Answer(self._error(f"internal error: {type(error).__name__}"))

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
            if size > self._max_body_bytes:
                gathered.clear()
                if not more or size > _DRAINED_BODIES * self._max_body_bytes:
                    return None
            elif not more and not gathered:
                return body
            else:
                gathered += body
                if not more:
                    return gathered

    def _too_large(self) -> bytes:
        message = f"body: larger than {self._max_body_bytes} bytes (KINDRED_MAX_BODY_BYTES)"
        log.warning(message)
        return self._error(message)


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

    _verbs: Mapping[str, ASGIApp] = MappingProxyType({})

    def add_verbs(self, *routes: Route) -> None:
        """Serve routes of verbs; with other methods they are answered as all others are."""
        self._verbs = {route.path: route.app for route in routes}
        self.router.routes.extend(routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "http" and scope["method"] == "POST":
            verb = self._verbs.get(scope["path"])
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


def _stale_header(warning: str) -> Header:
    # A header is a line of Latin-1; a problem may quote a server in any language.
    return b"kindred-stale", one_line(warning).encode("ascii", "backslashreplace")


async def _respond(send: Send, body: bytes, *more_headers: Header) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more_headers]
    await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
    await send({"type": "http.response.body", "body": body})
