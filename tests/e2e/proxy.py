"""A proxy before kube-apiserver: watch events and bindings come late, bindings fail, connections are held and cut.

TLS ends here and begins anew, so that the requests can be read: what a watch sends can then be late while the answer to
a binding is not, which is the gap between decision and event at its widest.
"""

import asyncio
import re
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from tests.e2e.control_plane import ControlPlane

T = TypeVar("T")

_CHUNK: Final = 256 * 1024
_PATIENCE: Final = 10.0  # seconds
_CLOSING: Final = 100
"""Turns of the loop in which what was aborted closes its sockets: far more than the few that it takes."""
_BINDING: Final = re.compile(rb"POST \S*/pods/([^/]+)/binding[ ?]")
_FAILED: Final = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"


class ApiProxy:
    """Stands before an API server, in a thread of its own."""

    def __init__(self, plane: ControlPlane, client: str | None = None) -> None:
        """Pass tokens on, and no certificate of a client but that of the user `client`."""
        self.delay = 0.0
        """Seconds by which all that a watch sends is late."""
        self.binding_delay = 0.0
        """Seconds by which a binding comes late to the server."""
        self.bindings: list[str] = []
        """The pods of the bindings that were asked for so far."""
        self.failing_bindings: set[str] = set()
        """Pods whose next binding fails, and does not come to the server."""
        self.stored_bindings: dict[str, asyncio.Event] = {}
        """Pod -> when its binding goes on to the server."""
        self.watches = 0
        """Watches that were asked for so far."""
        self.url = ""
        self._port = plane.port
        self._inward = plane.authority.server_tls()
        self._outward = plane.authority.client_tls(client)
        self._connections: set[_Connection] = set()
        self._flowing = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        """Listen."""
        self._thread.start()
        self._run(self._listen())

    def stop(self) -> None:
        """Close all."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()

    def hold(self) -> None:
        """Let nothing that the server sends through, with all connections open, as where packets are dropped."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def release(self) -> None:
        """Let go on what was held."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def hold_bindings(self, pods: Iterable[str]) -> None:
        """Let no binding of some pods come to the server."""
        self.stored_bindings.update((pod, asyncio.Event()) for pod in pods)

    def release_bindings(self) -> None:
        """Let go on what was held of them, and hold none any more."""
        stored, self.stored_bindings = self.stored_bindings, {}
        for each in stored.values():
            self._loop.call_soon_threadsafe(each.set)

    def cut(self) -> None:
        """Reset all connections, also in the middle of an event."""
        self._run(self._cut())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._inward)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0)  # a task that is cancelled before it has begun does not close what it was to serve
        await self._cut()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(_CLOSING):
            await asyncio.sleep(0)

    async def _cut(self) -> None:
        for connection in tuple(self._connections):
            connection.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled by `_close`, maybe while it connects. asyncio logs a cancelled task of a server as an error.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            there = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._outward)
            connection = _Connection(self, (reader, writer), there)
            self._connections.add(connection)
            try:
                await connection.run()
            finally:
                self._connections.discard(connection)
                connection.cut()
        writer.transport.abort()  # a TLS connection that is closed waits for its client

    async def flowing(self) -> None:
        """Wait while all is held."""
        await self._flowing.wait()


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Connection:
    """One connection of the client, with its own to the server."""

    def __init__(self, proxy: ApiProxy, here: _Ends, there: _Ends) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = here
        self._from_server, self._to_server = there
        self._is_watch = False
        self._late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def run(self) -> None:
        """Pass on, until one side closes."""
        ways = [asyncio.ensure_future(way) for way in (self._requests(), self._responses(), self._deliver())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if ways[1].done():
                await asyncio.wait(ways[2:])  # what the server has sent before it closed
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def cut(self) -> None:
        """Close both sides at once."""
        for writer in (self._to_client, self._to_server):
            writer.transport.abort()

    async def _requests(self) -> None:
        while True:
            head = await self._from_client.readuntil(b"\r\n\r\n")
            request = head.split(b"\r\n", 1)[0]
            self._is_watch = b"watch=" in request
            self._proxy.watches += self._is_watch
            body = b""
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    body = await self._from_client.readexactly(int(line.partition(b":")[2]))
            binding = _BINDING.match(request)
            if binding is None or await self._is_passed(binding[1].decode()):
                self._to_server.write(head + body)
                await self._to_server.drain()

    async def _is_passed(self, pod: str) -> bool:
        """Keep the binding of a pod back as it was said; answer it here if it is to fail."""
        self._proxy.bindings.append(pod)
        await asyncio.sleep(self._proxy.binding_delay)
        if stored := self._proxy.stored_bindings.get(pod):
            await stored.wait()
        if pod not in self._proxy.failing_bindings:
            return True
        self._proxy.failing_bindings.discard(pod)
        self._late.put_nowait((0.0, _FAILED))
        return False

    async def _responses(self) -> None:
        clock = asyncio.get_running_loop().time
        while data := await self._from_server.read(_CHUNK):
            self._late.put_nowait((clock() + (self._proxy.delay if self._is_watch else 0.0), data))
        self._late.put_nowait((0.0, b""))

    async def _deliver(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await self._late.get()
            await asyncio.sleep(max(due - clock(), 0.0))
            await self._proxy.flowing()
            if not data:
                return
            self._to_client.write(data)
            await self._to_client.drain()


@contextmanager
def api_proxy(plane: ControlPlane, client: str | None = None) -> Iterator[ApiProxy]:
    """Run a proxy before an API server."""
    proxy = ApiProxy(plane, client)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
