"""Work in a forked child, with limits, and the cost of each step: CPU seconds, peak and kept memory.

A child starts with the parent's cluster, and its changes end with it. So no attack is measured with the traces of
another. The peak is the kernel's high-water mark of resident memory (VmHWM, reset before each step through
/proc/self/clear_refs). A container's limit applies to the same figure. It includes the memory of numpy and of the C
library, and slows nothing down. tracemalloc would make Python code several times slower, and misses memory of C
extensions. Pages that parent and child share count from the beginning, so writing to them does not raise the peak.
"""

import ctypes
import gc
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NoReturn

import msgspec

MAX_CPU: Final = 30
"""CPU seconds of one child."""
MAX_MEMORY: Final = 2 * 1024**3
"""Bytes that a child may map in addition to its initial memory."""
_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")
_RESET_HIGH_WATER: Final = "5"
_REPORTED: Final = 200  # characters of an error
_libc: Final = ctypes.CDLL(None)


class Step(msgspec.Struct, frozen=True):
    """One step. Memory is in bytes, relative to the beginning of the step."""

    name: str
    cpu: float
    peak: int
    retained: int
    """Memory after a garbage collection, and after free memory was returned."""
    reported: str = ""
    """A summary of the response."""
    ended: str = ""
    """Why the step did not end: a limit, or a signal."""


class _Begun(msgspec.Struct, frozen=True, tag=True):
    name: str


class _Done(msgspec.Struct, frozen=True, tag=True):
    step: Step


_decoder: Final = msgspec.json.Decoder(_Begun | _Done)


class Recorder:
    """Reports the steps of a child to its parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def step(self, name: str, act: Callable[[], str]) -> None:
        """Call `act`, and report its cost. `act` returns a summary."""
        self.longest(name, [act])

    def longest(self, name: str, acts: Iterable[Callable[[], str]]) -> None:
        """Call each of `acts`, and report the CPU time and the summary of the longest, and the memory of all."""
        self._tell(_Begun(name))
        _tidy_up()
        before = memory("VmRSS")
        _CLEAR.write_text(_RESET_HIGH_WATER)
        cpu, reported, ended = 0.0, "", ""
        for act in acts:
            began = time.process_time()
            try:
                summary = act()
            except Exception as error:  # noqa: BLE001 - what must not happen is a find, too
                summary, ended = "", f"{type(error).__name__}: {error}"[:_REPORTED]
            spent = time.process_time() - began
            if spent >= cpu:
                cpu, reported = spent, summary
        peak = memory("VmHWM") - before
        _tidy_up()
        self._tell(_Done(Step(name, cpu, max(0, peak), memory("VmRSS") - before, reported, ended)))

    def _tell(self, message: _Begun | _Done) -> None:
        os.write(self._descriptor, msgspec.json.encode(message) + b"\n")


def forked(work: Callable[[Recorder], None], cpu: int = MAX_CPU, most: int = MAX_MEMORY) -> list[Step]:
    """Do the work in a child. Return its steps. The last one has `ended` if a limit or an error ended the child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _work_in_child(work, writing, cpu, most)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
        reported = [_decoder.decode(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    steps = [each.step for each in reported if isinstance(each, _Done)]
    code = os.waitstatus_to_exitcode(status)
    if code:
        name = reported[-1].name if reported and isinstance(reported[-1], _Begun) else "between steps"
        reason = f"> {cpu} s of CPU" if code == -signal.SIGXCPU else f"ended with {code}"
        steps.append(Step(name, float(cpu) if code == -signal.SIGXCPU else 0.0, 0, 0, ended=reason))
    return steps


def memory(field: str) -> int:
    """Return a figure of this process's memory in bytes: VmRSS, VmHWM or VmSize."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def _tidy_up() -> None:
    gc.collect()
    _libc.malloc_trim(0)


def _work_in_child(work: Callable[[Recorder], None], writing: int, cpu: int, most: int) -> NoReturn:
    status = 1
    try:
        logging.disable(logging.CRITICAL)  # the responses have the errors
        gc.freeze()  # as in the service, or each collection would scan the whole mirror
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
        resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + most,) * 2)
        work(Recorder(writing))
        status = 0
    except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run in the child
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201 - a child has nobody else to tell
    finally:
        sys.stderr.flush()
        os._exit(status)
