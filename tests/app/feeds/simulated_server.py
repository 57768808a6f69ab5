"""An API server without objects and without a network, for tests of who asks it when; in virtual time.

What it refuses and breaks is up to the test: `rejection`, `breaks`, `is_silent`, and `end` for watches that are open.
Bookmarks come often enough that no watch stays quiet for longer than a read may take.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from app.api_server.client import ApiClient, ApiError, ConnectionFailedError, StatusError

CONNECT_TIMEOUT: Final = 10.0
BOOKMARKS: Final = (50.0, 65.0)  # seconds between two
LATENCY: Final = (0.002, 0.03)  # seconds
SYN_RETRIES: Final = (1.0, 3.0, 7.0)  # seconds after the first try, as Linux has them
Ending = bytes | ApiError | None
"""A line that is not an event, an error, or the normal end of a watch."""


class Requested(NamedTuple):
    """A request, and whether the server was well when it came. One that is repeated with a new login counts once."""

    at: float
    path: str
    well: bool


class Watch:
    """A watch that the server has accepted."""

    def __init__(self, path: str, accepted_at: float) -> None:
        self.path = path
        self.accepted_at = accepted_at
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()


class SimulatedServer(ApiClient):
    """Answers lists and watches itself, in place of the client that would ask a server."""

    def __init__(self, chance: random.Random) -> None:  # no connections: what is inherited is not used
        self.chance = chance
        self.requested: list[Requested] = []
        self.watches: dict[Watch, None] = {}
        """In the order in which they were accepted. In a set, their addresses would decide which ends first."""
        self.rejection: Callable[[str], ApiError | None] = lambda _: None
        """Path -> the error of a request."""
        self.never: Mapping[str, ApiError] = {}
        """Path -> the error of all requests for it."""
        self.breaks = False
        """Watches end as soon as they are accepted."""
        self.is_silent = False
        """Packets to it are lost."""
        self._well = True
        self._version = 1

    def follows(self, path: str, followed_at: float) -> bool:
        """Return whether a watch stands open that has shown, by that time, that it is followed."""
        return any(
            watch.path == path and not watch.ended.done() and watch.accepted_at <= followed_at for watch in self.watches
        )

    @contextmanager
    def unwell(self) -> Iterator[None]:
        """Count what is asked in the block as asked of a server that is not well."""
        self._well = False
        try:
            yield
        finally:
            self._well = True

    def end(self, ending: Ending, path: str | None = None) -> None:
        """End the watches that are open, of a path or all."""
        for watch in self.watches:
            if path in {None, watch.path} and not watch.ended.done():
                watch.ended.set_result(ending)

    def most_requested_while_unwell(self, seconds: float) -> int:
        """Return how many requests came at most within so many seconds while it was not well."""
        times = [requested.at for requested in self.requested if not requested.well]
        return max((sum(at - seconds < other <= at for other in times) for at in times), default=0)

    async def get(self, path: str, _params: Mapping[str, str], _most: int = 0) -> bytes:
        """Return an empty list."""
        await self._ask(path)
        return msgspec.json.encode({"metadata": {"resourceVersion": self._next_version()}, "items": []})

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch."""
        await self._ask(path)
        watch = Watch(path, asyncio.get_running_loop().time())
        self.watches[watch] = None
        if self.breaks:
            self.end(None, path)
        try:
            yield self._lines(watch, params)
        finally:
            del self.watches[watch]

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    async def _lines(self, watch: Watch, params: Mapping[str, str]) -> AsyncIterator[bytes]:
        deadline = watch.accepted_at + float(params["timeoutSeconds"])
        if "sendInitialEvents" in params and not watch.ended.done():
            yield self._bookmark({"k8s.io/initial-events-end": "true"})
        while not watch.ended.done():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return
            await asyncio.wait([watch.ended], timeout=min(left, self.chance.uniform(*BOOKMARKS)))
            if not watch.ended.done():
                yield self._bookmark({})
        await self._travel()
        match watch.ended.result():
            case None:
                return
            case bytes() as line:
                yield line
            case error:
                raise error

    async def _ask(self, path: str) -> None:
        self.requested.append(Requested(asyncio.get_running_loop().time(), path, self._well))
        await self._reach()
        await self._travel()
        error = self._rejection_of(path)
        if isinstance(error, StatusError) and error.code == HTTPStatus.UNAUTHORIZED:
            await self._travel()  # once more, with a new login
            error = self._rejection_of(path)
        if error is not None:
            raise error

    def _rejection_of(self, path: str) -> ApiError | None:
        return self.rejection(path) or self.never.get(path)

    async def _travel(self) -> None:
        await asyncio.sleep(self.chance.uniform(*LATENCY))

    async def _reach(self) -> None:
        waited = 0.0
        for each in SYN_RETRIES:
            if not self.is_silent:
                return
            await asyncio.sleep(each - waited)
            waited = each
        if self.is_silent:
            await asyncio.sleep(CONNECT_TIMEOUT - waited)
            raise ConnectionFailedError(f"no connection within {CONNECT_TIMEOUT:g} s", unsent=True)

    def _bookmark(self, annotations: Mapping[str, str]) -> bytes:
        metadata = {"resourceVersion": self._next_version(), "annotations": annotations}
        return msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": metadata}}) + b"\n"

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)
