"""How long `filter` and `/livez` wait while a crowd requests metrics, dumps and explanations without pause.

Beside explanations, the delay of a response is its time beyond the usual time. It is at most one explanation.

The fake API server, Kindred, the crowd and the scheduler are separate processes. In each round there is a period
without a crowd, and then one with each crowd. No process is pinned: on two CPUs the crowd also competes with Kindred
for the CPU, and the ratios include that.
"""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.bench.command import Size
from tests.bench.crowd import Crowd, crowding
from tests.bench.decisions import timed
from tests.bench.live import BenchError, HttpClient, Kindred, Wire, connected, fake_api, kindred, request
from tests.bench.questions import Form, Questions
from tests.bench.report import Ratio, Row, Section, Times, percentile

_ROUNDS: Final = 4
_SECONDS: Final = 3.0
"""Length of a period. Each crowd has one for each measured request."""
_REQUESTS: Final = 60
_LARGEST_RESPONSE: Final = 2**20
_MAX_TIMES: Final = 2.0
_NOBODY: Final = "nobody"
_SCRAPERS: Final = "8 on /metrics"
_READERS: Final = "4 on /explain"
_EXPLANATIONS: Final = 50
"""Explanations per round without other requests."""


@dataclass(slots=True)
class Requested:
    """One measured request: its bytes, and by crowd the seconds of its responses, by round."""

    name: str
    requests: Iterator[bytes]
    error_free: bytes
    """A part that every correct response has."""
    responses: dict[str, list[list[float]]] = field(default_factory=dict)

    def ask(self, wire: Wire, seconds: float, crowd: str) -> None:
        """Send requests without pause for `seconds`. Raises BenchError for a wrong response."""
        spent: list[float] = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            took, response = wire.ask(next(self.requests))
            spent.append(took)
            if self.error_free not in bytes(response[-500:]):
                raise BenchError(f"{self.name}: ...{bytes(response[-500:]).decode(errors='replace')}")
        self.responses.setdefault(crowd, []).append(spent)


def measure(size: Size) -> Section:
    """Measure all of it, with all plugins."""
    with fake_api(size.nodes, size.pods) as api, kindred(api, {"KINDRED_PROFILE": "full"}) as service:
        service.wait_until_ready()
        requested = _requested(size)
        crowds = _crowds(service, size)
        seconds = _SECONDS * size.effort
        responded: dict[str, int] = dict.fromkeys((crowd.name for crowd in crowds), 0)
        explanations: list[list[float]] = []
        _ask_all(service, requested, seconds, "")
        for _ in range(_ROUNDS):
            _ask_all(service, requested, seconds, _NOBODY)
            explanations.append(_explained(crowds[-1], size.samples(_EXPLANATIONS)))
            for crowd in crowds:
                with crowding(crowd) as responses:
                    _ask_all(service, requested, seconds, crowd.name)
                responded[crowd.name] += responses[0]
    rows = [_row(each, name, explanations) for each in requested for name in (_NOBODY, *responded)]
    reported = ", ".join(f"{count:,} to {name}" for name, count in responded.items())
    return Section(
        "busy", f"filter and /livez while others look, profile full, {size}", rows, [f"Answers: {reported}."]
    )


def _requested(size: Size) -> list[Requested]:
    questions = Questions(size.nodes, size.pods)
    requested = []
    for nodes in (min(100, size.nodes), size.nodes):
        form = Form(f"filter, {nodes:,} names", nodes)
        bodies = [request("POST", "/filter", questions.body(each, form)) for each in questions.of(form, _REQUESTS)]
        requested.append(Requested(form.name, itertools.cycle(bodies), b'"Error":""}'))
    requested.append(Requested("/livez", itertools.repeat(request("GET", "/livez", b"")), b"ok"))
    return requested


def _crowds(service: Kindred, size: Size) -> list[Crowd]:
    questions = Questions(size.nodes, size.pods)
    form = Form("explain", size.nodes)
    body = questions.body(next(questions.of(form, 1)), form)
    return [
        Crowd(_SCRAPERS, 8, service.url, "GET", "/metrics"),
        Crowd("10 on /debug/mirror", 10, service.admin_url, "GET", "/debug/mirror"),
        Crowd(_READERS, 4, service.admin_url, "POST", "/explain", body),
    ]


def _ask_all(service: Kindred, requested: list[Requested], seconds: float, crowd: str) -> None:
    with connected(service.url, _LARGEST_RESPONSE) as wire:
        for each in requested:
            each.ask(wire, seconds, crowd)


def _explained(crowd: Crowd, count: int) -> list[float]:
    client = HttpClient(crowd.url)
    spent = [timed(lambda: client.expect(crowd.method, crowd.path, crowd.body))[0] for _ in range(count)]
    client.close()
    return spent


def _row(requested: Requested, crowd: str, explanations: list[list[float]]) -> Row:
    alone, among = requested.responses[_NOBODY], requested.responses[crowd]
    times = {"answers": Times.over(among)}
    if crowd == _NOBODY:
        return Row(f"{requested.name}, {crowd}", times)
    at_most = _MAX_TIMES if crowd == _SCRAPERS and requested.name.startswith("filter") else None
    ratios = {"p50 to nobody": Ratio.of(among, alone, at_most=at_most), "p99 to nobody": Ratio.of(among, alone, 0.99)}
    if crowd == _READERS and requested.name.startswith("filter"):
        usual = percentile([each for one in alone for each in one], 0.5)
        delays = [[max(0.0, seconds - usual) for seconds in each] for each in among]
        # Both at p99, because on shared cores the machine causes the maximum.
        ratios["delay at p99 to an explanation's p99"] = Ratio.of(delays, explanations, 0.99, at_most=1.0)
    return Row(f"{requested.name}, {crowd}", times, ratios=ratios)
