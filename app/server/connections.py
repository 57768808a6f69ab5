"""The connections of one port: their number, their time limits, and counts of rejected ones."""

import asyncio
import logging
from collections import Counter
from enum import Enum
from typing import Final, Protocol

from app.limits import Limits
from app.line_rate import LIMIT, LineLimit
from app.logs import one_line

log = logging.getLogger(__name__)

Peer = tuple[str, int] | None
_LIMIT: Final = LineLimit(("port", "reason"), 1)
"""Any client of a port can cause these lines, also one that may not send a request."""


class Refusal(Enum):
    """Why a connection was rejected, or closed early. Also the values of the label `reason`."""

    TOO_MANY = "too_many_connections"
    HANDSHAKE = "tls_handshake"
    CLIENT_NAME = "client_name"
    MALFORMED = "malformed_request"
    LARGE_HEAD = "large_head"
    LARGE_BODY = "large_body"
    SLOW_REQUEST = "slow_request"
    ANSWER_NOT_TAKEN = "answer_not_taken"
    UNAUTHORIZED = "unauthorized"
    READ_ONLY = "read_only_token"
    HOST = "foreign_host"
    CROSS_SITE = "cross_site"


class Expiring(Protocol):
    """A connection with a deadline."""

    deadline: float
    """Time of the event loop's clock after which `expire` must be called."""

    def expire(self, now: float) -> None:
        """Apply the deadline that has passed."""


class Connections:
    """The state of a port."""

    def __init__(self, port: str, limits: Limits, client_names: frozenset[str] = frozenset()) -> None:
        """`port` is the name for messages and metrics. `client_names`, if any: allowed names of client certificates."""
        self.port: Final = port
        self.limits: Final = limits
        self.client_names: Final = client_names
        self.connections: Final[set[Expiring]] = set()
        self.beginning: Final[set[asyncio.Protocol]] = set()
        """Connections in the TLS handshake."""
        self.refused: Counter[Refusal] = Counter(dict.fromkeys(Refusal, 0))

    @property
    def open(self) -> int:
        """Number of connections."""
        return len(self.connections) + len(self.beginning)

    @property
    def is_full(self) -> bool:
        """Return whether a further connection must be closed at once."""
        return self.open >= self.limits.max_connections

    def refuse(self, reason: Refusal, peer: Peer, detail: str = "") -> None:
        """Count a rejected connection. Of many with the same reason, only few are logged."""
        self.refused[reason] += 1
        who = peer[0] if peer else "a client"
        said = reason.value.replace("_", " ")
        because = f"{said}: {one_line(detail)}" if detail else said
        fields = {"port": self.port, "reason": reason.value, LIMIT: _LIMIT}
        log.warning("%s port: rejected %s: %s", self.port, who, because, extra=fields)

    async def watch(self) -> None:
        """End connections past their deadline, until cancelled.

        A regular check of all connections costs less than a timer for each request.
        """
        loop = asyncio.get_running_loop()
        pause = min(1.0, self.limits.read_timeout / 4)
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            for connection in [each for each in self.connections if each.deadline < now]:
                connection.expire(now)
