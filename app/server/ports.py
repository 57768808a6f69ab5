"""The ports of a service: the app, the address and the clients of each."""

import logging
import time
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from fastapi import FastAPI
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.auth import AdminAuthentication, AdminToken, ForeignPages
from app.server.connections import Connections
from app.server.process import Background
from app.server.tls import ReloadedTls, server_tls
from app.settings.limits import DEFAULTS, Limits
from app.settings.settings import Settings, effects, port_rule
from app.settings.types import split_address

log = logging.getLogger(__name__)

_SMALL_BODY: Final = 4 * 1024 * 1024
"""Bytes, for the health port. Its routes read no body."""
_ADMIN_HEADERS: Final = (
    # No data of the cluster gets on a disk, and an upgrade of the page shows at once.
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


class Port(NamedTuple):
    """An app with its address and its clients."""

    app: FastAPI
    host: str
    number: int
    connections: Connections
    tls: ReloadedTls | None
    """None: plain HTTP."""
    background: tuple[Background, ...] = ()
    """The tasks that follow the files of the port."""
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every response of the port."""


def extender_port(settings: Settings, app: FastAPI, limits: Limits = DEFAULTS) -> Port:
    """Return the scheduler's port. Raises ConfigurationError."""
    if port_rule(settings, "extender").is_open and (on := effects(settings)):
        log.warning("scheduler's port: every client that reaches it can use %s", " and ".join(on))
    names = frozenset(settings.tls_client_names)
    connections = Connections("extender", limits, names)
    tls = _followed("extender", settings, clients=True)
    host, number = split_address(settings.listen)
    return Port(app, host, number, connections, tls, _runs(tls))


def health_port(settings: Settings, number: int, app: FastAPI, limits: Limits) -> Port:
    """Return the port for clients without a certificate."""
    host = split_address(settings.listen).host
    return Port(app, host, number, Connections("health", limits._replace(max_body_bytes=_SMALL_BODY)), None)


def admin_port(
    settings: Settings,
    app: FastAPI,
    limits: Limits = DEFAULTS,
    *,
    open_paths: frozenset[str] = frozenset(),
) -> Port:
    """Return the admin port. It needs authentication if other machines can reach it. Raises ConfigurationError.

    Without a token only the loopback reaches it, such as `kubectl port-forward`. That port is plain HTTP, because the
    certificate has the name of the Service, and no client would find that at 127.0.0.1.
    """
    connections = Connections("admin", limits)
    token = _token(settings.admin_token_file, "admin_token_file")
    read_token = _token(settings.admin_read_token_file, "admin_read_token_file")
    tokens = [each for each in (token, read_token) if each is not None]
    tls = _followed("admin", settings, clients=False) if tokens else None
    background = _runs(tls)
    app.add_middleware(BodyLimit, most=limits.max_body_bytes)  # first: behind the guard, so that only clients count
    if tokens:
        background = (*background, *(each.run for each in tokens))
        if tls is None:
            log.warning("admin port: without KINDRED_TLS_DIRECTORY the token goes over the network as plain text")
        app.add_middleware(
            AdminAuthentication,
            connections=connections,
            token=token,
            read_token=read_token,
            open_paths=open_paths,
        )
    else:
        # A browser sends a token with requests of Kindred's page alone. Without one, any page can send requests.
        app.add_middleware(ForeignPages, connections=connections, open_paths=open_paths)
    host, number = split_address(settings.admin)
    return Port(app, host, number, connections, tls, background, _ADMIN_HEADERS)


class BodyLimit:
    """Passes requests to an app while their bodies together are within a limit. Others get 503 at once.

    512 connections with 64 MiB each would end the service. The queue of the verbs counts theirs (verbs/admission.py).
    """

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


def _token(file: Path | None, setting: str) -> AdminToken | None:
    return None if file is None else AdminToken(file, setting=setting)


def _followed(port: str, settings: Settings, *, clients: bool) -> ReloadedTls | None:
    tls = server_tls(settings, clients=clients)
    return None if tls is None else ReloadedTls(port, tls, time.time)


def _runs(tls: ReloadedTls | None) -> tuple[Background, ...]:
    return () if tls is None else (tls.run,)
