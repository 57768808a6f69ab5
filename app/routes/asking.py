"""Questions of people over HTTP: read, answered one at a time, and what is wrong with them told by field."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec
from fastapi import Request, Response

from app.explain.explainer import Explainer
from app.explain.question import Question, decode_question
from app.explain.question_error import QuestionError, UnknownError
from app.watch.decode import DecodeError

Answer: TypeAlias = Callable[[Question], Awaitable[object]]

TOO_MUCH: Final = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class ExplainProblem(msgspec.Struct, frozen=True):
    """What is wrong with a question, in the form of FastAPI's own errors."""

    detail: str
    field: str
    """Where in the question; empty if it is the whole of it."""


async def answered(request: Request, most: int, explainer: Explainer, answer: Answer) -> Response:
    """Answer a question of at most so many bytes with a value that msgspec writes, when it is its turn."""
    try:
        body = await body_of(request, most, "KINDRED_MAX_BODY_BYTES")
        async with explainer.turn():
            told = await answer(decode_question(body, explainer.mirror))
    except DecodeError as error:
        return problem(TOO_MUCH if error.field == "body" else HTTPStatus.BAD_REQUEST, str(error), error.field)
    except QuestionError as error:
        status = HTTPStatus.NOT_FOUND if isinstance(error, UnknownError) else HTTPStatus.CONFLICT
        return problem(status, str(error), error.field)
    return Response(msgspec.json.encode(told), media_type="application/json")


async def body_of(request: Request, most: int, limit: str = "") -> bytes:
    """Read the body of a request. Raises DecodeError of the field `body`, which says what limit it is."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise DecodeError("body", f"larger than {most} bytes" + (f" ({limit})" if limit else ""))
    return bytes(body)


def problem(status: HTTPStatus, text: str, field: str) -> Response:
    """Return the answer that says what is wrong."""
    return Response(msgspec.json.encode(ExplainProblem(text, field)), status, media_type="application/json")
