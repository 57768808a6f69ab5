"""Watches the event loop: measures how long callbacks hold it, and ends the process if the loop is stuck.

A busy loop responds late to `/livez`. A stuck loop neither responds nor handles SIGTERM. kubelet would then wait for
the whole grace period before it kills the process, and the log would not show where the loop was stuck. So the process
ends itself, and logs the stack of the loop: files, lines and functions, without values.

A loop is stuck if one callback
- takes 30 s of CPU. The kernel measures this (ITIMER_PROF), and its signal ends the process, also from within C code
  that never releases the interpreter lock; or
- waits for 30 s. A thread checks 30 times that the callback neither runs nor could run.

Time for which the whole process is stopped (SIGSTOP, a frozen or throttled cgroup, a suspended machine) does not count.
The process then takes no CPU, the thread does not check, and the loop would run if it had a CPU.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

log = logging.getLogger(__name__)

_BEAT: Final = 0.05
"""Seconds between two beats of the loop. A shorter hold may be measured in part, or not at all."""
_LOOK: Final = 1.0
"""Seconds between two checks of the thread."""
_TOLD: Final = 10
"""Checks without a beat after which the stack of the loop is logged."""
_STUCK: Final = 30
"""Seconds of CPU, or checks of a waiting loop, without a beat."""
_LOG_TIME: Final = 2.0
"""Seconds for the last log lines. The loop may be stuck in logging itself, if nothing reads standard error."""
_FAILED: Final = 1


class LoopWatch:
    """Runs a regular callback, the beat, on the loop, and ends the process if the beat stops."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        """`observe` gets, at each beat, the seconds for which the loop was held."""
        self._observe = observe
        self._beats = 0

    async def run(self) -> None:
        """Watch the loop of the main thread until cancelled."""
        ended = threading.Event()
        thread = threading.Thread(target=self._look, args=(threading.get_native_id(), ended), daemon=True)
        with _limited_cpu() as renew:
            thread.start()
            try:
                while True:
                    due = time.monotonic() + _BEAT
                    await asyncio.sleep(_BEAT)
                    self._beats += 1
                    self._observe(max(0.0, time.monotonic() - due))
                    renew()
            finally:
                ended.set()

    def _look(self, loop_thread: int, ended: threading.Event) -> None:
        """Count checks without a beat, and checks at which the loop waits. Runs in the thread."""
        silent = waiting = beats = 0
        before = ""
        while not ended.wait(_LOOK):
            if self._beats != beats:
                silent = waiting = 0
                beats = self._beats
                continue
            silent += 1
            now = _standing(loop_thread)
            waiting = waiting + 1 if now == before and not now.startswith("R") else 0
            before = now
            if silent == _TOLD:
                log.warning("the event loop is held for %g s: %s", silent * _LOOK, _stack())
            if waiting >= _STUCK:
                _end(f"the event loop is stuck for {waiting * _LOOK:g} s, the process ends: {_stack()}")


@contextmanager
def _limited_cpu() -> Iterator[Callable[[], None]]:
    """Limit the CPU time between two calls of the returned function. Past the limit the kernel ends the process."""
    # The handler writes the stack and raises the signal again, which ends the process by default.
    faulthandler.register(signal.SIGPROF, sys.__stderr__ or sys.stderr, all_threads=False, chain=True)

    def renew() -> None:
        signal.setitimer(signal.ITIMER_PROF, _STUCK)

    renew()
    try:
        yield renew
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)


def _standing(thread: int) -> str:
    """Return the state of a thread (R: it runs or could run) and its CPU time. R if the system reports no state."""
    try:
        fields = Path(f"/proc/self/task/{thread}/stat").read_text("ascii", "replace").rpartition(") ")[2].split()
    except OSError:
        return "R"
    state, user, system = fields[0], fields[11], fields[12]
    return f"{state} {user} {system}"


def _stack() -> str:
    """Return the stack of the main thread, innermost first, in one line."""
    frames = sys._current_frames()  # noqa: SLF001  # public in spite of its name, says its documentation
    return " < ".join(_places(frames.get(threading.main_thread().ident or 0)))


def _places(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back


def _end(message: str) -> None:
    telling = threading.Thread(target=log.error, args=("%s", message), daemon=True)
    telling.start()
    telling.join(_LOG_TIME)
    os._exit(_FAILED)
