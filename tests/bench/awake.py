"""Keeps CPUs awake for benchmarks of latency, and puts client and servers on different CPUs.

A virtual CPU that idles is given to other machines, and comes back with empty caches. The same call of `filter` for 500
nodes took 0.09 ms in a loop, 0.17 ms after pauses of 0.2 ms, and 0.24 ms after pauses of 1 ms. A process that wakes on
another CPU also has cold caches. A benchmark would then measure the machine and not the server.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

_SPINS: Final = """
import os
os.sched_setaffinity(0, {{{cpu}}})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # whoever else wants the CPU gets it at once
while os.getppid() == {parent}:
    for _ in range(100_000):
        pass
"""


@contextmanager
def cpus_awake() -> Iterator[None]:
    """Keep each CPU busy with work of the lowest priority during the block."""
    with ExitStack() as stack:
        for cpu in _cpus():
            command = [sys.executable, "-c", _SPINS.format(cpu=cpu, parent=os.getpid())]
            process = stack.enter_context(subprocess.Popen(command))  # noqa: S603 - our own program
            stack.callback(process.terminate)
        yield


@contextmanager
def apart_from(servers: Collection[int]) -> Iterator[None]:
    """Pin this process to one CPU, and servers, by process id, to another, during the block."""
    cpus = _cpus()
    processes = [os.getpid(), *servers]
    try:
        for pid in processes:
            _place(pid, {cpus[0] if pid == os.getpid() else cpus[-1]})
        yield
    finally:
        for pid in processes:
            _place(pid, cpus)


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0))


def _place(pid: int, cpus: Collection[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)
