"""Latency of `kindred serve` while pods change, and whether the mirror is still right afterwards.

The fake API server and Kindred are separate processes, and this process sends the requests. On two CPUs the three
compete, so a response under churn waits for a CPU, too, and not only for events. No process is pinned. Time with churn
and time without churn take turns.
"""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tests.bench.command import Size
from tests.bench.live import (
    BenchError,
    FakeApi,
    HttpClient,
    Kindred,
    connected,
    fake_api,
    kindred,
    probing,
    repeating,
    request,
)
from tests.bench.markers import Markers
from tests.bench.questions import Form, Questions
from tests.bench.report import Latencies, Ratio, Row, Section, Span, Times

RATE: Final = 1_000
"""Pod events a second."""
MAX_TIMES: Final = 2.0
"""Limit of a p99 with churn, as a multiple of the p99 without churn."""
MAX_GC_SHARE: Final = 0.05
"""Limit of the share of time in pauses for garbage collection, as in the alert KindredGcPauses."""
_ROUNDS: Final = 4
_SECONDS: Final = 15.0
"""Length of a period with churn, and of one without."""
_REQUESTS: Final = 200
_LARGEST_RESPONSE: Final = 2**20
_SCRAPE_EVERY: Final = 5.0  # seconds
_PROBE_EVERY: Final = 0.005
_WARM_UP: Final = 2.0


@dataclass(slots=True)
class Stretches:
    """Measurements of several periods: seconds of responses and of event delays, shares of CPU."""

    responses: list[list[float]] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    ran: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)

    def row(self, name: str) -> Row:
        """Return the sum of the periods."""
        times = {"answers": Times.over(self.responses)}
        if self.delays:
            times["an event's delay"] = Times.of(self.delays)
        shares = {"on a CPU, %": self.ran, "waiting for one, %": self.waited}
        return Row(name, times, {key: 100 * sum(each) / len(each) for key, each in shares.items()})


class Bench:
    """Requests to one Kindred, and events for it. Raises BenchError for a wrong response."""

    def __init__(self, api: FakeApi, service: Kindred, size: Size) -> None:
        self._api = api
        self._service = service
        self._seconds = _SECONDS * size.effort
        self._markers = Markers(api, service)
        form = Form("names", size.nodes)
        questions = Questions(size.nodes, size.pods)
        requested = questions.of(form, _REQUESTS)
        self._requests = itertools.cycle([request("POST", "/filter", questions.body(each, form)) for each in requested])
        self.quiet = Stretches()
        self.churning = Stretches()
        self.scrapes = Stretches()
        self.livez = Stretches()

    def run(self) -> None:
        """Measure with churn and without in turns, and then other requests under churn."""
        self._filter(Stretches(), _WARM_UP)
        for _ in range(_ROUNDS):
            self._filter(self.quiet, self._seconds)
            with self._churn():
                self._filter(self.churning, self._seconds)
        with self._churn():
            self._scrape()
            with self._measured(self.livez), probing(self._service.url, _PROBE_EVERY) as responses:
                time.sleep(self._seconds)
            self.livez.responses.append([span.seconds for span in responses.spans])

    def _filter(self, into: Stretches, seconds: float) -> None:
        """Call filter without pause for `seconds`, and measure the delay of events meanwhile."""
        with self._markers.marking() as delays, self._measured(into):
            into.responses.append([span.seconds for span in self._ask(seconds)])
        into.delays += [span.seconds for span in delays.spans]

    def _scrape(self) -> None:
        """Call filter while metrics are scraped. Keep the responses whose wait overlaps a scrape."""
        scrapes = Latencies()
        client = HttpClient(self._service.url)

        def scrape() -> None:
            began = time.perf_counter()
            client.expect("GET", "/metrics")
            scrapes.spans.append(Span(began, time.perf_counter()))

        with repeating(scrape, _SCRAPE_EVERY), self._measured(self.scrapes):
            responses = Latencies(self._ask(self._seconds))
        during = responses.during(scrapes.spans)
        self.scrapes.responses.append([span.seconds for span in during.spans or responses.spans])

    def _ask(self, seconds: float) -> list[Span]:
        spans = []
        until = time.perf_counter() + seconds
        with connected(self._service.url, _LARGEST_RESPONSE) as wire:
            for sent in self._requests:
                began = time.perf_counter()
                if began >= until:
                    break
                spent, response = wire.ask(sent)
                spans.append(Span(began, began + spent))
                end = bytes(response[-500:])
                if not end.endswith(b'"Error":""}'):
                    raise BenchError(f"POST /filter: ...{end.decode(errors='replace')}")
        return spans

    @contextmanager
    def _churn(self) -> Iterator[None]:
        self._api.change("churn", {"rate": RATE})
        yield
        self._api.change("churn", {"rate": 0})
        self._api.quiet()

    @contextmanager
    def _measured(self, into: Stretches) -> Iterator[None]:
        """Measure the CPU time of the block."""
        began = time.perf_counter(), self._service.cpu_seconds(), self._service.waited_for_cpu()
        yield
        ended = time.perf_counter(), self._service.cpu_seconds(), self._service.waited_for_cpu()
        seconds, ran, waited = (now - then for now, then in zip(ended, began, strict=True))
        into.ran.append(ran / seconds)
        into.waited.append(waited / seconds)


def measure(size: Size) -> Section:
    """Measure everything, and compare the mirror with a fresh list at the end."""
    with fake_api(size.nodes, size.pods) as api, kindred(api) as service:
        service.wait_until_ready()
        bench = Bench(api, service, size)
        before, began = api.quiet()["events_sent"], time.perf_counter()
        bench.run()
        sent, share = api.quiet()["events_sent"] - before, _gc_seconds(service) / (time.perf_counter() - began)
        if faults := service.differences():
            raise BenchError(f"the mirror is wrong: {'; '.join(faults)}")
    return Section("churn", f"filter under {RATE:,} pod events a second, {size}", _rows(bench, sent, share))


def _gc_seconds(service: Kindred) -> float:
    """Return the seconds of all pauses for garbage collection since the start."""
    return sum(service.metrics().by("generation", "kindred_gc_pause_seconds_sum").values())


def _rows(bench: Bench, sent: int, gc_share: float) -> list[Row]:
    churning, quiet = bench.churning.responses, bench.quiet.responses
    return [
        bench.quiet.row("filter, no events"),
        msgspec.structs.replace(
            bench.churning.row(f"filter, {RATE:,} events a second"),
            ratios={
                "p50 to without": Ratio.of(churning, quiet),
                "p99 to without": Ratio.of(churning, quiet, 0.99, at_most=MAX_TIMES),
            },
        ),
        bench.scrapes.row("the same, during a scrape of /metrics"),
        bench.livez.row("/livez every 5 ms, with events, without filter"),
        Row(
            "the mirror, which equals a fresh list in the end",
            figures={"events sent": sent},
            ratios={f"GC pauses, of {MAX_GC_SHARE:.0%}": Ratio.single(gc_share / MAX_GC_SHARE, at_most=1)},
        ),
    ]
