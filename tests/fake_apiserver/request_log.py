"""The log of requests to the fake API server, so that tests can limit their number."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.fake_apiserver.faults import Kind


@dataclass(slots=True, eq=False)
class LoggedRequest:
    """One request. `time` is monotonic, in seconds. `status` 0: no response has begun."""

    path: str
    kind: Kind
    query: Mapping[str, str]
    headers: Mapping[str, str]
    time: float
    body: bytes = b""
    status: int = 0
    events: int = 0  # sent lines of a watch
    ended: bool = False


class RequestLog:
    """All requests, the oldest first."""

    def __init__(self) -> None:
        self._requests: list[LoggedRequest] = []
        self._news = asyncio.Event()
        self.connections = 0  # accepted connections, also if closed at once

    def add(self, request: LoggedRequest) -> None:
        """Log a received request."""
        self._requests.append(request)
        self.changed()

    def changed(self) -> None:
        """Wake all waiting calls of `until`."""
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
        """Drop all logged requests."""
        self._requests.clear()

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition. It is checked after every request, response and event. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()
