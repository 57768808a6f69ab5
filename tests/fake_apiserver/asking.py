"""For tests of the fake API server from a client's side: a server and an httpx client around a coroutine."""

import asyncio
import inspect
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Concatenate, Final, ParamSpec

import httpx
import msgspec

from tests.fake_apiserver.resources import PODS
from tests.fake_apiserver.server import FakeApiServer
from tests.fake_apiserver.stored import Object

P = ParamSpec("P")
Test = Callable[Concatenate[FakeApiServer, httpx.AsyncClient, P], Awaitable[None]]

_HEADERS: Final = {"Accept-Encoding": "identity"}
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # or httpx would read all certificates
PATIENCE: Final = 10.0  # seconds
FILLS_SOCKETS: Final = 16_000_000  # more bytes than the sockets of both sides buffer, so that the server must wait
WATCH_LIST: Final = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


def served(test: Test[P]) -> Callable[P, None]:
    """Make a test of a coroutine that takes a server and a client. Its other arguments are pytest's."""

    async def scenario(*args: P.args, **kwargs: P.kwargs) -> None:
        async with (
            asyncio.timeout(2 * PATIENCE),
            FakeApiServer() as server,
            httpx.AsyncClient(base_url=server.url, headers=_HEADERS, verify=_NO_TLS) as client,
        ):
            await test(server, client, *args, **kwargs)

    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(scenario(*args, **kwargs))

    run.__doc__ = test.__doc__
    signature = inspect.signature(test)
    parameters = list(signature.parameters.values())[2:]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # what pytest reads
    return run


class Watching:
    """The lines of a watch that is being read."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._chunks = response.aiter_raw()
        self._reading: asyncio.Future[bytes] | None = None
        self._rest = bytearray()
        self._whole_lines = 0  # in bytes that were read but not returned yet

    async def lines(self, count: int) -> list[bytes]:
        """Read `count` lines. Raises httpx errors, and AssertionError at the end of the stream."""
        while self._whole_lines < count:
            assert await self._read()
        *lines, self._rest = self._rest.split(b"\n", count)
        self._whole_lines -= count
        return [bytes(line) for line in lines]

    async def events(self, count: int) -> list[Object]:
        """Read `count` events."""
        return [msgspec.json.decode(line) for line in await self.lines(count)]

    async def told(self, count: int) -> list[str]:
        """Read `count` events, as `TYPE name`."""
        return [told(event) for event in await self.events(count)]

    async def rest(self) -> bytes:
        """Read everything up to the normal end."""
        while await self._read():
            pass
        return self.received

    @property
    def received(self) -> bytes:
        """Bytes that were read but not returned yet."""
        return bytes(self._rest)

    async def silent(self, seconds: float = 0.05) -> bool:
        """Return whether the stream sends nothing for a time, and does not end."""
        try:
            await asyncio.wait_for(self._read(), seconds)
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read(self) -> bytes:
        """Read a chunk. Empty at the end. After a cancellation, the next call gets the chunk."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(anext(self._chunks, b""))
        chunk = await asyncio.shield(self._reading)
        self._reading = None
        self._rest += chunk
        self._whole_lines += chunk.count(b"\n")
        return chunk


def told(event: Object) -> str:
    """Return `TYPE name` of an event, or `BOOKMARK version`, with `!` at the end of the initial events."""
    metadata = event["object"]["metadata"]
    if event["type"] != "BOOKMARK":
        return f"{event['type']} {metadata['name']}"
    return f"BOOKMARK {metadata['resourceVersion']}{'!' if metadata.get('annotations') else ''}"


@asynccontextmanager
async def watching(client: httpx.AsyncClient, path: str = PODS.path, **params: str) -> AsyncIterator[Watching]:
    """Watch a resource. `params` is the query."""
    query = {"watch": "true", **params}
    async with client.stream("GET", path, params=query, timeout=PATIENCE) as response:
        assert response.status_code == 200
        watch = Watching(response)
        try:
            yield watch
        finally:
            watch.close()


async def listed(client: httpx.AsyncClient, path: str = PODS.path, **params: str) -> Object:
    """List a resource, and return the decoded response, with any status."""
    answer: Object = (await client.get(path, params=params)).json()
    return answer


def names(page: Object) -> list[str]:
    """Return the names of the items of a page."""
    return [item["metadata"]["name"] for item in page["items"]]


def pod(name: str, phase: str = "Running") -> Object:
    """Make a v1.Pod in the default namespace."""
    return {"metadata": {"name": name}, "spec": {}, "status": {"phase": phase}}
