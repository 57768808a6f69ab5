"""The time from the start of `kindred serve` until it mirrors the bench cluster, and its memory.

The fake API server is a separate process on the same CPUs. To exclude its cost, and the cost of other processes, the
judged time is without the seconds in which Kindred waited for a CPU. The time in which Kindred waited for the server's
bytes counts.
"""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from tests.bench.command import Size
from tests.bench.live import BenchError, FakeApi, fake_api, kindred, probing
from tests.bench.report import Latencies, Ratio, Row, Section, Times

MAX_SECONDS: Final = 15.0
MAX_MEGABYTES: Final = 700.0
_PROBE_EVERY: Final = 0.005  # seconds


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

    def row(self, way: str) -> Row:
        """Return the row. The bounds are shares of the limits for a cluster of 5,000 nodes and 150,000 pods."""
        figures = {
            "listening, s": self.start,
            "ready, s": self.ready,
            "waited for CPUs, s": self.waited,
            "Kindred's CPU, s": self.cpu,
            "server's CPU, s": self.server_cpu,
            "peak RSS, MB": self.peak,
            "RSS when ready, MB": self.after,
        }
        ratios = {
            f"ready, of {MAX_SECONDS:g} s": Ratio.single((self.ready - self.waited) / MAX_SECONDS, at_most=1),
            f"peak, of {MAX_MEGABYTES:g} MB": Ratio.single(self.peak / MAX_MEGABYTES, at_most=1),
        }
        times = (
            {"/livez": Times.of([span.seconds for span in self.requested.spans])} if self.requested is not None else {}
        )
        return Row(way, times, figures, ratios)


def run(api: FakeApi, size: Size, *, probed: bool = False) -> Run:
    """Start Kindred, wait until it is ready, and measure it. Raises BenchError if the mirror is wrong."""
    before = api.stats()["cpu_seconds"]
    with kindred(api) as service:
        with probing(service.url, _PROBE_EVERY) if probed else nullcontext() as requested:
            readiness = service.wait_until_ready()
        ready, waited = time.perf_counter(), service.waited_for_cpu()
        cpu, server_cpu = service.cpu_seconds(), api.stats()["cpu_seconds"] - before
        peak, after = service.memory("VmHWM"), service.memory("VmRSS")
        faults = service.differences()
        if (readiness["nodes"], readiness["pods"]) != (size.nodes, size.pods) or faults:
            raise BenchError(f"the mirror is wrong: {readiness}, {'; '.join(faults)}")
        start = service.listening - service.started
        return Run(start, ready - service.started, waited, cpu, server_cpu, peak, after, requested)


def measure(size: Size) -> Section:
    """Start Kindred in each way."""
    with fake_api(size.nodes, size.pods) as api:
        rows = [
            run(api, size).row("WatchList"),
            run(api, size, probed=True).row("WatchList, /livez asked every 5 ms"),
        ]
        api.change("behaviour", {"watch_list": "off"})
        rows.append(run(api, size).row("paged LIST"))
    return Section("sync", f"From the start until the mirror is complete, {size}", rows)
