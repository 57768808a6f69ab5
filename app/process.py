"""One process: its servers and its background work on one event loop, and how they end.

The first SIGTERM or SIGINT drains: no new connection is taken, requests under way are answered. Only then is background
work cancelled, so that the mirror follows the cluster as long as anybody is answered. A second SIGINT ends at once.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import uvicorn

log = logging.getLogger(__name__)

Background = Callable[[], Coroutine[Any, Any, None]]

_CLOSING: Final = 1.0  # seconds of the grace period that are left for what comes after the last request
_FAILED: Final = 1


class Server(uvicorn.Server):
    """A server that leaves the signals to the process, and says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None]) -> None:
        """Call `on_listening` with the URL."""
        super().__init__(config)
        self._on_listening = on_listening
        self.exit_status = 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: of two servers in a process, each would take them from the other."""
        yield

    async def serve(self, sockets: list[Any] | None = None) -> None:
        """Serve until `should_exit`. A port that cannot be had is in the log, and in `exit_status`."""
        try:
            await super().serve(sockets)
        except SystemExit as exit_:  # uvicorn's own way, which is none inside of a task
            self.exit_status = exit_.code if isinstance(exit_.code, int) else _FAILED

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Bind the port, as uvicorn does."""
        await super().startup(sockets)
        if self.started:
            port = self.servers[0].sockets[0].getsockname()[1]
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            self._on_listening(f"http://{host}:{port}")


def run(servers: Sequence[Server], background: Sequence[Background], grace_period: float) -> int:
    """Run until a signal comes; return the exit status, 0 unless background work failed."""
    for server in servers:
        server.config.timeout_graceful_shutdown = max(1, round(grace_period - _CLOSING))
    with asyncio.Runner(loop_factory=servers[0].config.get_loop_factory()) as runner:
        return runner.run(_run(servers, background, grace_period))


async def _run(servers: Sequence[Server], background: Sequence[Background], grace_period: float) -> int:
    _handle_signals(servers, grace_period)
    work = [asyncio.create_task(start()) for start in background]
    serving = [asyncio.create_task(server.serve()) for server in servers]
    try:
        # None of them is to end before the signal; when one does, the others are not to go on without it.
        await asyncio.wait([*serving, *work], return_when=asyncio.FIRST_COMPLETED)
        stopped_early = any(task.done() for task in work)
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*serving)
    finally:
        for task in work:
            task.cancel()
        outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            log.error("background work ended", exc_info=outcome)
    return _FAILED if stopped_early else max(server.exit_status for server in servers)


def _handle_signals(servers: Sequence[Server], grace_period: float) -> None:
    stopping = False

    def stop(number: int, _: FrameType | None = None) -> None:
        nonlocal stopping
        if stopping and number == signal.SIGINT:
            os._exit(128 + number)
        if not stopping:
            stopping = True
            # A request that never ends, or a credential plugin that hangs in its thread, must not outlast it.
            signal.signal(signal.SIGALRM, _give_up)
            signal.setitimer(signal.ITIMER_REAL, grace_period)
        for server in servers:
            server.should_exit = True

    # Not loop.add_signal_handler: a second SIGINT is to end even a loop that is stuck.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _give_up(*_: object) -> None:
    log.error("not everything ended within the grace period")
    os._exit(_FAILED)
