"""The body of a request, collected as it arrives. At most the allowed size is held."""

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from app.objects.limits import Body
from app.verbs.admission import Admission


class RequestBody:
    """Collects the pieces of a body. Once the body is too large, or the budget is spent, it holds none of them."""

    __slots__ = (
        "_budget",
        "_held",
        "_most",
        "content",
        "is_over_budget",
        "is_too_large",
        "size",
    )

    content: Body
    """The held bytes of the body."""

    def __init__(self, most: int, budget: Admission | None = None) -> None:
        """Allow a body of `most` bytes. `budget`: counts the bytes that all requests hold, and limits them."""
        self.content = b""
        self.size = 0
        """Bytes received, held or not."""
        self.is_too_large = False
        """Whether the body is larger than allowed."""
        self.is_over_budget = False
        """Whether the budget was spent when the body arrived."""
        self._most = most
        self._budget = budget
        self._held = 0

    async def read(self, scope: Scope, receive: Receive) -> None:
        """Read the body by ASGI, unless its Content-Length is too large already. Raises ClientDisconnect."""
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > self._most:
                self.is_too_large = True
                return
        more = True
        while more and not self.is_too_large:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self.add(message.get("body", b""))
            more = message.get("more_body", False)

    def add(self, piece: Body) -> None:
        """Add a piece."""
        self.size += len(piece)
        if self.size > self._most:
            self.is_too_large = True
            self.release()
            return
        if self._budget is not None and not self.is_over_budget:
            self._held += len(piece)
            self.is_over_budget = not self._budget.hold(len(piece))
        if self.is_over_budget:
            self.release()
        # Not a list of pieces: a body in pieces of one byte would take 40 times its size.
        elif not self.content:
            self.content = piece
        elif isinstance(self.content, bytearray):
            self.content += piece
        else:
            self.content = bytearray(self.content) + piece

    def release(self) -> None:
        """Release the body."""
        if self._budget is not None and self._held:
            self._budget.release(self._held)
            self._held = 0
        self.content = b""
