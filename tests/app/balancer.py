"""A Service of Kubernetes in small: TCP connections go to replicas that are ready, as their `/readyz` says.

As kube-proxy does it: a connection stays with its replica, whatever becomes of that, and nothing is tried again.
"""

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")
Address = tuple[str, int]

_PROBE_EVERY: Final = 0.1  # seconds
_PATIENCE: Final = 10.0
_CHUNK: Final = 64 * 1024
_LATELY: Final = 1000  # connections
_PROBE: Final = b"GET /readyz HTTP/1.1\r\nHost: kindred\r\nConnection: close\r\n\r\n"


class Balancer:
    """Listens on a port of the loopback, in a thread of its own."""

    def __init__(self) -> None:
        self.backends: list[Address] = []
        """Replicas, ready or not; a test changes it."""
        self.ready: list[Address] = []
        self.most_ready = 0
        """How many were ready at once at most."""
        self.url = ""
        self._turns = itertools.count()
        self._closing: deque[asyncio.StreamWriter] = deque(maxlen=_LATELY)
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

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._probing = asyncio.create_task(self._probe())

    async def _close(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A transport that has not been told of its end when the loop is closed complains.
        await asyncio.gather(*(each.wait_closed() for each in self._closing), return_exceptions=True)

    async def _probe(self) -> None:
        while True:
            backends = list(self.backends)
            ready = await asyncio.gather(*map(_is_ready, backends))
            self.ready = [backend for backend, yes in zip(backends, ready, strict=True) if yes]
            self.most_ready = max(self.most_ready, len(self.ready))
            await asyncio.sleep(_PROBE_EVERY)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = self.ready
        if not ready:
            writer.transport.abort()
            return
        host, port = ready[next(self._turns) % len(ready)]
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_pass_on(reader, there_writer), _pass_on(there_reader, writer))
        except asyncio.CancelledError:  # by _close; asyncio complains of handlers that end with it
            pass
        finally:
            for each in (writer, there_writer):
                each.transport.abort()
                self._closing.append(each)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.close()
    except OSError:
        writer.transport.abort()


async def _is_ready(backend: Address) -> bool:
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            reader, writer = await asyncio.open_connection(*backend)
            try:
                writer.write(_PROBE)
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    return False


@contextmanager
def balancer() -> Iterator[Balancer]:
    """Run one."""
    running = Balancer()
    running.start()
    try:
        yield running
    finally:
        running.stop()
