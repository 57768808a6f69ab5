"""The page of the admin port: files of app/admin/web, read once. The files contain no data of the cluster."""

from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import Final, NamedTuple

from fastapi import APIRouter, HTTPException, Response

_SCRIPT, _STYLE, _IMAGE = "text/javascript; charset=utf-8", "text/css; charset=utf-8", "image/svg+xml"
_TYPES: Final[Mapping[str, str]] = {"js": _SCRIPT, "css": _STYLE, "svg": _IMAGE}
_FOLDER: Final = resources.files("app.admin") / "web"
_FILES: Final = sorted(each.name for each in _FOLDER.iterdir() if each.name.rpartition(".")[2] in _TYPES)
OPEN_PATHS: Final = frozenset({"/", *(f"/page/{name}" for name in _FILES)})
"""Files that browsers must be able to load before they have a token."""
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class _File(NamedTuple):
    content: bytes
    media_type: str


def page_router() -> APIRouter:
    """Return the routes of the page."""
    router = APIRouter()
    files = {name: _File((_FOLDER / name).read_bytes(), _TYPES[name.rpartition(".")[2]]) for name in _FILES}
    page = _File((_FOLDER / "index.html").read_bytes(), "text/html; charset=utf-8")

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index() -> Response:
        return _answer(page)

    @router.api_route("/page/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in files:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"{name}: no file of the page")
        return _answer(files[name])

    return router


def _answer(file: _File) -> Response:
    return Response(file.content, media_type=file.media_type, headers=_HEADERS)
