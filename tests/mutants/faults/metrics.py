"""Faults of metrics, logs and health: wrong figures, and a replica that is wrongly ready."""

from typing import Final

from tests.mutants.fault import Fault

FAULTS: Final = (
    Fault(
        id="upper-bound-in-the-next-bucket",
        breaks="A duration of exactly a bound is not in the bucket that ends there.",
        old="seconds.counts[bisect_left(_SECONDS, request.seconds)] += 1",
        new="seconds.counts[bisect_left(_SECONDS, request.seconds + 1e-12)] += 1",
        tests=("app/telemetry/metrics/test_requests.py",),
    ),
    Fault(
        id="waits-in-the-sum-of-durations",
        breaks="The sum of the seconds in the queue is that of the durations.",
        old="        waited.sum += request.waited\n",
        new="        waited.sum += request.seconds\n",
        tests=("app/telemetry/metrics/test_requests.py",),
    ),
    Fault(
        id="ready-though-draining",
        breaks="A replica that is about to end says that it is ready.",
        old='each for each in ("draining" if self.draining else "", problem, settling, self.memory.problem()) if each',
        new="each for each in (problem, settling, self.memory.problem()) if each",
        tests=("test_health*.py", "test_draining.py"),
    ),
    Fault(
        id="lines-left-out-told-once",
        breaks="Of lines that are left out in a second, one less is told.",
        old="        if window.left_out == 1:\n",
        new="        if window.left_out == 2:\n",
        tests=("test_line_rate.py",),
    ),
    Fault(
        id="scrape-of-an-older-text",
        breaks="A scrape gets the numbers of a moment before it came.",
        old="            if as_of <= arrived:",
        new="            if as_of + _SCRAPES_EVERY <= arrived:",
    ),
    Fault(
        id="scrapes-without-pause",
        breaks="Clients that scrape without pause take the time of schedulers.",
        old="await asyncio.sleep(as_of + _SCRAPES_EVERY - arrived)",
        new="await asyncio.sleep(0)",
    ),
)
