"""Who may use the admin port: the bearer of the token, or whoever shows a certificate of the admins' authorities."""

import asyncio
import hmac
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api_server.credential_errors import ConfigurationError
from app.server.connections import Connections, Refusal
from app.server.tls.peer import CLIENT_NAMES
from app.server.tls.reloaded import LOOKS_EVERY

log = logging.getLogger(__name__)

_AUTHORIZATION: Final = b"authorization"


class AdminToken:
    """The text of a file, read again when it changes. An empty file is nobody's token."""

    def __init__(self, file: Path, pause: float = LOOKS_EVERY) -> None:
        """Read the file. Raises ConfigurationError."""
        self._file = file
        self._pause = pause
        self._problem = ""
        self._token = self._read()

    def is_borne(self, given: bytes) -> bool:
        """Tell whether this is the token, in a time that does not tell how much of it is right."""
        return bool(self._token) and hmac.compare_digest(given, self._token)

    async def run(self) -> None:
        """Follow the file until cancelled. While it cannot be read, what was read before holds."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                token = await asyncio.to_thread(self._read)  # a disk that hangs must not hold the loop
                self._problem = ""
            except ConfigurationError as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    log.error("admin port: %s; going on with what was read before", error)  # noqa: TRY400  # all there is
            else:
                if token != self._token:
                    self._token = token
                    log.info("admin port: %s", "the token was read anew" if token else "the token is empty: nobody's")

    def _read(self) -> bytes:
        try:
            return self._file.read_bytes().strip()
        except OSError as error:
            raise ConfigurationError(f"KINDRED_ADMIN_TOKEN_FILE: token {self._file}: {error.strerror}") from None


class AdminAuthentication:
    """Lets requests through to an app that prove who they are from; any one proof is enough."""

    def __init__(
        self,
        app: ASGIApp,
        connections: Connections,
        token: AdminToken | None,
        *,
        with_certificate: bool,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        """Take the token, if there is one; `with_certificate`: a client certificate is a proof.

        Anybody may get the paths that are open: a browser needs the page before anybody can give it a token.
        """
        self._app = app
        self._connections = connections
        self._token = token
        self._with_certificate = with_certificate
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "lifespan" or self._knows(scope):
            await self._app(scope, receive, send)
            return
        self._connections.refuse(Refusal.UNAUTHORIZED, scope.get("client"))
        proofs = [*(["a bearer token"] if self._token else []), *(["a certificate"] if self._with_certificate else [])]
        refusal = JSONResponse(
            {"detail": f"the admin port needs {' or '.join(proofs)}"},
            HTTPStatus.UNAUTHORIZED,
            {"www-authenticate": 'Bearer realm="kindred"', "connection": "close"},
        )
        await refusal(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        if scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] in self._open_paths:
            return True
        if self._with_certificate and CLIENT_NAMES in scope.get("state", {}):
            return True
        given = [value for name, value in scope["headers"] if name == _AUTHORIZATION]
        if self._token is None or len(given) != 1:
            return False
        scheme, _, credentials = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and self._token.is_borne(credentials.strip())
