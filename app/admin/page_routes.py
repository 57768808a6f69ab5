"""The page of the admin port: files of app/admin/web, read once. The files contain no data of the cluster."""

from collections.abc import Mapping
from http import HTTPStatus
from importlib import resources
from typing import Final

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


def page_router() -> APIRouter:
    """Return the routes of the page."""
    router = APIRouter()
    content = {name: (_FOLDER / name).read_bytes() for name in ("index.html", *_FILES)}

    def respond(name: str, media_type: str) -> Response:
        return Response(content[name], media_type=media_type, headers=_HEADERS)

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index() -> Response:
        return respond("index.html", "text/html; charset=utf-8")

    @router.api_route("/page/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def part(name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"{name}: no file of the page")
        return respond(name, _TYPES[name.rpartition(".")[2]])

    return router
