"""The time from the start of `kindred serve` until it mirrors the bench cluster, its memory, and the cost of a relist.

The fake API server is a separate process on the same CPUs. To exclude its cost, and the cost of other processes, the
judged time is without the seconds in which Kindred waited for a CPU. The time in which Kindred waited for the server's
bytes counts. A relist is judged by Kindred's CPU time, because nothing shows when it ends but that Kindred is idle.
"""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from tests.bench.command import Size
from tests.bench.live import BenchError, FakeApi, Kindred, fake_api, kindred, probing
from tests.bench.report import Latencies, Ratio, Row, Section, Times
from tests.fake_apiserver.resources import PODS

_PROBE_EVERY: Final = 0.005  # seconds
_IDLE: Final = 0.5  # seconds in which an idle Kindred takes less CPU than _LITTLE
_LITTLE: Final = 0.05  # seconds
_RETRIED: Final = 2.0  # seconds, within which a relist begins
_LARGE: Final = Size(15_000, 450_000)


class Bounds(NamedTuple):
    """The most that a sync may take: seconds, and MB of 1,000,000 bytes."""

    seconds: float
    megabytes: float

    def ratios(self, seconds: float, megabytes: float, name: str = "ready") -> dict[str, Ratio]:
        """Return the shares of the bounds."""
        return {
            f"{name}, of {self.seconds:g} s": Ratio.single(seconds / self.seconds, at_most=1),
            f"peak, of {self.megabytes:g} MB": Ratio.single(megabytes / self.megabytes, at_most=1),
        }


_BOUNDS: Final[Mapping[Size, Bounds]] = MappingProxyType({Size(): Bounds(3.0, 260.0), _LARGE: Bounds(10.0, 600.0)})


@dataclass(frozen=True, slots=True)
class Run:
    """One start of Kindred. Times are seconds, memory is MB of 1,000,000 bytes."""

    start: float
    """Until Kindred listened. Most of it is imports."""
    ready: float
    waited: float
    """Waiting for a CPU."""
    cpu: float
    server_cpu: float
    peak: float
    after: float
    requested: Latencies | None
    """Responses of /livez, if it was requested."""
    relist: tuple[float, float] | None
    """CPU time of a relist, and the peak of the memory since the start, if there was one."""

    def rows(self, way: str, bounds: Bounds) -> list[Row]:
        """Return the row of the start, and that of the relist."""
        figures = {
            "listening, s": self.start,
            "ready, s": self.ready,
            "waited for CPUs, s": self.waited,
            "Kindred's CPU, s": self.cpu,
            "server's CPU, s": self.server_cpu,
            "peak RSS, MB": self.peak,
            "RSS when ready, MB": self.after,
        }
        times = (
            {"/livez": Times.of([span.seconds for span in self.requested.spans])} if self.requested is not None else {}
        )
        rows = [Row(way, times, figures, bounds.ratios(self.ready - self.waited, self.peak))]
        if self.relist is not None:
            cpu, peak = self.relist
            figures = {"Kindred's CPU, s": cpu, "peak RSS, MB": peak}
            rows.append(Row(f"{way}, a relist", {}, figures, bounds.ratios(cpu, peak, "CPU")))
        return rows


def run(api: FakeApi, size: Size, *, probed: bool = False, relisted: bool = False) -> Run:
    """Start Kindred, wait until it is ready, and measure it. Raises BenchError if the mirror is wrong."""
    before = api.stats()["cpu_seconds"]
    with kindred(api) as service:
        with probing(service.url, _PROBE_EVERY) if probed else nullcontext() as requested:
            readiness = service.wait_until_ready()
        ready, waited = time.perf_counter(), service.waited_for_cpu()
        cpu, server_cpu = service.cpu_seconds(), api.stats()["cpu_seconds"] - before
        peak, after = service.memory("VmHWM"), service.memory("VmRSS")
        relist = (_relist(api, service), service.memory("VmHWM")) if relisted else None
        faults = service.differences()
        if (readiness["nodes"], readiness["pods"]) != (size.nodes, size.pods) or faults:
            raise BenchError(f"the mirror is wrong: {readiness}, {'; '.join(faults)}")
        start = service.listening - service.started
        return Run(start, ready - service.started, waited, cpu, server_cpu, peak, after, requested, relist)


def _relist(api: FakeApi, service: Kindred) -> float:
    """End the watch of pods at a version that the server no longer has. Return the CPU time until Kindred is idle."""
    before = service.cpu_seconds()
    expired = {"action": "refuse", "fields": {"answer": "expired"}, "path": PODS.path, "kinds": ["watch"], "times": 1}
    api.change("faults", [expired])
    api.change("disturb", {"action": "End", "fields": {}, "path": PODS.path})
    while not service.metrics().by("resource", "kindred_watch_relists_total").get("pods"):
        time.sleep(_IDLE)
    time.sleep(_RETRIED)
    last, now = before, service.cpu_seconds()
    while now - last > _LITTLE:
        time.sleep(_IDLE)
        last, now = now, service.cpu_seconds()
    return now - before


def measure(size: Size) -> Section:
    """Start Kindred in each way. A full run has a cluster of three times the size, too."""
    bounds = _BOUNDS.get(size, _BOUNDS[Size()])
    with fake_api(size.nodes, size.pods) as api:
        rows = [
            *run(api, size, relisted=True).rows("WatchList", bounds),
            *run(api, size, probed=True).rows("WatchList, /livez asked every 5 ms", bounds),
        ]
        api.change("behaviour", {"watch_list": "off"})
        rows += run(api, size).rows("paged LIST", bounds)
    if size == Size():
        with fake_api(_LARGE.nodes, _LARGE.pods) as api:
            rows += run(api, _LARGE, probed=True).rows(f"WatchList, {_LARGE}", _BOUNDS[_LARGE])
    return Section("sync", f"From the start until the mirror is complete, {size}", rows)
