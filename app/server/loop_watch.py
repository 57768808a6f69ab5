"""Measures how long callbacks hold the event loop, and ends the process if the loop is stuck.

A stuck loop neither responds to `/livez` nor handles SIGTERM. kubelet would then wait for the whole grace period before
it kills the process, and the log would not show where the loop was stuck. So a thread of `faulthandler` writes the
stack of all threads and ends the process with status 1, also while C code holds the interpreter lock.

Wall time counts. So a process that was stopped for longer, by SIGSTOP or a frozen cgroup, ends when it continues, and
kubelet starts it again.
"""

import asyncio
import faulthandler
import sys
import time
from collections.abc import Callable
from typing import Final

_BEAT: Final = 0.05
"""Seconds between two beats of the loop. A shorter hold may be measured in part, or not at all."""
_BEATS: Final = 20
"""Beats between two calls of faulthandler, each of which starts a thread."""
STUCK: Final = 30.0
"""Seconds without a call, after which the process ends."""


async def watch_loop(observe: Callable[[float], None], stuck: float = STUCK) -> None:
    """Watch the running loop until cancelled. `observe` gets, at each beat, the seconds for which the loop was held."""
    try:
        while True:
            faulthandler.dump_traceback_later(stuck, exit=True, file=sys.__stderr__ or sys.stderr)
            for _ in range(_BEATS):
                due = time.monotonic() + _BEAT
                await asyncio.sleep(_BEAT)
                observe(max(0.0, time.monotonic() - due))
    finally:
        faulthandler.cancel_dump_traceback_later()
