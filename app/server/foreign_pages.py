"""Guards against foreign web pages. A browser lets them send requests to its own machine, where no token is needed."""

import re
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.connections import Connections, Refusal
from app.server.open_paths import is_open

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
            status, reason, detail = HTTPStatus.MISDIRECTED_REQUEST, Refusal.HOST, f"Host {foreign[0]!r}: {rule}"
        elif not is_open(scope, self._open_paths) and (told := _foreign_site(headers, hosts)):
            status, reason = HTTPStatus.FORBIDDEN, Refusal.CROSS_SITE
            detail = f"{told}: the admin port serves no page of another site"
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
