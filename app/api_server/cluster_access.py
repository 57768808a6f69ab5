"""The address of one API server and the login for it, from any kind of configuration."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from app.api_server.credential_errors import ConfigurationError
from app.api_server.tls_context import TlsSettings

_HOST: Final = re.compile(r"[\w.~:-]+")


class ClusterAccess(msgspec.Struct, frozen=True):
    """An API server, its trusted certificates, and the login."""

    source: str
    """The configuration, for people."""
    server: str
    """Base URL, without a slash at the end."""
    tls: TlsSettings | None = None
    """None: plain HTTP, and no login."""
    authorization: str = ""
    """The Authorization header. Empty: none."""
    renew_at: float | None = None
    """Time at which the login must be renewed, in seconds of the wall clock. None: it does not expire."""
    proxy: str | None = None
    """URL of the proxy to go through."""
    namespace: str = ""
    """The namespace that the configuration names. Empty if it names none."""


def checked_url(where: str, url: str) -> str:
    """Return the base URL of an API server, without a slash at the end. Raises ConfigurationError."""
    if not url:
        raise ConfigurationError(f"{where}: required")
    parsed = _parsed(url)
    if parsed is None:
        raise ConfigurationError(f"{where}: {url!r} is not a URL that begins with http:// or https://")
    if parsed.username is not None or parsed.query or parsed.fragment:
        raise ConfigurationError(f"{where}: more than scheme, host, port and path")  # not shown: may have a password
    return parsed.geturl().rstrip("/")


def checked_proxy(where: str, url: str) -> str:
    """Return the URL of a proxy. Raises ConfigurationError."""
    if _parsed(url) is None:
        text = "is not a proxy that begins with http:// or https://"
        raise ConfigurationError(f"{where}: the URL {text}")  # not shown: may have a password
    return url


def _parsed(url: str) -> SplitResult | None:
    """Return the parts of a URL with http or https and a host. None: it is not one."""
    try:
        parsed = urlsplit(url)
        parsed.port  # noqa: B018  # raises ValueError for a port that is not one
    except ValueError:
        return None
    is_one = parsed.scheme in {"http", "https"} and _HOST.fullmatch(parsed.hostname or "")
    return parsed if is_one else None
