"""The server of a port: uvicorn with our own protocol (port.py) and listener. No other module imports uvicorn.

uvicorn calls the app's lifespan, sets the date of responses, and waits for requests in progress at the end.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn

from app.api_server.tls import openssl_reason
from app.server.connections import Connections, Peer, RejectReason
from app.server.port import Connection
from app.server.ports import Port

log = logging.getLogger(__name__)

_NOT_HERE: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}  # localhost may resolve to ::1 without IPv6 on the machine
_FAILED: Final = 1
_PAUSE: Final = 0.1  # seconds until the next attempt, after the process ran out of file descriptors


class Listener:
    """Accepts the connections of one port, in place of an asyncio.Server. uvicorn calls `close` and `wait_closed`.

    It limits their number from the first byte on, and the time of the handshake. The event loop gives a client a minute
    for the TLS handshake, counts no client before its end, and reports no rejected client.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Begin to accept connections, on the running loop."""
        self.sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._make_protocol = make_protocol
        self._connections = connections
        timeout = connections.limits.read_timeout
        self._tls: dict[str, Any] = (
            {"ssl": tls, "ssl_handshake_timeout": timeout, "ssl_shutdown_timeout": timeout} if tls is not None else {}
        )
        self._beginning: dict[asyncio.Protocol, asyncio.Task[None]] = {}
        self._closed = False
        self._accepting = [asyncio.create_task(self._accept(each)) for each in sockets]

    def close(self) -> None:
        """Stop accepting, and end all handshakes. The server closes the connections that are established.

        A connection without TLS that was just accepted is established within a moment, and closed then. If its task
        were cancelled in that moment, uvloop would free the connection without a call to the protocol. The server then
        waited for the connection for the whole grace period, and a leader held its Lease for as long.
        """
        self._closed = True
        for task in self._accepting:
            task.cancel()
        if self._tls:
            self._loop.call_soon(self._end_handshakes)  # a task that has not taken its first step would keep the socket

    def _end_handshakes(self) -> None:
        for protocol, task in self._beginning.items():
            if protocol in self._connections.beginning:
                task.cancel()

    async def wait_closed(self) -> None:
        """Wait until no socket listens."""
        await asyncio.gather(*self._accepting, *self._beginning.values(), return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            while True:
                try:
                    self._admit(*await self._loop.sock_accept(listening))
                except OSError as error:  # the client has disconnected already, or there are too many open files
                    log.debug("%s port: accept: %s", self._connections.port, error.strerror)
                    await asyncio.sleep(_PAUSE if error.errno in {errno.EMFILE, errno.ENFILE} else 0)
                    continue
                await asyncio.sleep(0)  # a flood of connections must not hold the loop

    def _admit(self, connection: socket.socket, address: Any) -> None:  # noqa: ANN401  # its form is the family's
        # Not in the accepting loop: its variables would keep the last connection, with its buffers, alive.
        peer = (address[0], address[1])
        if self._connections.is_full:
            connection.close()
            self._connections.refuse(RejectReason.TOO_MANY, peer)
            return
        protocol = self._make_protocol()
        self._connections.beginning.add(protocol)
        task = self._beginning[protocol] = self._loop.create_task(self._begin(connection, protocol, peer))
        task.add_done_callback(lambda _: self._beginning.pop(protocol))

    async def _begin(self, connection: socket.socket, protocol: asyncio.Protocol, peer: Peer) -> None:
        """Do the TLS handshake, if the port has TLS, and hand the connection to the protocol."""
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, connection, **self._tls)
            if self._closed:
                transport.close()
        except ssl.SSLError as error:
            self._connections.refuse(RejectReason.HANDSHAKE, peer, openssl_reason(error))
        except OSError as error:
            # The client sent nothing, or disconnected. Mostly it is a TCP probe of the port, every few seconds.
            self._connections.rejected[RejectReason.HANDSHAKE] += 1
            log.debug("%s port: %s: no handshake: %s", self._connections.port, peer, error)
        finally:
            self._connections.beginning.discard(protocol)


async def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listen on all addresses of a host. Raises OSError that names the address."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
        try:
            sockets.append(_listening(family, address, backlog))
        except OSError as error:
            if problem is None or problem.errno in _NOT_HERE:
                problem = error
        if port == 0 and sockets:  # port 0: the first socket chose the port, the others use the same
            return sockets
    if problem is not None and (not sockets or problem.errno not in _NOT_HERE):
        for each in sockets:
            each.close()
        reason = os.strerror(problem.errno).lower() if problem.errno else str(problem)
        raise OSError(problem.errno, f"cannot listen on {host} port {port}: {reason}")
    return sockets


def _listening(family: int, address: Any, backlog: int) -> socket.socket:  # noqa: ANN401  # its form is the family's
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has its own socket
        opened.bind(address)
        opened.listen(backlog)
        opened.settimeout(0)
    except OSError:
        opened.close()
        raise
    return opened


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
