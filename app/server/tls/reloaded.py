"""The TLS of a port, reloaded when its files change, so that a renewed certificate needs no restart."""

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Final

from app.api_server.credential_errors import ConfigurationError
from app.api_server.pem import TlsMaterial
from app.server.tls.server_context import ReplaceableContext, ServerTls
from app.server.tls.validity import not_after

log = logging.getLogger(__name__)

LOOKS_EVERY: Final = 5.0
"""Seconds between two checks of files that may change. kubelet updates a changed Secret within about a minute."""


class ReloadedTls:
    """The context of one port, with the last contents of its files. Open connections keep their old context."""

    def __init__(self, port: str, tls: ServerTls, wall_clock: Callable[[], float], pause: float = LOOKS_EVERY) -> None:
        """Read the files. `port` is the name for messages and metrics. Raises ConfigurationError."""
        self.port = port
        self.context: Final = ReplaceableContext(ssl.PROTOCOL_TLS_SERVER)
        self.reloads: Counter[str] = Counter({"success": 0, "failure": 0})
        """Result -> reads of changed files."""
        self._tls = tls
        self._wall_clock = wall_clock
        self._pause = pause
        self._material = tls.read()
        self._problem = ""
        self.context.current = tls.context(self._material)
        self.not_after = self._end(self._material)
        """Time at which the certificate expires, in seconds since 1970."""
        if self.not_after <= wall_clock():
            log.warning("%s: has expired; clients that verify it will reject it", tls.certificate)

    async def run(self) -> None:
        """Follow the files until cancelled. Invalid files are logged and tried again, and change nothing."""
        while True:
            await asyncio.sleep(self._pause)
            try:
                # In a thread, because a disk that hangs must not hold the loop.
                material = await asyncio.to_thread(self._tls.read)
                if material != self._material:
                    self._take(material)
                self._problem = ""
            except ConfigurationError as error:
                self._fail(str(error))

    def _take(self, material: TlsMaterial) -> None:
        context, end = self._tls.context(material), self._end(material)
        if material.certificate != self._material.certificate and end <= self._wall_clock():
            raise ConfigurationError(f"{self._tls.certificate.where}: {self._tls.certificate}: has expired")
        self.context.current, self.not_after, self._material = context, end, material
        self.reloads["success"] += 1
        log.info("%s port: reloaded certificates and authorities, for new connections", self.port)

    def _end(self, material: TlsMaterial) -> float:
        try:
            return not_after(material.certificate)
        except ValueError as error:
            source = self._tls.certificate
            raise ConfigurationError(f"{source.where}: {source}: cannot be read: {error}") from None

    def _fail(self, problem: str) -> None:
        self.reloads["failure"] += 1
        if problem != self._problem:  # log each problem once, not every few seconds
            self._problem = problem
            log.error("%s port: %s; keeping the previous version", self.port, problem)
