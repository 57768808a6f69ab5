"""The body of a request, gathered as it comes in: at most the allowed size is ever held."""

from typing import Final, Protocol

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from app.objects.limits import Body

DRAINED_BODIES: Final = 4
"""This many times the largest body is read and discarded, so that a client which writes before it reads gets its
response; after that the connection is closed."""


class ByteBudget(Protocol):
    """The bytes that all requests may hold together."""

    def hold(self, size: int) -> bool:
        """Count bytes that are held from now on; return whether they are within the limit."""

    def release(self, size: int) -> None:
        """Take note of bytes that are held no longer."""


class _Unlimited:
    def hold(self, _: int) -> bool:
        return True

    def release(self, _: int) -> None:
        """Nothing is counted."""


UNLIMITED: Final[ByteBudget] = _Unlimited()


class RequestBody:
    """Takes pieces; once the body is too large, or the budget is spent, it holds none of them."""

    __slots__ = ("_budget", "_drained", "_held", "_max_bytes", "content", "is_over_budget", "is_too_large", "size")

    content: Body
    """The bytes of it that are held."""

    def __init__(self, max_bytes: int, budget: ByteBudget = UNLIMITED, drained_bodies: int = DRAINED_BODIES) -> None:
        """Allow a body of `max_bytes`; a larger one is read on up to so many times that."""
        self.content = b""
        self.size = 0
        """Bytes that came, held or not."""
        self.is_too_large = False
        """Whether it is larger than allowed."""
        self.is_over_budget = False
        """Whether it came when the budget was spent."""
        self._max_bytes = max_bytes
        self._budget = budget
        self._drained = drained_bodies * max_bytes
        self._held = 0

    def add(self, piece: bytes) -> bool:
        """Take in a piece; return False if the body is so large by now that it is not to be read on."""
        self.size += len(piece)
        if self.size > self._max_bytes:
            self.is_too_large = True
            self.release()
            return self.size <= self._drained
        if self.hold(len(piece)):
            # Not a list of pieces: a body in chunks of one byte would weigh 40 times its size.
            content = self.content
            if not content:
                self.content = piece
            elif isinstance(content, bytearray):
                content += piece
            else:
                self.content = bytearray(content) + piece
        return True

    def hold(self, size: int) -> bool:
        """Count received bytes; return whether they may be kept. Once they may not, none of this body may."""
        if not self.is_over_budget:
            self._held += size
            if not self._budget.hold(size):
                self.is_over_budget = True
                self.release()
        return not self.is_over_budget

    def release(self) -> None:
        """Hold it no longer."""
        self._budget.release(self._held)
        self._held = 0
        self.content = b""


async def read_body(receive: Receive, body: RequestBody) -> None:
    """Read the body of a request by ASGI, to its end or as far as it is to be read. Raises ClientDisconnect."""
    more = True
    while more:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        more = body.add(message.get("body", b"")) and message.get("more_body", False)
