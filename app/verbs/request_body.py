"""The body of a request, collected as it arrives. At most the allowed size is held."""

from typing import Final, Protocol

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from app.objects.limits import Body

DRAINED_BODIES: Final = 4
"""Up to this multiple of the largest body is read and discarded, so that a client that writes before it reads gets its
response. After that the connection is closed."""


class ByteBudget(Protocol):
    """The bytes that all requests may hold together."""

    def hold(self, size: int) -> bool:
        """Count further bytes. Return whether the sum is within the limit."""

    def release(self, size: int) -> None:
        """Subtract bytes that were released."""


class _Unlimited:
    def hold(self, _: int) -> bool:
        return True

    def release(self, _: int) -> None:
        """Nothing is counted."""


UNLIMITED: Final[ByteBudget] = _Unlimited()


class RequestBody:
    """Collects the pieces of a body. Once the body is too large, or the budget is spent, it holds none of them."""

    __slots__ = ("_budget", "_drained", "_held", "_max_bytes", "content", "is_over_budget", "is_too_large", "size")

    content: Body
    """The held bytes of the body."""

    def __init__(self, max_bytes: int, budget: ByteBudget = UNLIMITED, drained_bodies: int = DRAINED_BODIES) -> None:
        """Allow a body of `max_bytes`. A larger body is read and discarded up to `drained_bodies` times that size."""
        self.content = b""
        self.size = 0
        """Bytes received, held or not."""
        self.is_too_large = False
        """Whether the body is larger than allowed."""
        self.is_over_budget = False
        """Whether the budget was spent when the body arrived."""
        self._max_bytes = max_bytes
        self._budget = budget
        self._drained = drained_bodies * max_bytes
        self._held = 0

    def add(self, piece: bytes) -> bool:
        """Add a piece. Return False if the body is so large that reading must stop."""
        self.size += len(piece)
        if self.size > self._max_bytes:
            self.is_too_large = True
            self.release()
            return self.size <= self._drained
        if self.hold(len(piece)):
            # Not a list of pieces: a body in chunks of one byte would take 40 times its size.
            content = self.content
            if not content:
                self.content = piece
            elif isinstance(content, bytearray):
                content += piece
            else:
                self.content = bytearray(content) + piece
        return True

    def hold(self, size: int) -> bool:
        """Count received bytes. Return whether they may be held. After the first False, no piece is held."""
        if not self.is_over_budget:
            self._held += size
            if not self._budget.hold(size):
                self.is_over_budget = True
                self.release()
        return not self.is_over_budget

    def release(self) -> None:
        """Release the body."""
        self._budget.release(self._held)
        self._held = 0
        self.content = b""


async def read_body(receive: Receive, body: RequestBody) -> None:
    """Read the body of a request by ASGI, to its end or until `add` returns False. Raises ClientDisconnect."""
    more = True
    while more:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = body.add(message.get("body", b"")) and message.get("more_body", False)
