"""The delay of schedulers' requests while people request explanations without pause: at most one explanation.

Time with people and time without people take turns. The delay of a response is its time beyond the time of responses
without people. Scheduler requests come from this process, and requests of people from its threads, which mostly wait.
"""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from tests.bench import cluster, command
from tests.bench.command import Size
from tests.bench.latencies import Latencies, Span, percentile
from tests.bench.live import BenchError, HttpClient, Kindred, fake_api, kindred, repeating
from tests.bench.questions import Form, Questions
from tests.bench.report import Ratio, Row, Section, Times
from tests.bench.wire import connected, request

PEOPLE: Final = 4
_ROUNDS: Final = 4
_SECONDS: Final = 10.0
"""Length of a period with people, and of one without."""
_REQUESTS: Final = 200
_ALONE: Final = 50
"""Explanations per round without other requests."""
_LARGEST_ANSWER: Final = 2**20


class Bench:
    """Requests and explanations of one Kindred. Raises BenchError for a wrong response."""

    def __init__(self, service: Kindred, size: Size) -> None:
        self._service = service
        self._seconds = _SECONDS * size.effort
        self._alone = size.samples(_ALONE)
        form = Form("names", size.nodes)
        questions = Questions(size.nodes, size.pods)
        bodies = [questions.body(each, form) for each in questions.of(form, _REQUESTS)]
        self._requests = itertools.cycle([request("POST", "/filter", body) for body in bodies])
        self._explained = itertools.cycle(bodies)
        # Over a list, because several threads cannot share a generator.
        self._nodes = itertools.cycle([cluster.node_name(index) for index in range(0, size.nodes, 7)])
        self.quiet: list[list[float]] = []
        self.beside: list[list[float]] = []
        self.alone: list[list[float]] = []
        self.explanations: list[list[float]] = []

    def run(self) -> None:
        """Measure with people and without people in turns."""
        self._ask(1.0)
        for _ in range(_ROUNDS):
            self.quiet.append(self._ask(self._seconds))
            client = HttpClient(self._service.admin_url)
            self.alone.append([self._explain(client).seconds for _ in range(self._alone)])
            client.close()
            with self._people() as asked:
                self.beside.append(self._ask(self._seconds))
            self.explanations.append([span.seconds for each in asked for span in each.spans])

    @contextmanager
    def _people(self) -> Iterator[list[Latencies]]:
        everybody = [Latencies() for _ in range(PEOPLE)]
        with ExitStack() as stack:
            for asked in everybody:
                client = HttpClient(self._service.admin_url)
                stack.callback(client.close)
                act = lambda asked=asked, client=client: asked.spans.append(self._explain(client))  # noqa: E731
                stack.enter_context(repeating(act, 0.0))
            yield everybody

    def _explain(self, client: HttpClient) -> Span:
        path = f"/explain?node={next(self._nodes)}"
        began = time.perf_counter()
        answer = client.expect("POST", path, next(self._explained))
        ended = time.perf_counter()
        if "summary" not in json.loads(answer):
            raise BenchError(f"POST {path}: {answer[:500].decode(errors='replace')}")
        return Span(began, ended)

    def _ask(self, seconds: float) -> list[float]:
        spent = []
        until = time.perf_counter() + seconds
        with connected(self._service.url, _LARGEST_ANSWER) as wire:
            while time.perf_counter() < until:
                took, answer = wire.ask(next(self._requests))
                spent.append(took)
                if not bytes(answer[-500:]).endswith(b'"Error":""}'):
                    raise BenchError(f"POST /filter: ...{bytes(answer[-500:]).decode(errors='replace')}")
        return spent


def measure(size: Size) -> Section:
    """Measure all of it."""
    with fake_api(size.nodes, size.pods) as api, kindred(api) as service:
        service.wait_until_ready()
        bench = Bench(service, size)
        bench.run()
    return Section("beside", f"filter while {PEOPLE} people ask for explanations without pause, {size}", _rows(bench))


def _rows(bench: Bench) -> list[Row]:
    usual = percentile(list(itertools.chain(*bench.quiet)), 0.5)
    delays = [[max(0.0, seconds - usual) for seconds in each] for each in bench.beside]
    return [
        Row("filter, nobody else asks", {"answers": _all(bench.quiet)}),
        Row("an explanation with one node, nobody else asks", {"answers": _all(bench.alone)}),
        Row(
            f"filter, {PEOPLE} people ask",
            {"answers": _all(bench.beside)},
            {"delay at p50, ms": percentile(list(itertools.chain(*delays)), 0.5) * 1e3},
            # Both at p99, because on shared cores the machine causes the maximum.
            {"delay at p99 to an explanation's p99": Ratio.of(delays, bench.alone, 0.99, at_most=1.0)},
        ),
        Row(f"explanations, {PEOPLE} at once beside filter", {"answers": _all(bench.explanations)}),
    ]


def _all(rounds: list[list[float]]) -> Times:
    return Times.of(list(itertools.chain(*rounds)))


if __name__ == "__main__":
    command.run("tests.bench.beside", __doc__, measure)
