"""How fast `kindred serve` answers while pods change, and whether the mirror still is right after it.

The fake API server and Kindred are processes of their own, and the questions come from this one. On two CPUs the three
compete, so that an answer under churn waits for a CPU, too, and not only for events. Nothing is pinned.
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from tests.bench import cluster
from tests.bench.latencies import Latencies, Span
from tests.bench.live import (
    BenchError,
    FakeApi,
    HttpClient,
    Kindred,
    fake_api,
    kindred,
    machine,
    probing,
    repeating,
    say,
)

LONGEST_GC_PAUSE: Final = 0.050  # seconds
_PODS_PER_KIND: Final = 25
_SCRAPE_EVERY: Final = 5.0  # seconds
_MARK_EVERY: Final = 1.0
_PROBE_EVERY: Final = 0.005
_LOOK_EVERY: Final = 0.001
_LONGEST_DELAY: Final = 60.0
_WARM_UP: Final = 2.0
_PODS: Final = "/api/v1/pods"


class Questions:
    """Bodies of `POST /filter` about all nodes; kinds in turns, names in an order that begins elsewhere each time."""

    def __init__(self, nodes: int, pods: int) -> None:
        names = [cluster.node_name(index) for index in range(nodes)]
        apps = cluster.app_count(pods)
        starts = range(0, nodes, max(1, nodes // 97))
        self._names = itertools.cycle([json.dumps(names[start:] + names[:start]).encode() for start in starts])
        self._pods = itertools.cycle(
            [
                json.dumps(cluster.incoming(kind, index, apps)).encode()
                for index in range(_PODS_PER_KIND)
                for kind in cluster.KINDS
            ]
        )

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (next(self._pods), next(self._names))


class Markers:
    """Measures how late the mirror is, by pods on nodes that nobody has, which the mirror can be asked for by name."""

    def __init__(self, api: FakeApi, service: Kindred) -> None:
        self._api = FakeApi(api.url)  # a connection of its own: this is for a thread
        self._client = HttpClient(service.admin_url)
        self._made = 0

    def mark(self) -> Span:
        """Create a pod and wait until the mirror has it, and so all earlier events of pods. Raises BenchError."""
        self._made += 1
        name = f"marker-{self._made}"
        pod = {"metadata": {"name": name, "namespace": "ns-000"}, "spec": {"nodeName": name, "containers": []}}
        began = time.perf_counter()
        self._api.change("objects", [{"verb": "create", "path": _PODS, "object": pod}])
        while self._client.ask("GET", f"/debug/mirror?node={name}")[0] != HTTPStatus.OK:
            if time.perf_counter() - began > _LONGEST_DELAY:
                raise BenchError(f"an event did not reach the mirror within {_LONGEST_DELAY:g} s")
            time.sleep(_LOOK_EVERY)
        delay = Span(began, time.perf_counter())
        self._api.change("objects", [{"verb": "delete", "path": _PODS, "name": name, "namespace": "ns-000"}])
        return delay

    @contextmanager
    def marking(self) -> Iterator[Latencies]:
        """Mark every second for the time of the block."""
        delays = Latencies()
        with repeating(lambda: delays.spans.append(self.mark()), _MARK_EVERY):
            yield delays


@dataclass(frozen=True, slots=True)
class Phase:
    """What was measured in a stretch of time."""

    answers: Latencies
    ran: float
    """Share of the time that Kindred was on a CPU."""
    waited: float
    """Share of the time in which it could have been and had to wait for one."""

    def __str__(self) -> str:
        return f"{self.answers}   (on a CPU {self.ran:.0%}, waiting for one {self.waited:.0%})"


class Bench:
    """Questions to one Kindred."""

    def __init__(self, service: Kindred, questions: Questions) -> None:
        self._service = service
        self._questions = iter(questions)
        self._client = HttpClient(service.url)

    def filter(self, seconds: float) -> Phase:
        """Call filter without pause for so long. Raises BenchError for an answer with an error."""
        began = self._usage()
        return self._phase(self._ask(time.perf_counter() + seconds), began)

    def livez(self, seconds: float) -> Phase:
        """Call only /livez for so long, every few milliseconds: what it waits for is what stops the event loop."""
        began = self._usage()
        with probing(self._service.url, _PROBE_EVERY) as answers:
            time.sleep(seconds)
        return self._phase(answers, began)

    def _ask(self, until: float) -> Latencies:
        asked = Latencies()
        for body in self._questions:
            began = time.perf_counter()
            if began >= until:
                break
            status, answer = self._client.ask("POST", "/filter", body)
            asked.spans.append(Span(began, time.perf_counter()))
            if status != HTTPStatus.OK or not answer.endswith(b'"Error":""}'):
                raise BenchError(f"POST /filter: {status} ...{answer[-500:].decode(errors='replace')}")
        return asked

    def _usage(self) -> tuple[float, float, float]:
        return time.perf_counter(), self._service.cpu_seconds(), self._service.waited_for_cpu()

    def _phase(self, answers: Latencies, began: tuple[float, float, float]) -> Phase:
        seconds, ran, waited = (now - then for now, then in zip(self._usage(), began, strict=True))
        return Phase(answers, ran / seconds, waited / seconds)


class Events:
    """How many events the server has sent and Kindred has received since this was made."""

    def __init__(self, api: FakeApi, service: Kindred) -> None:
        self._api = api
        self._service = service
        self._sent = api.quiet()["events_sent"]
        self._received = self._count()

    def both(self) -> tuple[int, int]:
        """Return (sent, received), once they are equal, or do not become so in a second."""
        sent = self._api.quiet()["events_sent"] - self._sent
        deadline = time.perf_counter() + 1.0
        while (received := self._count() - self._received) != sent and time.perf_counter() < deadline:
            time.sleep(0.1)
        return sent, received

    def _count(self) -> int:
        return round(sum(self._service.metrics().by("resource", "kindred_watch_events_total").values()))


class Report:
    """All measurements of one Kindred, each told as soon as it is made."""

    def __init__(self, api: FakeApi, service: Kindred, bench: Bench) -> None:
        self._api = api
        self._service = service
        self._bench = bench
        self._markers = Markers(api, service)

    def filter(self, title: str, seconds: float) -> Latencies:
        """Measure filter, and beside it the delay of events."""
        with self._markers.marking() as delays:
            phase = self._bench.filter(seconds)
        say(f"{title}\n  filter    {phase}\n  an event  {delays}")
        return phase.answers

    def scrapes(self, seconds: float) -> None:
        """Measure filter while the metrics are scraped."""
        scrapes = Latencies()
        client = HttpClient(self._service.url)

        def scrape() -> None:
            began = time.perf_counter()
            client.expect("GET", "/metrics")
            scrapes.spans.append(Span(began, time.perf_counter()))

        with repeating(scrape, _SCRAPE_EVERY):
            phase = self._bench.filter(seconds)
        say(f"the same, and /metrics scraped every {_SCRAPE_EVERY:g} s\n  scrapes   {scrapes}\n  filter    {phase}")
        say(f"  meanwhile {phase.answers.during(scrapes.spans)}")

    def livez(self, seconds: float) -> None:
        """Measure /livez alone."""
        say(f"churn without filter, /livez every {_PROBE_EVERY * 1e3:g} ms\n  /livez    {self._bench.livez(seconds)}")

    def last_event(self) -> None:
        """Measure the delay of one event."""
        say(f"the last event was in the mirror after {self._markers.mark().seconds * 1e3:.1f} ms")

    def judge(self) -> int:
        """Return 1 if the garbage collector paused for too long, or if the mirror is wrong."""
        pauses = self._service.metrics().by("generation", "kindred_gc_longest_pause_seconds")
        told = ", ".join(f"{seconds * 1e3:.1f} ms (generation {name})" for name, seconds in pauses.items())
        say(f"longest pauses of the garbage collector: {told}")
        faults = self._service.differences()
        if max(pauses.values()) > LONGEST_GC_PAUSE:
            faults.append(f"the garbage collector paused for more than {LONGEST_GC_PAUSE * 1e3:g} ms")
        say("\n".join(faults) or "The mirror and a fresh list of the cluster are the same.")
        return 1 if faults else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a report; 1 if the garbage collector paused for too long, or if the mirror is wrong in the end."""
    options = _options(arguments)
    say(f"{machine()}; the fake API server, Kindred and the one who asks share them, unpinned")
    say(f"Starting on a cluster of {options.nodes:,} nodes and {options.pods:,} pods ...")
    with fake_api(options.nodes, options.pods) as api, kindred(api) as service:
        service.wait_until_ready()
        bench = Bench(service, Questions(options.nodes, options.pods))
        bench.filter(_WARM_UP)
        report = Report(api, service, bench)
        quiet = report.filter("without churn", options.seconds)
        events, began = Events(api, service), time.perf_counter()
        api.change("churn", {"rate": options.rate})
        churning = report.filter(f"{options.rate:g} pod events a second", options.seconds)
        ratios = [churning.percentile(share) / quiet.percentile(share) for share in (0.5, 0.99)]
        say(f"  filter with churn to filter without: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f}")
        report.scrapes(options.seconds / 4)
        report.livez(options.seconds / 4)
        api.change("churn", {"rate": 0})
        lasted = time.perf_counter() - began
        report.last_event()
        sent, received = events.both()
        say(f"{sent:,} events sent, {sent / lasted:,.0f} a second; {received:,} received")
        return report.judge()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.churn", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rate", type=float, default=1_000, help="pod events a second")
    parser.add_argument("--seconds", type=float, default=60, help="of filter with churn, and as long without")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
