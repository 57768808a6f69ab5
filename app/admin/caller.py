"""The caller of a request, by their own token of the API server."""

from http import HTTPStatus
from typing import Final

from fastapi import HTTPException
from starlette.datastructures import Headers

from app.api_server.access_reviews import TokenCaller
from app.api_server.login import bearer

CALLER_HEADER: Final = "Kindred-Caller-Token"
"""Has the caller's own token of the API server. Not `Authorization`, which the API server's proxy removes."""


def caller_of(headers: Headers) -> TokenCaller | None:
    """Return the caller, or None if the request has no token of one. Raises HTTPException for a malformed header."""
    given = headers.getlist(CALLER_HEADER)
    if len(given) > 1:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{CALLER_HEADER}: given {len(given)} times")
    token = given[0].strip() if given else ""
    if not token:
        return None
    try:
        bearer(token)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{CALLER_HEADER}: {error}") from None
    return TokenCaller(token)
