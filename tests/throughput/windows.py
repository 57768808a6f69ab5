"""When pods were bound, by the scheduler's log, and how much CPU programs spent in between."""

import datetime as dt
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

_BOUND: Final = re.compile(
    rb'^I(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}).*"Successfully bound pod to node"'
    rb'(?: \w+="[^"]*")*? pod="[^/"]+/([^"]+)"',  # a member has the name of its group first
    re.MULTILINE,
)
_EVERY: Final = 0.02  # seconds; the kernel counts in steps of 10 ms

CpuReader = Callable[[], float]


def binding_times(log: bytes, year: int, prefix: str = "") -> list[float]:
    """Return when the pods whose names begin with `prefix` were bound, in seconds since the epoch.

    The log is that of klog: local time without a year.
    """
    found = []
    for *groups, name in _BOUND.findall(log):
        if not name.startswith(prefix.encode()):
            continue
        month, day, hour, minute, second, microsecond = map(int, groups)
        local = dt.datetime(year, month, day, hour, minute, second, microsecond)  # noqa: DTZ001  # local, as klog has it
        found.append(local.timestamp())
    return found


class CpuSamples:
    """CPU seconds of programs at times since the epoch, which a thread takes while `sampling` lasts."""

    def __init__(self, readers: Mapping[str, CpuReader]) -> None:
        self._readers = dict(readers)
        self._times: list[float] = []
        self._seconds: dict[str, list[float]] = {name: [] for name in readers}

    def take(self, now: float) -> None:
        """Take a sample of each program."""
        self._times.append(now)
        for name, read in self._readers.items():
            self._seconds[name].append(read())

    def spent(self, begin: float, end: float) -> dict[str, float]:
        """Return program -> CPU seconds between two times; between samples, as if spent evenly."""
        return {name: self._at(end, values) - self._at(begin, values) for name, values in self._seconds.items()}

    def _at(self, moment: float, values: Sequence[float]) -> float:
        after = min(max(bisect_left(self._times, moment), 1), len(self._times) - 1)
        before_time, after_time = self._times[after - 1], self._times[after]
        share = (moment - before_time) / (after_time - before_time)
        return values[after - 1] + min(max(share, 0.0), 1.0) * (values[after] - values[after - 1])


@contextmanager
def sampling(readers: Mapping[str, CpuReader]) -> Iterator[CpuSamples]:
    """Take samples until the block ends. A program must not end before."""
    samples = CpuSamples(readers)
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(_EVERY):
            samples.take(time.time())

    samples.take(time.time())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()
        samples.take(time.time())
