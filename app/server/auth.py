"""Who may use the admin port: clients with a bearer token, or without one any program but no foreign web page.

There may be two tokens. One makes its bearer an admin, the other only lets them in. No route changes anything. Paths
whose responses have no data of the cluster need no token.
"""

import hmac
import logging
import re
from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api_server.tls import ConfigurationError
from app.process.files import MAX_TOKEN_BYTES, read_file
from app.server.connections import Connections, RejectReason
from app.server.tls import LOOKS_EVERY, follow
from app.settings.settings import variable_of

log = logging.getLogger(__name__)

TOKEN_HEADER: Final = "Kindred-Token"  # noqa: S105  # the name of a header
"""A second header for the token. Requests through the API server's proxy need it, because the API server uses and
removes `Authorization`."""
ADMIN: Final = "is_admin"
"""Key of the state of a request: whether the client authenticated as an admin."""
_AUTHORIZATION: Final = b"authorization"
_TOKEN: Final = TOKEN_HEADER.lower().encode()


class AdminToken:
    """The text of a file, read again when it changes. An empty file matches no token."""

    def __init__(self, file: Path, pause: float = LOOKS_EVERY, *, setting: str = "admin_token_file") -> None:
        """Read the file that the setting names. Raises ConfigurationError."""
        self._file = file
        self._variable = variable_of(setting)
        self._pause = pause
        self._token = self._read()

    def matches(self, given: bytes) -> bool:
        """Return whether `given` is the token. The time does not depend on the number of matching bytes."""
        return bool(self._token) and hmac.compare_digest(given, self._token)

    async def run(self) -> None:
        """Follow the file until cancelled. While the file cannot be read, the last token stays valid."""
        await follow("admin", self._pause, self._read, self._take, lambda: None)

    def _take(self, token: bytes) -> None:
        if token != self._token:
            self._token = token
            message = "the token was reloaded" if token else "the token is empty: it matches no request"
            log.info("admin port: %s", message)

    def _read(self) -> bytes:
        try:
            return read_file(self._file, MAX_TOKEN_BYTES).strip()
        except OSError as error:
            raise ConfigurationError(f"{self._variable}: token {self._file}: {error.strerror}") from None


class AdminAuthentication:
    """Passes authenticated requests to an app."""

    def __init__(
        self,
        app: ASGIApp,
        connections: Connections,
        token: AdminToken | None,
        *,
        read_token: AdminToken | None = None,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        """`token` makes its bearer an admin, `read_token` lets in callers who are none. `open_paths` need no token."""
        self._app = app
        self._connections = connections
        self._token = token
        self._read_token = read_token
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "lifespan" or _is_open(scope, self._open_paths):
            await self._app(scope, receive, send)
            return
        if self._is_borne(self._token, scope):
            # A state of this request alone: the requests of a connection share theirs.
            await self._app({**scope, "state": {**scope.get("state", {}), ADMIN: True}}, receive, send)
        elif self._is_borne(self._read_token, scope):
            await self._app(scope, receive, send)
        else:
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connections.refuse(RejectReason.UNAUTHORIZED, scope.get("client"))
        rejection = JSONResponse(
            {"detail": "the admin port needs a bearer token"},
            HTTPStatus.UNAUTHORIZED,
            {"www-authenticate": 'Bearer realm="kindred"', "connection": "close"},
        )
        await rejection(scope, receive, send)

    def _is_borne(self, token: AdminToken | None, scope: Scope) -> bool:
        if token is None:
            return False
        own = [value for name, value in scope["headers"] if name == _TOKEN]
        if own:
            return len(own) == 1 and token.matches(own[0].strip())
        given = [value for name, value in scope["headers"] if name == _AUTHORIZATION]
        if len(given) != 1:
            return False
        scheme, _, credentials = given[0].partition(b" ")
        return scheme.lower() == b"bearer" and token.matches(credentials.strip())


# Guards against foreign web pages. A browser lets them send requests to its own machine, where no token is needed.

_AUTHORITY: Final = re.compile(r"(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:\[\]]+))(?::\d*)?")
_OURS: Final = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site: the request comes from Kindred's page, or from a typed address."""


class ForeignPages:
    """Rejects requests that a browser sends for another site's page. Requests of other clients pass."""

    def __init__(self, app: ASGIApp, connections: Connections, *, open_paths: frozenset[str] = frozenset()) -> None:
        """`app` is the guarded app. Any page may link to `open_paths`."""
        self._app = app
        self._connections = connections
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        foreign = [host for host in hosts if not _needs_no_dns(host)]
        if foreign:
            # DNS rebinding: if an attacker's name resolves to this machine, a browser treats the attacker's page as
            # Kindred's.
            rule = "expected localhost or an IP address, because KINDRED_ADMIN_TOKEN_FILE is not set"
            # 421 rather than 403: the client may be allowed, but the name is not Kindred's.
            status, reason, detail = HTTPStatus.MISDIRECTED_REQUEST, RejectReason.HOST, f"Host {foreign[0]!r}: {rule}"
        elif not _is_open(scope, self._open_paths) and (message := _foreign_site(headers, hosts)):
            status, reason = HTTPStatus.FORBIDDEN, RejectReason.CROSS_SITE
            detail = f"{message}: the admin port serves no page of another site"
        else:
            await self._app(scope, receive, send)
            return
        self._connections.refuse(reason, scope.get("client"))
        await JSONResponse({"detail": detail}, status, {"connection": "close"})(scope, receive, send)


def _needs_no_dns(authority: str) -> bool:
    """Return whether a Host is an address or localhost, which no foreign DNS can resolve to this machine."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return False
    host = found["ipv6"] or found["host"] or ""
    if host.lower() in {"localhost", "localhost."}:
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _foreign_site(headers: Headers, hosts: list[str]) -> str:
    """Return the header that shows that a request comes from another site's page. Empty if none does.

    Browsers send Sec-Fetch-Site on the loopback and over TLS, which is wherever this port needs no token. Old browsers
    send Origin.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return "" if site in _OURS else f"Sec-Fetch-Site {site!r}"
    origin = headers.get("origin")
    if origin is None or [origin.partition("://")[2].lower()] == [host.lower() for host in hosts]:
        return ""
    return f"Origin {origin!r}"


def _is_open(scope: Scope, open_paths: Collection[str]) -> bool:
    return scope["type"] == "http" and scope["method"] in {"GET", "HEAD"} and scope["path"] in open_paths
