"""What was asked of the fake API server, so that tests can bound it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.fake_apiserver.faults import Kind


@dataclass(slots=True, eq=False)
class LoggedRequest:
    """One request. `time` is monotonic, in seconds; `status` 0: no answer has begun (yet)."""

    path: str
    kind: Kind
    query: Mapping[str, str]
    headers: Mapping[str, str]
    time: float
    body: bytes = b""
    status: int = 0
    events: int = 0  # lines sent, of a watch
    ended: bool = False


class RequestLog:
    """All requests, the oldest first."""

    def __init__(self) -> None:
        self._requests: list[LoggedRequest] = []
        self._news = asyncio.Event()
        self.connections = 0  # accepted, those that were closed at once too

    def add(self, request: LoggedRequest) -> None:
        """Log a request that has come in."""
        self._requests.append(request)
        self.changed()

    def changed(self) -> None:
        """Wake those who wait for something of the server."""
        self._news.set()

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._requests)

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, index: int) -> LoggedRequest:
        return self._requests[index]

    def of(self, path: str | None = None, *kinds: Kind) -> list[LoggedRequest]:
        """Return the requests of a path (None: any) and of some kinds (none: any)."""
        return [
            request
            for request in self._requests
            if path in {None, request.path} and (not kinds or request.kind in kinds)
        ]

    def clear(self) -> None:
        """Forget all requests so far."""
        self._requests.clear()

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition that is asked after every request, answer and event. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()
