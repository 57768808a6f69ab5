"""How long `kindred serve` takes from its start until it mirrors the bench cluster, and with how much memory.

The API server is the fake one, a process of its own on the same CPUs. To set apart what it costs, and what else runs on
the machine, the time is judged without the seconds in which Kindred could have run and had to wait for a CPU. The time
in which it had to wait for the server's bytes counts.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from tests.bench.latencies import Latencies
from tests.bench.live import FakeApi, fake_api, kindred, machine, probing, say

MOST_SECONDS: Final = 15.0
MOST_MEGABYTES: Final = 700.0
_PROBE_EVERY: Final = 0.005  # seconds


@dataclass(frozen=True, slots=True)
class Run:
    """One start of Kindred. Times are seconds, memory is MB of 1,000,000 bytes."""

    way: str
    start: float
    """Until it listened: imports, mostly."""
    ready: float
    waited: float
    """For a CPU."""
    cpu: float
    server_cpu: float
    decoding: float
    peak: float
    after: float
    asked: Latencies | None
    """Answers to /livez, where it was asked."""
    faults: list[str]
    """What the mirror holds, and should not, or the other way round."""

    def report(self) -> str:
        """Say all of it."""
        lines = [
            f"{self.way}:",
            f"  seconds until ready      {self.ready:8.2f}   (listening after {self.start:.2f})",
            f"  of these decoding        {self.decoding:8.2f}   ({self.decoding / self.ready:.0%})",
            f"  without waiting for CPUs {self.judged:8.2f}",
            f"  Kindred's CPU seconds    {self.cpu:8.2f}",
            f"  the server's CPU seconds {self.server_cpu:8.2f}",
            f"  peak RSS, MB             {self.peak:8.1f}   (when ready {self.after:.1f})",
        ]
        if self.asked is not None:
            lines.append(f"  answers to /livez        {self.asked}")
        return "\n".join(lines + [f"  WRONG: {fault}" for fault in self.faults])

    @property
    def judged(self) -> float:
        """The seconds that the target is about."""
        return self.ready - self.waited

    @property
    def missed(self) -> list[str]:
        """What of the target this run did not reach."""
        return [
            *([f"{self.way}: ready after more than {MOST_SECONDS:g} s"] if self.judged > MOST_SECONDS else []),
            *([f"{self.way}: more than {MOST_MEGABYTES:g} MB"] if self.peak > MOST_MEGABYTES else []),
            *([f"{self.way}: the mirror is wrong"] if self.faults else []),
        ]


def run(api: FakeApi, way: str, expected: tuple[int, int], *, probed: bool = False) -> Run:
    """Start Kindred, wait until it is ready, and look at it; `expected` are the nodes and pods of the cluster."""
    before = api.stats()["cpu_seconds"]
    with kindred(api) as service:
        with probing(service.url, _PROBE_EVERY) if probed else nullcontext() as asked:
            readiness = service.wait_until_ready()
        ready, waited = time.perf_counter(), service.waited_for_cpu()
        cpu, server_cpu = service.cpu_seconds(), api.stats()["cpu_seconds"] - before
        peak, after = service.memory("VmHWM"), service.memory("VmRSS")
        decoding = sum(service.metrics().by("resource", "kindred_watch_decode_seconds_total").values())
        found = readiness["nodes"], readiness["pods"]
        return Run(
            way,
            service.listening - service.started,
            ready - service.started,
            waited,
            cpu,
            server_cpu,
            decoding,
            peak,
            after,
            asked,
            [*([] if found == expected else [f"(nodes, pods): {found}, not {expected}"]), *service.differences()],
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a report; 1 if a run missed the target, which is of 5,000 nodes and 150,000 pods on 2 CPUs."""
    options = _options(arguments)
    expected = options.nodes, options.pods
    say(f"{machine()}; the fake API server and Kindred share them")
    say(f"Starting on a cluster of {options.nodes:,} nodes and {options.pods:,} pods ...")
    runs = []
    with fake_api(options.nodes, options.pods) as api:
        runs.append(run(api, "WatchList", expected))
        say(runs[-1].report())
        runs.append(run(api, "WatchList, while /livez is asked every 5 ms", expected, probed=True))
        say(runs[-1].report())
        api.change("behaviour", {"watch_list": "off"})
        runs.append(run(api, "paged LIST", expected))
        say(runs[-1].report())
    missed = [miss for each in runs for miss in each.missed]
    say("\n".join(missed) or f"Ready within {MOST_SECONDS:g} s and {MOST_MEGABYTES:g} MB every time, nothing amiss.")
    return 1 if missed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.sync", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
