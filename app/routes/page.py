"""The page of the admin port: a few files of app/web, read once. They hold nothing of the cluster."""

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import Final, NamedTuple

from fastapi import APIRouter, HTTPException, Request, Response

_SCRIPT, _STYLE, _IMAGE = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/svg+xml"
_TYPES: Final[Mapping[str, str]] = {"js": _SCRIPT, "css": _STYLE, "svg": _IMAGE}
_FILES: Final = (
    "style.css",
    "page.js",
    "api.js",
    "cluster.js",
    "details.js",
    "elements.js",
    "legend.js",
    "map.js",
    "map_layout.js",
    "question.js",
    "service.js",
    "signs.js",
    "tree.js",
    "icon.svg",
)
OPEN_PATHS: Final = frozenset({"/", *(f"/page/{name}" for name in _FILES)})
"""What browsers must be able to load before anybody can give them a token."""
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-cache",  # asked again each time, so that an upgrade is seen at once
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _File(NamedTuple):
    content: bytes
    media_type: str
    etag: str


def page_router() -> APIRouter:
    """Return the routes of the page."""
    router = APIRouter()
    folder = resources.files("app") / "web"
    files = {name: _file((folder / name).read_bytes(), _TYPES[name.rpartition(".")[2]]) for name in _FILES}
    page = _file((folder / "index.html").read_bytes(), "text/html; charset=utf-8")

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index(request: Request) -> Response:
        return _answer(page, request)

    @router.api_route("/page/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def part(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"{name}: no file of the page")
        return _answer(files[name], request)

    return router


def _file(content: bytes, media_type: str) -> _File:
    return _File(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:16]}"')


def _answer(file: _File, request: Request) -> Response:
    headers = {**_HEADERS, "ETag": file.etag}
    if file.etag in {each.strip() for each in request.headers.get("if-none-match", "").split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
