"""Accepts the connections of one port: as many as may be, counted from their first byte, and none that only stands.

uvicorn leaves that to the event loop, which gives a client a minute to begin TLS, counts no client before that, and
does not report rejected ones.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from app.api_server.pem import openssl_reason
from app.server.connections import Connections, Peer, Refusal

log = logging.getLogger(__name__)

_NOT_HERE: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}  # localhost stands for ::1 where there is no IPv6, too
_PAUSE: Final = 0.1  # seconds until the next attempt, where the process has no file descriptor left


class Listener:
    """Listens on sockets, in place of an asyncio.Server; uvicorn uses these two methods of it."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make_protocol: Callable[[], asyncio.Protocol],
        connections: Connections,
        tls: ssl.SSLContext | None,
    ) -> None:
        """Accept from now on, in the running loop."""
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
        """Accept no more, and let no handshake go on. Connections that are there already are the server's to close.

        One without TLS that was just accepted is there within a moment, and closed then. If its task were cancelled at
        that very moment, uvloop would free the connection without a call to the protocol. The server then waited for it
        for the whole grace period, and a leader held its Lease as long.
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
        """Wait until no socket listens any more."""
        await asyncio.gather(*self._accepting, *self._beginning.values(), return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            while True:
                try:
                    self._admit(*await self._loop.sock_accept(listening))
                except OSError as error:  # a client that has gone already, or too many open files
                    log.debug("%s port: accept: %s", self._connections.port, error.strerror)
                    await asyncio.sleep(_PAUSE if error.errno in {errno.EMFILE, errno.ENFILE} else 0)
                    continue
                await asyncio.sleep(0)  # a flood of connections must not hold the loop

    def _admit(self, connection: socket.socket, address: Any) -> None:  # noqa: ANN401  # its form is the family's
        # Not in the loop that accepts, whose variables would keep the last connection, with its buffers, for ever.
        peer = (address[0], address[1])
        if self._connections.is_full:
            connection.close()
            self._connections.refuse(Refusal.TOO_MANY, peer)
            return
        protocol = self._make_protocol()
        self._connections.beginning.add(protocol)
        task = self._beginning[protocol] = self._loop.create_task(self._begin(connection, protocol, peer))
        task.add_done_callback(lambda _: self._beginning.pop(protocol))

    async def _begin(self, connection: socket.socket, protocol: asyncio.Protocol, peer: Peer) -> None:
        """Begin TLS, if there is, and let the protocol have the connection."""
        try:
            transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, connection, **self._tls)
            if self._closed:
                transport.close()
        except ssl.SSLError as error:
            self._connections.refuse(Refusal.HANDSHAKE, peer, openssl_reason(error))
        except OSError as error:
            # A client that sends nothing, or disconnects: mostly a probe of the port, every few seconds.
            self._connections.refused[Refusal.HANDSHAKE] += 1
            log.debug("%s port: %s: no handshake: %s", self._connections.port, peer, error)
        finally:
            self._connections.beginning.discard(protocol)


async def listening_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listen on all addresses of a host. Raises OSError, whose message names the address."""
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
        if port == 0 and sockets:  # a caller that asked for any port gets one
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
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has a socket of its own
        opened.bind(address)
        opened.listen(backlog)
        opened.settimeout(0)
    except OSError:
        opened.close()
        raise
    return opened
