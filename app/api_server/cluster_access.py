"""The address of one API server and the login for it, from any kind of configuration."""

from typing import Final

import httpx
import msgspec

from app.api_server.credential_errors import ConfigurationError
from app.api_server.login import FixedLogin, LoginSource
from app.api_server.tls_context import TlsSettings

_LAST_PORT: Final = 65535


class ClusterAccess(msgspec.Struct, frozen=True):
    """An API server, its trusted certificates, and the login."""

    source: str
    """The configuration, for people."""
    server: str
    """Base URL, without a slash at the end."""
    tls: TlsSettings | None
    """None: plain HTTP, and no login."""
    login: LoginSource = FixedLogin()
    proxy: str = ""
    """URL of the proxy that the configuration itself names."""
    namespace: str = ""
    """The namespace that the configuration names. Empty if it names none."""


def checked_url(where: str, url: str) -> str:
    """Return the base URL of an API server, without a slash at the end. Raises ConfigurationError."""
    if not url:
        raise ConfigurationError(f"{where}: required")
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{where}: {url!r} is not a URL: {error}") from None
    if parsed.scheme not in {"http", "https"} or not _is_host(parsed):
        raise ConfigurationError(f"{where}: {url!r} is not a URL that begins with http:// or https://")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise ConfigurationError(f"{where}: more than scheme, host, port and path")  # not shown: may have a password
    return str(parsed).rstrip("/")


def checked_proxy(where: str, url: str) -> str:
    """Return the URL of a proxy. Raises ConfigurationError."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{where}: not a URL: {error}") from None
    if parsed.scheme not in {"http", "https"} or not _is_host(parsed):
        shown = f"{parsed.scheme}://{parsed.host}"  # without the password that may be in it
        raise ConfigurationError(f"{where}: {shown} is not a proxy that begins with http:// or https://")
    return url


def _is_host(url: httpx.URL) -> bool:
    return bool(url.host) and "%" not in url.host and (url.port is None or url.port <= _LAST_PORT)
