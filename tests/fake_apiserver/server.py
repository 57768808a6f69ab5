"""The fake API server for tests: a port, the cluster behind it, the faults, and the log of requests."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from tests.fake_apiserver.api_handler import ApiHandler, Behaviour, RunningWatch
from tests.fake_apiserver.faults import End, StreamAction
from tests.fake_apiserver.store import Object, Store
from tests.fake_apiserver.wire import Connection, Handler, Request


class FakeApiServer:
    """A kube-apiserver for lists and watches of the resources in `resources.RESOURCES`, on a port of 127.0.0.1.

    Change objects by `create`, `update` and `delete`, at any time, from the server's event loop. The end of the block
    raises the server's own errors.
    """

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        *,
        store: Store | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        """Reserve a port (0: any free one) of 127.0.0.1. `listen`, or the context, accepts connections on it."""
        self.control: Handler | None = None  # handles requests below /_control/
        self.store = store or Store()
        self.behaviour = behaviour or Behaviour()
        self._api = ApiHandler(self.store, self.behaviour)
        self.faults = self._api.faults
        self.requests = self._api.requests
        self._tls = tls
        self._connections: set[Connection] = set()
        self._errors: list[Exception] = []
        self._socket = _bound(port)
        self._port: int = self._socket.getsockname()[1]
        self._listening: asyncio.Server | None = None

    # Start and end.

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.refuse_connections(drop=True)
        self._socket.close()
        tasks = [connection.serving for connection in self._connections if connection.serving is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in tuple(self._connections):
            await connection.closed.wait()
        if self._errors and raised is None:
            raise self._errors[0]

    async def listen(self) -> None:
        """Accept connections, at first or again."""
        if self._listening is None:
            loop = asyncio.get_running_loop()
            self._listening = await loop.create_server(self._connection, sock=self._socket, ssl=self._tls)

    def refuse_connections(self, *, drop: bool = False) -> None:
        """Refuse new connections until `listen`. `drop`: reset open connections, as after a crash."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
            # Bound but not listening: connections are refused, and the system gives the port to no other socket.
            self._socket = _bound(self._port)
        if drop:
            for connection in tuple(self._connections):
                connection.abort()

    @asynccontextmanager
    async def refusing_connections(self, *, drop: bool = False) -> AsyncIterator[None]:
        """Refuse new connections during the block."""
        self.refuse_connections(drop=drop)
        try:
            yield
        finally:
            await self.listen()

    # The cluster: see `Store`.

    def create(self, path: str, body: Object) -> Object:
        """Create an object. Returns it as stored."""
        return self.store.create(path, body)

    def update(self, path: str, body: Object) -> Object:
        """Replace an object. Returns it as stored."""
        return self.store.update(path, body)

    def delete(self, path: str, name: str, namespace: str = "") -> Object:
        """Delete an object. Returns it as it was."""
        return self.store.delete(path, name, namespace)

    def objects(self, path: str) -> list[Object]:
        """Return all objects of a resource."""
        return self.store.objects(path)

    def compact(self, path: str) -> None:
        """Expire all versions of a resource before the current one."""
        self.store.compact(path)

    # Running watches.

    def watching(self, path: str | None = None) -> int:
        """Return the number of running watches of a path (None: all)."""
        return len(self._running(path))

    def disturb(self, action: StreamAction, path: str | None = None) -> int:
        """Apply an action to the running watches of a path (None: all). Return their number."""
        running = self._running(path)
        for each in running:
            each.disturb(action)
        return len(running)

    def end_watches(self, path: str | None = None) -> int:
        """End the running watches of a path (None: all) normally. Return their number."""
        return self.disturb(End(), path)

    def all_sent(self) -> bool:
        """Return whether every running watch has sent all events, as far as sockets report it."""
        return all(each.watch.caught_up for each in self._api.watches) and not any(
            connection.unsent_bytes for connection in self._connections
        )

    async def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait for a condition on the server or its log. Raises TimeoutError."""
        await self.requests.until(condition, seconds)

    async def until_watching(self, path: str, count: int = 1, seconds: float = 10.0) -> None:
        """Wait until `count` watches of a path run. Raises TimeoutError."""
        await self.until(lambda: self.watching(path) >= count, seconds)

    def _running(self, path: str | None) -> list[RunningWatch]:
        return [each for each in self._api.watches if path in {None, each.path}]

    # Connections.

    def _connection(self) -> Connection:
        return Connection(self._handle, self._connected)

    def _connected(self, connection: Connection) -> None:
        self.requests.connections += 1
        self.requests.changed()
        self._connections = {known for known in self._connections if not known.closed.is_set()} | {connection}
        fault = self.faults.of_connection()
        if fault is not None and fault.reset:
            connection.abort()
        elif fault is not None:
            connection.close()

    async def _handle(self, request: Request, connection: Connection) -> None:
        try:
            if self.control is not None and request.path.startswith("/_control/"):
                await self.control(request, connection)
            else:
                await self._api.handle(request, connection)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - raised when the server is left
            self._errors.append(error)
            connection.abort()


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    bound.setblocking(False)  # noqa: FBT003 - the standard library's signature
    return bound
