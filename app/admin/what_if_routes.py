"""`POST /what-if/...` of the admin port: what would happen, asked of the cluster that the service mirrors.

A question ends with its caller: when they disconnect, and when the service ends, the process that looks for the answer
is killed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from app.admin.access import Access, NotVisibleError, Viewer
from app.admin.explain_routes import TOO_MUCH, body_of, problem
from app.api_server.access_reviews import ALL_NAMESPACES
from app.objects.decode import DecodeError, decoding, refuse_too_many_elements
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


def what_if_router(asker: Asker, serving: ServingState, max_body_bytes: int, access: Access) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    async def respond(request: Request, kind: type[AnyQuestion]) -> Response:
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
        return _QuestionResponse(asker, serving, question, None if viewer.is_full else _sight(viewer))

    def route_of(kind: type[AnyQuestion]) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            return await respond(request, kind)

        return route

    for path, kind in QUESTIONS.items():
        router.post(path, name=kind.name)(route_of(kind))
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

    def __init__(self, asker: Asker, serving: ServingState, question: AnyQuestion, see: See | None) -> None:
        super().__init__()
        self._asker = asker
        self._serving = serving
        self._question = question
        self._see = see
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
            async with self._asker.running(self._question, self._see) as child:
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
