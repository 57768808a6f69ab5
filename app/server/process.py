"""One process: its servers and its background work on one event loop, and their shutdown.

The shutdown, in this order, within the grace period:

1. SIGTERM or SIGINT: `/readyz` fails. After SIGTERM requests are accepted for the drain delay, also on new connections.
   Each response closes its connection, so that no connection is idle when the port closes.
2. All ports close except the health port. Requests in progress get their responses.
3. Open work is finished, such as bindings whose callers have disconnected. Then the Lease is released, because nothing
   needs it any more.
4. Background work is cancelled. Until then the mirror follows the cluster, because requests read it.

A SIGINT after the first signal ends the process at once.
"""

import asyncio
import ctypes
import faulthandler
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from app.verbs.admission import ServingState

if TYPE_CHECKING:
    from app.server.server import Server


log = logging.getLogger(__name__)

Background = Callable[[], Coroutine[Any, Any, None]]

_CLOSING: Final = 1.0  # seconds of the grace period for the steps after the last request
_FAILED: Final = 1
HEALTH: Final = "health"
"""Name of the port that is closed last."""


class Ending(NamedTuple):
    """The steps of the shutdown besides the servers."""

    state: ServingState
    """Gets `draining` first."""
    drain_delay: float
    """Seconds after SIGTERM in which requests are still accepted."""
    finish: Callable[[], Coroutine[Any, Any, None]]
    """Awaited when no request is in progress, and before background work is cancelled."""


def run(servers: Sequence["Server"], background: Sequence[Background], grace_period: float, ending: Ending) -> int:
    """Run until a signal arrives. Return the exit status: 0 unless background work failed."""
    with asyncio.Runner(loop_factory=servers[0].config.get_loop_factory()) as runner:
        return runner.run(_run(servers, background, _Stop(grace_period, ending), ending))


async def _run(servers: Sequence["Server"], background: Sequence[Background], stop: "_Stop", ending: Ending) -> int:
    stop.listen(asyncio.get_running_loop())
    work = [asyncio.create_task(start()) for start in background]
    serving = [asyncio.create_task(server.serve()) for server in servers]
    stopping = asyncio.create_task(stop.received())
    try:
        # No server should end before the signal. If one does, the others must end, too.
        await asyncio.wait([*serving, *work, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopped_early = any(task.done() for task in work)
        ending.state.draining = True
        # The health port is served until the end, so that a shutdown causes no failed probe.
        await _close([server for server in servers if server.connections.port != HEALTH], stop)
        await _finish(ending, stop)
        await _close(servers, stop)
        await asyncio.gather(*serving)
    finally:
        for task in (*work, stopping):
            task.cancel()
        outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            log.error("background work ended", exc_info=outcome)
    return _FAILED if stopped_early else max(server.exit_status for server in servers)


async def _close(servers: Sequence["Server"], stop: "_Stop") -> None:
    for server in servers:
        server.config.timeout_graceful_shutdown = max(1, round(stop.seconds_left() - _CLOSING))
        server.should_exit = True
    for server in servers:
        await server.closed.wait()


async def _finish(ending: Ending, stop: "_Stop") -> None:
    try:
        async with asyncio.timeout(max(0.0, stop.seconds_left() - _CLOSING / 2)):
            await ending.finish()
    except TimeoutError:
        log.warning("some work was not finished within the grace period")
    except Exception:
        log.exception("shutdown: internal error")


class _Stop:
    """The signals that end the process. The first one begins the shutdown, a later SIGINT ends the process at once."""

    def __init__(self, grace_period: float, ending: Ending) -> None:
        self._grace_period = grace_period
        self._ending = ending
        self._signal = 0  # the first
        self._signalled = asyncio.Event()
        self._ends_at = math.inf  # by the monotonic clock

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Not loop.add_signal_handler: a second SIGINT must end even a stuck loop.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def seconds_left(self) -> float:
        """Return the rest of the grace period, in seconds. Before a signal, all of it."""
        return min(self._grace_period, self._ends_at - time.monotonic())

    async def received(self) -> None:
        """Return when the ports must close: after SIGTERM and the drain delay, in which clients leave."""
        await self._signalled.wait()
        if self._signal == signal.SIGTERM:
            await asyncio.sleep(self._ending.drain_delay)

    def _take(self, number: int, _: FrameType | None = None) -> None:
        if self._signal and number == signal.SIGINT:
            os._exit(128 + number)
        if self._signal:
            return
        self._signal = number
        self._ends_at = time.monotonic() + self._grace_period
        # A request that never ends, or a credential plugin that hangs in its thread, must not exceed the grace period.
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, self._grace_period)
        self._ending.state.draining = True
        self._loop.call_soon_threadsafe(self._signalled.set)


def _give_up(*_: object) -> None:
    log.error("some tasks did not end within the grace period")
    os._exit(_FAILED)


_BEAT: Final = 0.05
"""Seconds between two beats of the loop. A shorter hold may be measured in part, or not at all."""
_CALLS: Final = 30
"""Calls of faulthandler in the time after which a loop is stuck. Each starts a thread."""
STUCK: Final = 30.0
"""Seconds without a call, after which the process ends."""


async def watch_loop(observe: Callable[[float], None], stuck: float = STUCK) -> None:
    """Watch the running loop until cancelled. `observe` gets, at each beat, the seconds for which the loop was held.

    A stuck loop neither responds to `/livez` nor handles SIGTERM. kubelet would then wait for the whole grace period
    before it kills the process, and the log would not show where the loop was stuck. So a thread of `faulthandler`
    writes the stack of all threads and ends the process with status 1, also while C code holds the interpreter lock.

    Wall time counts. So a process that was stopped for longer, by SIGSTOP or a frozen cgroup, ends when it continues,
    and kubelet starts it again.
    """
    called = -math.inf
    try:
        while True:
            began = time.monotonic()
            # By the clock, and not at each so many beats: where each beat is late, so many of them may take `stuck`.
            if began - called >= stuck / _CALLS:
                called = began
                faulthandler.dump_traceback_later(stuck, exit=True, file=sys.__stderr__ or sys.stderr)
            await asyncio.sleep(_BEAT)
            observe(max(0.0, time.monotonic() - began - _BEAT))
    finally:
        faulthandler.cancel_dump_traceback_later()


_M_TRIM_THRESHOLD: Final = -1  # malloc.h
_M_MMAP_THRESHOLD: Final = -3

FROM_THE_HEAP: Final = 32 * 1024 * 1024
"""Blocks up to this number of bytes come from the heap. It is glibc's maximum. With 4 MiB, the memory of whole nodes
was returned at once, and a request with 5,000 of them took about 100 ms of CPU instead of 65 ms."""
RETAINED: Final = 128 * 1024 * 1024
"""Free bytes at the end of the heap that are kept at most: enough for two requests with whole nodes."""


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next request. Other C libraries keep their defaults.

    By default glibc gets each block of 128 KiB and more from the system, and returns it at once. So every request pays
    for each page again: a look-up of 5,000 names of 40 letters took 0.50 ms, and takes 0.18 ms with these options.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, FROM_THE_HEAP)
        mallopt(_M_TRIM_THRESHOLD, RETAINED)
