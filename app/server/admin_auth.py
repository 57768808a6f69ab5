"""Authentication of the admin port by a bearer token.

There may be two tokens. One allows every request, the other only requests that read.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeAlias

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api_server.credential_errors import ConfigurationError
from app.files import MAX_TOKEN_BYTES, read_file
from app.server.connections import Connections, Refusal
from app.server.open_paths import is_open
from app.server.tls.reloaded import LOOKS_EVERY
from app.settings import variable_of

log = logging.getLogger(__name__)

TOKEN_HEADER: Final = "Kindred-Token"  # noqa: S105  # the name of a header
"""A second header for the token. Requests through the API server's proxy need it, because the API server uses and
removes `Authorization`."""
ADMIN: Final = "is_admin"
"""Key of the state of a request: whether the client authenticated as an admin."""
_AUTHORIZATION: Final = b"authorization"
_TOKEN: Final = TOKEN_HEADER.lower().encode()
IsReading: TypeAlias = Callable[[str, str], bool]
"""(method, path) -> whether such a request only reads."""


class AdminToken:
    """The text of a file, read again when it changes. An empty file matches no token."""

    def __init__(self, file: Path, pause: float = LOOKS_EVERY, *, setting: str = "admin_token_file") -> None:
        """Read the file that the setting names. Raises ConfigurationError."""
        self._file = file
        self._variable = variable_of(setting)
        self._pause = pause
        self._problem = ""
        self._token = self._read()

    def is_borne(self, given: bytes) -> bool:
        """Return whether `given` is the token. The time does not depend on the number of matching bytes."""
        return bool(self._token) and hmac.compare_digest(given, self._token)

    async def run(self) -> None:
        """Follow the file until cancelled. While the file cannot be read, the last token stays valid."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                token = await asyncio.to_thread(self._read)  # a disk that hangs must not hold the loop
                self._problem = ""
            except ConfigurationError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    log.error("admin port: %s; keeping the previous version", error)  # noqa: TRY400  # all there is
            else:
                if token != self._token:
                    self._token = token
                    log.info(
                        "admin port: %s",
                        "the token was reloaded" if token else "the token is empty: it matches no request",
                    )

    def _read(self) -> bytes:
        try:
            return read_file(self._file, MAX_TOKEN_BYTES).strip()
        except OSError as error:
            raise ConfigurationError(f"{self._variable}: token {self._file}: {error.strerror}") from None


class AdminAuthentication:
    """Passes authenticated requests to an app."""

    def __init__(  # noqa: PLR0913  # two tokens, and what they open
        self,
        app: ASGIApp,
        connections: Connections,
        token: AdminToken | None,
        *,
        read_token: AdminToken | None = None,
        is_reading: IsReading = lambda _method, _path: False,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        """`token` allows every request, `read_token` only requests that read.

        `open_paths` need no token: a browser must load the page before a user can enter one.
        """
        self._app = app
        self._connections = connections
        self._token = token
        self._read_token = read_token
        self._is_reading = is_reading
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "lifespan" or is_open(scope, self._open_paths):
            await self._app(scope, receive, send)
            return
        if self._is_borne(self._token, scope):
            # A state of this request alone: the requests of a connection share theirs.
            await self._app({**scope, "state": {**scope.get("state", {}), ADMIN: True}}, receive, send)
        elif not self._is_borne(self._read_token, scope):
            await self._refuse_unknown(scope, receive, send)
        elif scope["type"] == "http" and self._is_reading(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
        else:
            await self._refuse_reader(scope, receive, send)

    async def _refuse_unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connections.refuse(Refusal.UNAUTHORIZED, scope.get("client"))
        refusal = JSONResponse(
            {"detail": "the admin port needs a bearer token"},
            HTTPStatus.UNAUTHORIZED,
            {"www-authenticate": 'Bearer realm="kindred"', "connection": "close"},
        )
        await refusal(scope, receive, send)

    async def _refuse_reader(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connections.refuse(Refusal.READ_ONLY, scope.get("client"))
        asked = f"{scope.get('method', scope['type'])} {scope['path']}"
        rule = f"{asked} needs the token of {variable_of('admin_token_file')}"
        refusal = JSONResponse(
            {"detail": f"this token may only read: {rule}"}, HTTPStatus.FORBIDDEN, {"connection": "close"}
        )
        await refusal(scope, receive, send)

    def _is_borne(self, token: AdminToken | None, scope: Scope) -> bool:
        if token is None:
            return False
        own = [value for name, value in scope["headers"] if name == _TOKEN]
        if own:
            return len(own) == 1 and token.is_borne(own[0].strip())
        given = [value for name, value in scope["headers"] if name == _AUTHORIZATION]
        if len(given) != 1:
            return False
        scheme, _, credentials = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and token.is_borne(credentials.strip())
