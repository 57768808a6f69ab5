"""The caller of a request, by its headers: a token of the API server, or the user that a trusted proxy names."""

from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

from fastapi import HTTPException
from starlette.datastructures import Headers

from app.api_server.access_reviews import Caller, ProxiedCaller, TokenCaller
from app.api_server.login import bearer

CALLER_HEADER: Final = "Kindred-Caller-Token"
"""Has the caller's own token of the API server. Not `Authorization`, which the API server's proxy removes."""
_USER: Final = "X-Remote-User"
_UID: Final = "X-Remote-Uid"
_GROUP: Final = "X-Remote-Group"
_EXTRA: Final = "x-remote-extra-"


def caller_of(headers: Headers, *, is_proxied: bool) -> Caller | None:
    """Return the caller, or None if the request names none. Raises HTTPException for malformed headers.

    Headers of a proxy count only if `is_proxied`. They are the headers of the API server's front proxy:
    k8s.io/apiserver pkg/authentication/request/headerrequest/requestheader.go.
    """
    user = _one(headers, _USER) if is_proxied else ""
    if user:
        groups = tuple(_text(_GROUP, value) for value in headers.getlist(_GROUP))
        return ProxiedCaller(user, _one(headers, _UID), groups, _extra(headers))
    token = _one(headers, CALLER_HEADER)
    if not token:
        return None
    try:
        bearer(token)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{CALLER_HEADER}: {error}") from None
    return TokenCaller(token)


def _one(headers: Headers, name: str) -> str:
    given = headers.getlist(name)
    if len(given) > 1:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{name}: given {len(given)} times")
    return _text(name, given[0]).strip() if given else ""


def _extra(headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in headers.items():
        if name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA))
            found[key] = (*found.get(key, ()), _text(name, value))
    return (*found.items(),)


def _text(name: str, value: str) -> str:
    """Return the text of a header, which Go writes as UTF-8."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"{name}: not UTF-8") from None
