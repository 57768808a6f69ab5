"""Options of all connections to the API server: their number, their time, and the detection of dead ones."""

import socket
from typing import Final

MAX_CONNECTIONS: Final = 64
"""10 watches and their lists, with headroom. At the limit, requests wait, so a connection leak shows as slow requests.
POSTs have a limit of their own, with the same number."""
IDLE_SECONDS: Final = 30.0
"""Time for which an unused connection is kept. Servers and load balancers keep it longer."""


def keepalive_options() -> list[tuple[int, int, int]]:
    """Return the socket options that detect a dead peer within a minute, as far as the system supports them."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
