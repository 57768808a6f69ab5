"""Pods that are created at a pace, and how long each waits until it is bound, as a watch shows it.

A separate process creates the pods and reads the watch, so the measuring program does not delay it. It creates each pod
when it is due, whether earlier ones are bound or not. So a scheduler that falls behind does not slow down its own load.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import msgspec

from tests.e2e.api import DELETE_AT_ONCE, Manifest
from tests.e2e.control_plane import ADMIN, ControlPlane
from tests.openssl import trusting

_CONNECTIONS: Final = 32
_ATTEMPTS: Final = 5  # of a request, while the API server is too busy
_BUSY: Final = {429, 500, 503, 504}
_JSON: Final = {"Content-Type": "application/json"}
_DELETE: Final = msgspec.json.encode(DELETE_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Pace:
    """What is created, and for how long."""

    path: str
    """The collection of the pods."""
    templates: Sequence[Manifest]
    """The pods, in turn; a number is added to their names."""
    rate: float
    """Pods a second."""
    seconds: float
    stock: int | None = None
    """Bound pods that stay: for each one more, the oldest is deleted. None: none is deleted."""
    patience: float = 0.0
    """Seconds behind the last creation in which the rest may be bound."""


class Made(NamedTuple):
    """A pod that was created. Times are seconds since the epoch."""

    name: str
    due: float
    """When it was to be created, whatever was in the way."""
    bound: float | None
    """When the watch showed its node. None: not until the end."""


def waits(made: Iterable[Made], end: float) -> list[float]:
    """Return the seconds that pods waited. One that is not bound counts as if it had been bound at `end`."""
    return [(each.bound or end) - each.due for each in made]


@contextmanager
def paced(plane: ControlPlane, pace: Pace) -> Iterator[Future[list[Made]]]:
    """Create pods while the block is carried out; the result has them in the order of their creation."""
    made_by = plane.authority
    server = _Server(plane.url, made_by.crt(), made_by.crt(ADMIN), made_by.key(ADMIN))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool.submit(_run, pace, server)


class _Server(NamedTuple):
    url: str
    authority: Path
    crt: Path
    key: Path


def _run(pace: Pace, server: _Server) -> list[Made]:
    return asyncio.run(_created(pace, server))


async def _created(pace: Pace, server: _Server) -> list[Made]:
    tls = trusting(server.authority)
    tls.load_cert_chain(server.crt, server.key)
    connector = aiohttp.TCPConnector(ssl=tls, limit=_CONNECTIONS)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(server.url, connector=connector, timeout=timeout) as session:
        creator = _Creator(session, pace)
        async with creator.watched():
            await creator.create_all()
        return creator.made()


class _Named(msgspec.Struct, gc=False):
    name: str = ""
    resourceVersion: str = ""  # noqa: N815  # the API's own


class _Pod(msgspec.Struct, gc=False):
    metadata: _Named


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Pod


class _Creator:
    def __init__(self, session: aiohttp.ClientSession, pace: Pace) -> None:
        self._session, self._pace = session, pace
        self._made: dict[str, Made] = {}
        self._unbound = 0
        self._all_bound = asyncio.Event()
        self._bound = deque[str]()
        self._version = ""

    def made(self) -> list[Made]:
        return list(self._made.values())

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Read the watch until the block ends. Raises what the watch raised."""
        listed = await self._request("GET", f"{self._pace.path}?limit=1")
        self._version = msgspec.json.decode(listed, type=_Pod).metadata.resourceVersion
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch())
            yield
            watching.cancel()

    async def _watch(self) -> None:
        """Read of the pods that have a node. The API server may end a watch at any time, and the next one goes on."""
        while True:
            query = {"watch": "1", "resourceVersion": self._version, "fieldSelector": "spec.nodeName!="}
            async with self._session.get(self._pace.path, params=query, raise_for_status=True) as response:
                async for line in response.content:
                    event = msgspec.json.decode(line, type=_Event)
                    if event.type == "ERROR":
                        raise RuntimeError(f"the watch of the created pods: {line.decode()}")
                    self._version = event.object.metadata.resourceVersion
                    if event.type == "ADDED":
                        self._found_bound(event.object.metadata.name)

    def _found_bound(self, name: str) -> None:
        made = self._made.get(name)
        if made is not None and made.bound is None:
            self._made[name] = made._replace(bound=time.time())
            self._bound.append(name)
            self._unbound -= 1
            if not self._unbound:
                self._all_bound.set()

    async def create_all(self) -> None:
        """Create the pods, each when it is due, and wait for the bindings of the last ones."""
        pace, begin = self._pace, time.time()
        async with asyncio.TaskGroup() as group:
            for index in range(int(pace.seconds * pace.rate)):
                due = begin + index / pace.rate
                await asyncio.sleep(max(0.0, due - time.time()))
                group.create_task(self._create(index, due))
                if pace.stock is not None and len(self._bound) > pace.stock:
                    group.create_task(self._request("DELETE", f"{pace.path}/{self._bound.popleft()}", _DELETE))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_bound.wait(), pace.patience)

    async def _create(self, index: int, due: float) -> None:
        template = self._pace.templates[index % len(self._pace.templates)]
        name = f"{template['metadata']['name']}-{index}"
        self._made[name] = Made(name, due, None)
        self._unbound += 1
        self._all_bound.clear()
        manifest = {**template, "metadata": {**template["metadata"], "name": name}}
        await self._request("POST", self._pace.path, msgspec.json.encode(manifest))

    async def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request, again where the API server is too busy. Raises aiohttp.ClientError, RuntimeError."""
        for attempt in count(1):
            async with self._session.request(method, path, data=body, headers=_JSON) as response:
                text = await response.read()
                if response.ok or (method == "DELETE" and response.status == HTTPStatus.NOT_FOUND):
                    break
                if response.status not in _BUSY or attempt == _ATTEMPTS:
                    raise RuntimeError(f"{method} {path}: {response.status} {text[:300].decode(errors='replace')}")
            await asyncio.sleep(attempt)
        return text
