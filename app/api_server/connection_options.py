"""Options of all connections to the API server: their number, their time, and the detection of dead ones."""

import socket
from typing import Final

MAX_CONNECTIONS: Final = 64
"""10 watches and their lists, with headroom. At the limit, requests wait, so a connection leak shows as slow requests.
POSTs have as many of their own."""
IDLE_SECONDS: Final = 30.0
"""How long an unused connection is kept: less than servers and balancers do."""


def keepalive_options() -> list[tuple[int, int, int]]:
    """Return the options that find a dead peer within a minute, in seconds, where the system has them."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
