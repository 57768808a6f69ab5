"""The bodies of the requests in progress on one port: they take no more memory together than the largest one alone.

512 connections with 64 MiB each would end the service. The queue of the verbs counts theirs (app/verbs/admission.py).
"""

from http import HTTPStatus

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class BodyLimit:
    """Passes requests to an app while their bodies together are within a limit. Others get 503 at once."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        """`most` is in bytes. The app rejects a larger body itself, before it is read."""
        self._app = app
        self._most = most
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI). What a body will take counts from its head on: each one has a length."""
        length = sum(int(value) for name, value in scope.get("headers", ()) if name == b"content-length")
        size = length if length <= self._most else 0
        if size and self._in_progress + size > self._most:
            detail = f"body: the requests in progress take more than {self._most} bytes: try again"
            headers = {"connection": "close"}
            await JSONResponse({"detail": detail}, HTTPStatus.SERVICE_UNAVAILABLE, headers)(scope, receive, send)
            return
        self._in_progress += size
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= size
