"""Requests of people: reads them, evaluates one at a time, and reports errors by field."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec
from fastapi import Request, Response

from app.admin.access import NotVisibleError, Sight, shown
from app.admin.json_response import JsonResponse
from app.explain.explain_error import ExplainError, TooMuchWorkError, UnknownError
from app.explain.explain_request import ExplainRequest, decode_explain_request
from app.explain.explainer import Explainer
from app.objects.decode import DecodeError
from app.verbs.request_body import RequestBody
from core.diagnosis.pod_names import Sees

Answer: TypeAlias = Callable[[ExplainRequest, Sees | None], Awaitable[msgspec.Struct]]
"""Evaluates a request for a caller who sees some namespaces (None: all)."""

_STATUSES: Final[Mapping[type[ExplainError], HTTPStatus]] = {
    UnknownError: HTTPStatus.NOT_FOUND,
    TooMuchWorkError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
TOO_MUCH: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class ExplainProblem(msgspec.Struct, frozen=True):
    """The error of a request, in the form of FastAPI's own errors."""

    detail: str
    field: str
    """The place in the request. Empty for the whole request."""


async def answered(request: Request, most: int, explainer: Explainer, answer: Answer, sight: Sight) -> Response:
    """Respond to a request of at most `most` bytes with a value that msgspec encodes, when the request's turn comes.

    The caller must have the right to see the pods that the request names. A pod that they may not see is unknown by its
    uid, so that the response does not say whether any namespace has it. Other pod names are hidden.
    """
    try:
        body = await body_of(request, most, "KINDRED_MAX_BODY_BYTES")
        sees: Sees | None = None
        if not sight.is_full:
            async with explainer.turn():
                asked = explainer.namespaces_of(decode_explain_request(body, explainer.mirror))
            await sight.need(asked.named)  # before the turn: the API server may be slow
            visible = await sight.of((*asked.named, *asked.of_uids))
            sees = None if visible.namespaces is None else visible
        async with explainer.turn():
            told = await answer(decode_explain_request(body, explainer.mirror), sees)
        return await shown(told, sight)
    except NotVisibleError as error:
        return problem(error.status, f"pod: {error}", "pod")
    except DecodeError as error:
        return problem(TOO_MUCH if error.field == "body" else HTTPStatus.BAD_REQUEST, str(error), error.field)
    except ExplainError as error:
        return problem(_STATUSES.get(type(error), HTTPStatus.CONFLICT), str(error), error.field)


async def body_of(request: Request, most: int, limit: str = "") -> bytes:
    """Read the body of a request. Raises DecodeError of the field `body` that names the limit."""
    body = RequestBody(most)
    await body.read(request.scope, request.receive)
    if body.is_too_large:
        raise DecodeError("body", f"larger than {most} bytes" + (f" ({limit})" if limit else ""))
    return bytes(body.content)


def problem(status: HTTPStatus, text: str, field: str) -> Response:
    """Return the error response."""
    return JsonResponse(ExplainProblem(text, field), status)
