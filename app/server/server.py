"""The server of a port: uvicorn with Kindred's protocol (port.py) and listener. No other module imports uvicorn.

uvicorn calls the app's lifespan, sets the date of responses, and waits for requests in progress at the end.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import uvicorn

from app.server.listener import Listener, listening_sockets
from app.server.port import Connection
from app.server.ports import Port

log = logging.getLogger(__name__)

_FAILED: Final = 1


class Server(uvicorn.Server):
    """A server that leaves the signals to the process, and reports its URL once it listens."""

    def __init__(self, port: Port, on_listening: Callable[[str], None]) -> None:
        """Call `on_listening` with the URL."""
        tls = None if port.tls is None else port.tls.context
        config = uvicorn.Config(
            port.app,
            host=port.host,
            port=port.number,
            loop="auto",
            http=partial(Connection, port.app, port.connections),  # type: ignore[arg-type]  # uvicorn only calls it
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=list(port.headers),
        )
        super().__init__(config)
        self.connections: Final = port.connections
        self.server_state.connections = port.connections.connections  # type: ignore[assignment]  # of our protocol
        self.exit_status = 0
        self.closed = asyncio.Event()
        """Set when no request is in progress and no request can begin."""
        self._tls = tls
        self._on_listening = on_listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers: two servers in a process would overwrite each other's."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`. If the port cannot be opened, log it and set `exit_status`."""
        watching = asyncio.create_task(self.connections.watch())
        try:
            await super().serve(sockets)
        except SystemExit:  # uvicorn exits the process, which must not happen within a task
            self.exit_status = _FAILED
        finally:
            watching.cancel()
            self.closed.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002  # uvicorn's signature
        """Start the app and listen, in place of uvicorn: see Listener."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(_FAILED)
        config, connections = self.config, self.connections
        try:
            listening = await listening_sockets(config.host, config.port, config.backlog)
        except OSError as error:
            log.error("%s port: %s", connections.port, error.strerror)  # noqa: TRY400  # all there is to know
            await self.lifespan.shutdown()
            raise SystemExit(_FAILED) from None
        listener = Listener(listening, self._connection, connections, self._tls)
        self.servers = [listener]  # type: ignore[list-item]  # it has what uvicorn asks of an asyncio.Server
        self.started = True
        host, number = config.host, listening[0].getsockname()[1]
        scheme = "http" if self._tls is None else "https"
        self._on_listening(f"{scheme}://{f'[{host}]' if ':' in host else host}:{number}")

    def _connection(self) -> asyncio.Protocol:
        make: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
