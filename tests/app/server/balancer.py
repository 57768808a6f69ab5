"""A Service of Kubernetes in small: TCP connections go to replicas that are ready, as their `/readyz` says.

As kube-proxy does it: a connection stays with its replica, whatever becomes of that, and nothing is tried again.

It uses threads and blocking sockets. Each socket is owned by a `with` of one thread, and `stop` joins all threads. An
asyncio server drops a socket unclosed if its task is cancelled between accept and transport, and the ResourceWarning
fails some test.
"""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Final

Address = tuple[str, int]

_PROBE_EVERY: Final = 0.1  # seconds
_CONNECT_TIMEOUT: Final = 1.0  # seconds; also for each step of a probe
_PATIENCE: Final = 10.0
_CHUNK: Final = 64 * 1024


class Balancer:
    """Listens on a port of the loopback, with a thread for each direction of each connection."""

    def __init__(self) -> None:
        self.backends: list[Address] = []
        """Replicas, ready or not; a test changes it."""
        self.ready: list[Address] = []
        self.most_ready = 0
        """How many were ready at once at most."""
        self.url = ""
        self._turns = itertools.count()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        """Sockets that a thread may be blocked in; `stop` shuts them down."""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Listen."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._run(partial(self._accept, listening))
        self._run(self._probe)

    def stop(self) -> None:
        """Close all."""
        with self._lock:
            self._stopping.set()
            for each in self._open:
                _shut_down(each)
        while threads := self._alive():  # the last accept may have started another
            for thread in threads:
                thread.join(_PATIENCE)
                assert not thread.is_alive(), f"{thread.name} does not end"

    @property
    def address(self) -> Address:
        """Where it listens."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def _run(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=f"balancer {self.url}", daemon=True)
        with self._lock:
            thread.start()
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]

    def _alive(self) -> list[threading.Thread]:
        with self._lock:
            return [*filter(threading.Thread.is_alive, self._threads)]

    @contextmanager
    def _owned(self, opened: socket.socket) -> Iterator[socket.socket]:
        """Close a socket in the end; `stop` ends what waits for it before."""
        with opened:
            with self._lock:
                self._open.add(opened)
                if self._stopping.is_set():
                    _shut_down(opened)
            try:
                yield opened
            finally:
                with self._lock:  # `stop` has no business with it once it is closed
                    self._open.discard(opened)

    def _accept(self, listening: socket.socket) -> None:
        with self._owned(listening), suppress(OSError):  # shut down
            while not self._stopping.is_set():
                connection, _ = listening.accept()
                self._run(partial(self._serve, connection))

    def _serve(self, connection: socket.socket) -> None:
        with self._owned(connection) as here:
            ready = self.ready
            if not ready:
                return
            backend = ready[next(self._turns) % len(ready)]
            with suppress(OSError), self._owned(socket.create_connection(backend, _CONNECT_TIMEOUT)) as there:
                there.settimeout(None)
                _pass_on_both_ways(here, there)

    def _probe(self) -> None:
        with ThreadPoolExecutor() as pool:
            while not self._stopping.wait(_PROBE_EVERY):
                backends = list(self.backends)
                ready = list(pool.map(_is_ready, backends))
                self.ready = [backend for backend, yes in zip(backends, ready, strict=True) if yes]
                self.most_ready = max(self.most_ready, len(self.ready))


def _pass_on_both_ways(here: socket.socket, there: socket.socket) -> None:
    for each in (here, there):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    responses = threading.Thread(target=_pass_on, args=(there, here), daemon=True)
    responses.start()
    try:
        _pass_on(here, there)
    finally:
        responses.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass on until the source ends, which ends the way there; a fault ends both ways."""
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        _shut_down(source)
        _shut_down(target)


def _shut_down(opened: socket.socket) -> None:
    """End all calls that wait for a socket."""
    with suppress(OSError):  # it is not connected any more
        opened.shutdown(socket.SHUT_RDWR)


def _is_ready(backend: Address) -> bool:
    with closing(HTTPConnection(*backend, timeout=_CONNECT_TIMEOUT)) as connection:
        with suppress(OSError, HTTPException):
            connection.request("GET", "/readyz", headers={"Connection": "close"})
            with connection.getresponse() as response:
                return response.status == HTTPStatus.OK
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
