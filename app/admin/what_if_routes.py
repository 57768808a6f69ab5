"""`POST /what-if/...` of the admin port: what would happen, asked of the cluster that the service mirrors.

A question ends with its caller: when they disconnect, and when the service ends, the process that looks for the answer
is killed. A caller who asks with a key gets with it, by another request, how far the question is. The response cannot
say it, because its status is known only at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Request, Response
from starlette.types import Receive, Scope, Send

from app.admin.access import Access, NotVisibleError, Viewer
from app.admin.explain_routes import TOO_MUCH, body_of, problem
from app.admin.responses import JsonResponse, StrictQuery
from app.api_server.access_reviews import ALL_NAMESPACES
from app.objects.decode import DecodeError, decoding, refuse_too_many_elements
from app.process.forked import Child
from app.simulation.asking import Asker, QuestionRejectedError, See
from app.simulation.chosen_nodes import QuestionError
from app.simulation.hidden_names import Seen
from app.simulation.questions import AnyQuestion, CapacityQuestion, DrainQuestion, LossQuestion, RemovalQuestion
from app.verbs.admission import ServingState

QUESTIONS: Final[Mapping[str, type[AnyQuestion]]] = {
    f"/what-if/{kind.name}": kind for kind in (CapacityQuestion, DrainQuestion, LossQuestion, RemovalQuestion)
}
_TICK: Final = 0.2
"""Seconds within which a question notices the shutdown."""
_JSON: Final = (b"content-type", b"application/json")


class KeyQuery(StrictQuery):
    """Which question: one that was asked with this key."""

    key: str = ""
    """A text that the caller makes up, and that nobody guesses."""


class Progress(msgspec.Struct, frozen=True):
    """How far a question is."""

    done: float | None
    """The share done, from 0 to 1. None: it does not run, or waits for another one."""


def what_if_router(asker: Asker, serving: ServingState, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    async def respond(request: Request, kind: type[AnyQuestion], key: str) -> Response:
        viewer = access.viewer(request)
        try:
            question = decode_question(await body_of(request, max_body_bytes), kind)
            rejection = await _rejection(viewer, question)
        except DecodeError as error:
            return problem(TOO_MUCH if error.field == "body" else HTTPStatus.BAD_REQUEST, str(error), error.field)
        except QuestionError as error:
            return problem(HTTPStatus.BAD_REQUEST, str(error), error.field)
        if rejection is not None:
            return rejection
        see = None if viewer.is_full else _sight(viewer)
        return _QuestionResponse(partial(asker.running, question, see, key), serving)

    def route_of(kind: type[AnyQuestion]) -> Callable[[Request, KeyQuery], Awaitable[Response]]:
        async def route(request: Request, query: Annotated[KeyQuery, Query()]) -> Response:
            return await respond(request, kind, query.key)

        return route

    for path, kind in QUESTIONS.items():
        router.post(path, name=kind.name)(route_of(kind))

    @router.get("/what-if/progress")
    async def progress(query: Annotated[KeyQuery, Query()]) -> Response:
        return JsonResponse(Progress(asker.done(query.key)))

    return router


def decode_question(body: bytes, kind: type[AnyQuestion]) -> AnyQuestion:
    """Decode a question. Raises DecodeError and QuestionError, which name the field."""
    refuse_too_many_elements(body)
    question: AnyQuestion = decoding(msgspec.json.Decoder(kind).decode, body)
    question.check()
    return question


async def _rejection(viewer: Viewer, question: AnyQuestion) -> Response | None:
    """Return the response to a caller who is unknown, or may not see the pods and workloads that a question names."""
    if viewer.is_full:
        return None
    for field, namespaces in {"": (), **question.namespaces}.items():
        try:
            await _need(viewer, namespaces)
        except NotVisibleError as error:
            return problem(error.status, f"{field}: {error}" if field else str(error), field)
    return None


async def _need(viewer: Viewer, namespaces: Collection[str]) -> None:
    """Raise NotVisibleError unless all of these namespaces are visible. The empty one: any namespace."""
    await viewer.need({*namespaces} - {ALL_NAMESPACES})
    if ALL_NAMESPACES in namespaces and await viewer.why_limited():
        raise NotVisibleError(HTTPStatus.FORBIDDEN, "give the namespace, because this caller may not list all pods")


def _sight(viewer: Viewer) -> See:
    async def see(namespaces: Sequence[str]) -> Seen:
        visible = await viewer.of(namespaces)
        return Seen(None if visible.namespaces is None else frozenset(visible.namespaces), visible.why)

    return see


class _QuestionResponse(Response):
    """Asks the question when it is sent, so that nothing is left of it when that ends."""

    def __init__(self, ask: Callable[[], AbstractAsyncContextManager[Child]], serving: ServingState) -> None:
        super().__init__()
        self._ask = ask
        self._serving = serving
        self._has_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it (ASGI)."""
        sending = asyncio.create_task(self._send(scope, receive, send))
        unwanted = asyncio.create_task(self._unwanted(receive))
        try:
            await asyncio.wait((sending, unwanted), return_when=asyncio.FIRST_COMPLETED)
        finally:
            unwanted.cancel()
            is_unwanted = sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
        if is_unwanted and self._serving.draining and not self._has_begun:
            await problem(HTTPStatus.SERVICE_UNAVAILABLE, "the service is ending", "")(scope, receive, send)

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._ask() as child:
                length = await child.length()
                headers = [_JSON, (b"content-length", b"%d" % length)]
                self._has_begun = True
                await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
                async for piece in child.pieces(length):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except QuestionRejectedError as error:
            if self._has_begun:
                raise
            outcome = error.outcome
            response = problem(HTTPStatus(outcome.status), outcome.detail, outcome.field)
            await response(scope, receive, send)

    async def _unwanted(self, receive: Receive) -> None:
        """Return when the client has left, or when the service ends."""
        leaving = asyncio.ensure_future(receive())
        try:
            while not (leaving.done() or self._serving.draining):
                await asyncio.wait((leaving,), timeout=_TICK)
        finally:
            leaving.cancel()
