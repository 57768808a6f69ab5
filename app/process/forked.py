"""Work on a copy of this process: a forked child, which the caller talks to, and which never outlives its block.

A fork of 400 MB takes some 20 ms, and shares all memory until one of the two writes to it. So work of minutes on the
present state neither holds the event loop nor sees a later change, and nothing that it changes is seen here.

Why a fork of a process with threads is safe here. The child has only the thread that forked, with the state of all
locks. The interpreter resets its own locks and those of `logging`, and the C library those of its allocator. Other
threads of the service read files, resolve names and, once a minute, may load certificates. A lock that one of them
holds at the fork stays held in the child. If the child needs it, it hangs and is killed at its time limit. The parent
shares no lock with the child, so nothing else can happen. Of the parent's connections the child closes its descriptors
without a word: no TLS object is used or freed, and the parent's epoll, which the two share, is not changed.
"""

import asyncio
import ctypes
import gc
import logging
import os
import resource
import signal
import socket
import struct
import warnings
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NoReturn

_LENGTH: Final = struct.Struct("!Q")
_PIECE: Final = 64 * 1024
_NICE: Final = 10
_MOST_KILLABLE: Final = "1000"
_MOST_FILES: Final = 65_536
_LOOKS_EVERY: Final = 0.01  # seconds, until a killed child has ended
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_prctl: Final = getattr(ctypes.CDLL(None), "prctl", None)  # here, as loading a library takes a lock


class ChildEndedError(Exception):
    """The child has ended without a message."""


class Parent:
    """The parent of this process: messages to it and from it. Blocks. Raises OSError when the parent has gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def send(self, message: bytes) -> None:
        """Send a message."""
        self.send_pieces(len(message), (message,))

    def send_pieces(self, length: int, pieces: Iterable[bytes]) -> None:
        """Send a message of some length, each piece of which may be made when it is its turn."""
        self._channel.sendall(_LENGTH.pack(length))
        for piece in pieces:
            self._channel.sendall(piece)

    def receive(self) -> bytes:
        """Return the next message."""
        return self._exactly(_LENGTH.unpack(self._exactly(_LENGTH.size))[0])

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = self._channel.recv(size - len(found))
            if not piece:
                raise ConnectionResetError
            found += piece
        return bytes(found)


class Child:
    """A forked child: messages to it and from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: bytes) -> None:
        """Send a message."""
        self._writer.write(_LENGTH.pack(len(message)) + message)
        with suppress(ConnectionError):  # `receive` says it
            await self._writer.drain()

    async def receive(self) -> bytes:
        """Return the next message. Raises ChildEndedError."""
        return b"".join([piece async for piece in self.pieces(await self.length())])

    async def length(self) -> int:
        """Return the length of the next message, whose `pieces` must be read next. Raises ChildEndedError."""
        try:
            found: int = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))[0]
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ChildEndedError from None
        return found

    async def pieces(self, length: int) -> AsyncIterator[bytes]:
        """Yield a message in pieces, as it arrives. Raises ChildEndedError."""
        while length:
            try:
                piece = await self._reader.read(min(length, _PIECE))
            except ConnectionError:
                piece = b""
            if not piece:
                raise ChildEndedError
            length -= len(piece)
            yield piece


@asynccontextmanager
async def forked(work: Callable[[Parent], None], seconds: float) -> AsyncIterator[Child]:
    """Do some work in a child, for at most `seconds`. It is killed at the end of the block, whatever it does.

    Raises OSError if there is no process for it.
    It runs while this process and its like leave a CPU idle, and is the first that the kernel kills for lack of memory.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = _fork()
        except OSError:
            ours.close()
            raise
        if not pid:
            _run(work, theirs, seconds)
    try:
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            yield Child(reader, writer)
        finally:
            writer.close()
    finally:
        os.kill(pid, signal.SIGKILL)  # it is not reaped yet, so that the number is still its own
        reaping = asyncio.ensure_future(_reap(pid))
        _reaping.add(reaping)
        reaping.add_done_callback(_reaping.discard)
        await asyncio.shield(reaping)


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about threads: see above
        return os.fork()


_reaping: Final[set[asyncio.Future[None]]] = set()
"""Goes on if the caller is cancelled once more."""


async def _reap(pid: int) -> None:
    while os.waitpid(pid, os.WNOHANG) == (0, 0):  # noqa: ASYNC110, ASYNC222  # it does not wait, and nothing says when it ends
        await asyncio.sleep(_LOOKS_EVERY)


def _run(work: Callable[[Parent], None], channel: socket.socket, seconds: float) -> NoReturn:
    """Do the work, and end the process without anything that its parent would do at its end."""
    status = 1
    try:
        _become_a_child(channel.fileno(), seconds)
        work(Parent(channel))
        status = 0
    finally:
        os._exit(status)


def _become_a_child(channel: int, seconds: float) -> None:
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent's handlers would wake its event loop, through a socket that the two share.
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)  # ends the process
    gc.freeze()  # a collection would write to, and so copy, each page with an object of the parent
    logging.disable()  # the parent's handlers write each line once
    os.nice(_NICE)
    with suppress(OSError, AttributeError):  # Linux has it
        # A request must not wait for a CPU that the child has: at the 99th percentile it took 1.9 times as long.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_MOST_KILLABLE, "ascii")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    os.closerange(3, channel)
    os.closerange(channel + 1, most if most != resource.RLIM_INFINITY else _MOST_FILES)
