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
_LARGEST_ANSWER: Final = 2**20
_MAX_TIMES: Final = 2.0
_NOBODY: Final = "nobody"
_SCRAPERS: Final = "8 on /metrics"
_READERS: Final = "4 on /explain"
_EXPLANATIONS: Final = 50
"""Explanations per round without other requests."""


@dataclass(slots=True)
class Asked:
    """One measured request: its bytes, and by crowd the seconds of its responses, by round."""

    name: str
    requests: Iterator[bytes]
    error_free: bytes
    """A part that every correct response has."""
    answers: dict[str, list[list[float]]] = field(default_factory=dict)

    def ask(self, wire: Wire, seconds: float, crowd: str) -> None:
        """Send requests without pause for `seconds`. Raises BenchError for a wrong response."""
        spent: list[float] = []
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            took, answer = wire.ask(next(self.requests))
            spent.append(took)
            if self.error_free not in bytes(answer[-500:]):
                raise BenchError(f"{self.name}: ...{bytes(answer[-500:]).decode(errors='replace')}")
        self.answers.setdefault(crowd, []).append(spent)


def measure(size: Size) -> Section:
    """Measure all of it, with all plugins."""
    with fake_api(size.nodes, size.pods) as api, kindred(api, {"KINDRED_PROFILE": "full"}) as service:
        service.wait_until_ready()
        asked = _asked(size)
        crowds = _crowds(service, size)
        seconds = _SECONDS * size.effort
        answered: dict[str, int] = dict.fromkeys((crowd.name for crowd in crowds), 0)
        explanations: list[list[float]] = []
        _ask_all(service, asked, seconds, "")
        for _ in range(_ROUNDS):
            _ask_all(service, asked, seconds, _NOBODY)
            explanations.append(_explained(crowds[-1], size.samples(_EXPLANATIONS)))
            for crowd in crowds:
                with crowding(crowd) as answers:
                    _ask_all(service, asked, seconds, crowd.name)
                answered[crowd.name] += answers[0]
    rows = [_row(each, name, explanations) for each in asked for name in (_NOBODY, *answered)]
    told = ", ".join(f"{count:,} to {name}" for name, count in answered.items())
    return Section("busy", f"filter and /livez while others look, profile full, {size}", rows, [f"Answers: {told}."])


def _asked(size: Size) -> list[Asked]:
    questions = Questions(size.nodes, size.pods)
    asked = []
    for nodes in (min(100, size.nodes), size.nodes):
        form = Form(f"filter, {nodes:,} names", nodes)
        bodies = [request("POST", "/filter", questions.body(each, form)) for each in questions.of(form, _REQUESTS)]
        asked.append(Asked(form.name, itertools.cycle(bodies), b'"Error":""}'))
    asked.append(Asked("/livez", itertools.repeat(request("GET", "/livez", b"")), b"ok"))
    return asked


def _crowds(service: Kindred, size: Size) -> list[Crowd]:
    questions = Questions(size.nodes, size.pods)
    form = Form("explain", size.nodes)
    body = questions.body(next(questions.of(form, 1)), form)
    return [
        Crowd(_SCRAPERS, 8, service.url, "GET", "/metrics"),
        Crowd("10 on /debug/mirror", 10, service.admin_url, "GET", "/debug/mirror"),
        Crowd(_READERS, 4, service.admin_url, "POST", "/explain", body),
    ]


def _ask_all(service: Kindred, asked: list[Asked], seconds: float, crowd: str) -> None:
    with connected(service.url, _LARGEST_ANSWER) as wire:
        for each in asked:
            each.ask(wire, seconds, crowd)


def _explained(crowd: Crowd, count: int) -> list[float]:
    client = HttpClient(crowd.url)
    spent = [timed(lambda: client.expect(crowd.method, crowd.path, crowd.body))[0] for _ in range(count)]
    client.close()
    return spent


def _row(asked: Asked, crowd: str, explanations: list[list[float]]) -> Row:
    alone, among = asked.answers[_NOBODY], asked.answers[crowd]
    times = {"answers": Times.over(among)}
    if crowd == _NOBODY:
        return Row(f"{asked.name}, {crowd}", times)
    at_most = _MAX_TIMES if crowd == _SCRAPERS and asked.name.startswith("filter") else None
    ratios = {"p50 to nobody": Ratio.of(among, alone, at_most=at_most), "p99 to nobody": Ratio.of(among, alone, 0.99)}
    if crowd == _READERS and asked.name.startswith("filter"):
        usual = percentile([each for one in alone for each in one], 0.5)
        delays = [[max(0.0, seconds - usual) for seconds in each] for each in among]
        # Both at p99, because on shared cores the machine causes the maximum.
        ratios["delay at p99 to an explanation's p99"] = Ratio.of(delays, explanations, 0.99, at_most=1.0)
    return Row(f"{asked.name}, {crowd}", times, ratios=ratios)
