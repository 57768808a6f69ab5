"""The connections of one port: their number, what they may read, and the reasons to reject one."""

import asyncio
import logging
from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Final

from app.process.logs import LIMIT, LineLimit, one_line
from app.server.exchange import KnownHeads
from app.settings.limits import Limits

if TYPE_CHECKING:
    from app.server.port import Connection

log = logging.getLogger(__name__)

Peer = tuple[str, int] | None
_LIMIT: Final = LineLimit(("port", "reason"), 1)
"""Any client of a port can cause these lines, also one that may not send a request."""
_HEADS_IN_A_ROUND: Final = 32 * 1024
"""Bytes of heads that the connections of a port read in one round of the event loop: 3 to 8 ms of the shortest headers,
and enough for 100 ordinary heads. Without this bound, 400 clients with large heads held the loop for a second."""


class RejectReason(Enum):
    """Why a connection was rejected, or closed early. Also the values of the label `reason`."""

    TOO_MANY = "too_many_connections"
    HANDSHAKE = "tls_handshake"
    CLIENT_NAME = "client_name"
    MALFORMED = "malformed_request"
    LARGE_HEAD = "large_head"
    LARGE_BODY = "large_body"
    SLOW_REQUEST = "slow_request"
    RESPONSE_NOT_READ = "answer_not_taken"
    UNAUTHORIZED = "unauthorized"
    HOST = "foreign_host"
    CROSS_SITE = "cross_site"


class Connections:
    """The connections of one port: their number, their time limits, and counts of rejected ones."""

    def __init__(self, port: str, limits: Limits, client_names: frozenset[str] = frozenset()) -> None:
        """`port` is the name for messages and metrics. `client_names`, if any: allowed names of client certificates."""
        self.port: Final = port
        self.limits: Final = limits
        self.client_names: Final = client_names
        self.connections: Final[set[Connection]] = set()
        self.beginning: Final[set[asyncio.Protocol]] = set()
        """Connections in the TLS handshake."""
        self.heads: Final = KnownHeads()
        self.rejected: Counter[RejectReason] = Counter(dict.fromkeys(RejectReason, 0))
        self._left = _HEADS_IN_A_ROUND
        self._waiting: dict[Connection, None] = {}  # in the order in which they came

    @property
    def open(self) -> int:
        """Number of connections."""
        return len(self.connections) + len(self.beginning)

    @property
    def is_full(self) -> bool:
        """Return whether a further connection must be closed at once."""
        return self.open >= self.limits.max_connections

    def refuse(self, reason: RejectReason, peer: Peer, detail: str = "") -> None:
        """Count a rejected connection. Of many with the same reason, only few are logged."""
        self.rejected[reason] += 1
        who = peer[0] if peer else "a client"
        text = reason.value.replace("_", " ")
        because = f"{text}: {one_line(detail)}" if detail else text
        fields = {"port": self.port, "reason": reason.value, LIMIT: _LIMIT}
        log.warning("%s port: rejected %s: %s", self.port, who, because, extra=fields)

    def may_read(self, connection: "Connection") -> bool:
        """Return whether a connection may read a head in this round of the event loop.

        If not, its `read_on` is called in a later round: first come, first served.
        """
        if self._left > 0:
            return True
        self._waiting[connection] = None
        return False

    def count_read(self, size: int) -> None:
        """Count bytes of a head. An idle port counts over many rounds, which saves a callback for each request."""
        if 0 < self._left <= size:
            asyncio.get_running_loop().call_soon(self._begin_round)
        self._left -= size

    def _begin_round(self) -> None:
        self._left = _HEADS_IN_A_ROUND
        while self._waiting and self._left > 0:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            connection.read_on()

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
