"""CPUs that are kept from their idle states, as benchmarks of latency have them.

A virtual CPU that waits is given to others, and comes back with empty caches: one and the same call of `filter` about
500 nodes took 0.09 ms in a loop, 0.17 after pauses of 0.2 ms and 0.24 after pauses of 1 ms. What is measured then is
the machine below, and the more so the more a server does. Where idle states can be switched off, that would do as well.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

_SPINS: Final = """
import os
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # whoever else wants the CPU gets it at once
while os.getppid() == {parent}:
    for _ in range(100_000):
        pass
"""


@contextmanager
def cpus_awake() -> Iterator[None]:
    """Have each CPU do something of the least priority for the time of the block."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            command = [sys.executable, "-c", _SPINS.format(parent=os.getpid())]
            process = stack.enter_context(subprocess.Popen(command))  # noqa: S603 - our own program
            stack.callback(process.terminate)
        yield
