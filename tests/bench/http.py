"""Kindred's HTTP verbs against a bare ASGI app that reads the same bodies and returns the same bytes: the floor.

Both are separate processes. They get requests in turns, several in a row, over one kept connection each. As from
kube-scheduler, the order of the names has another start in each request. The pods are of all kinds in turns, and of
known classes. For the CPUs see `awake`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.bench.awake import apart_from, cpus_awake
from tests.bench.command import Size
from tests.bench.live import BenchError, Process, Wire, connected, fake_api, floor_app, kindred, request
from tests.bench.questions import Form, Questions
from tests.bench.report import Ratio, Row, Section, Times

Verb: TypeAlias = Literal["filter", "prioritize"]

VERBS: Final[tuple[Verb, ...]] = ("filter", "prioritize")
ROUNDS: Final = 5
_IN_A_ROW: Final = 20
"""Requests to one side before the other has its turn. A scheduler has only one extender, whose data stay in the CPU's
cache between requests. If the sides changed with each request, each would find the other's data there."""
_NOTE: Final = (
    "While this is measured, the CPUs are kept from their idle states, after each of which a virtual CPU begins with "
    "empty caches; both servers are on one of them, and the client is on another."
)
_LARGEST_RESPONSE: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Trial:
    """A form, the number of its requests in a round, the repeats of each, and the limit and the aim."""

    form: Form
    questions: int
    repeats: int = 1
    at_most: float | None = None
    aim: float | None = None


class Exchange(NamedTuple):
    """One request to both sides, and the response of both."""

    verb: Verb
    ours: bytes
    floor: bytes
    response: bytes


@dataclass(slots=True)
class Side:
    """One of the two servers, with its seconds of waiting, by verb, and of CPU, by round."""

    process: Process
    wire: Wire
    waited: dict[Verb, list[list[float]]] = field(default_factory=lambda: {verb: [] for verb in VERBS})
    cpu: list[list[float]] = field(default_factory=list)

    def ask(self, verb: Verb, sent: bytes, response: bytes) -> None:
        """Send a request, and compare the response with the recorded one. Raises BenchError."""
        seconds, body = self.wire.ask(sent)
        if body != response:
            raise BenchError(f"another answer than before: {bytes(body[:500]).decode(errors='replace')}")
        self.waited[verb][-1].append(seconds)

    @contextmanager
    def round(self, questions: int) -> Iterator[None]:
        """Count the CPU time of a round."""
        for each in self.waited.values():
            each.append([])
        before = self.process.main_thread_cpu_seconds()
        yield
        self.cpu.append([(self.process.main_thread_cpu_seconds() - before) / questions])


class Pair:
    """Kindred and the floor app, for one trial."""

    def __init__(self, ours: tuple[Process, Wire], floor: tuple[Process, Wire]) -> None:
        self.ours = Side(*ours)
        self.floor = Side(*floor)

    def round(self, questions: Questions, trial: Trial, count: int) -> None:
        """Send new requests as a scheduler does: `filter`, and then `prioritize` with the nodes that passed."""
        exchanges: list[Exchange] = []
        for requested in questions.of(trial.form, count):
            exchanges.append(
                self._recorded("filter", trial.form, questions.body(requested, trial.form), len(exchanges))
            )
            fitting = requested.fitting(exchanges[-1].response)
            if fitting.names:
                body = questions.body(fitting, trial.form)
                exchanges.append(self._recorded("prioritize", trial.form, body, len(exchanges)))
        with self.ours.round(len(exchanges)), self.floor.round(len(exchanges)):
            for number, start in enumerate(range(0, len(exchanges), _IN_A_ROW)):
                in_a_row = exchanges[start : start + _IN_A_ROW]
                turns = (self._ask_us, self._ask_floor)
                for ask in turns if number % 2 else reversed(turns):
                    ask(in_a_row)

    def _ask_us(self, exchanges: list[Exchange]) -> None:
        for each in exchanges:
            self.ours.ask(each.verb, each.ours, each.response)

    def _ask_floor(self, exchanges: list[Exchange]) -> None:
        for each in exchanges:
            self.floor.ask(each.verb, each.floor, each.response)

    def _recorded(self, verb: Verb, form: Form, body: bytes, index: int) -> Exchange:
        """Send a request to Kindred, and set its response in the floor app."""
        path = f"/{verb}/{index}"
        ours = request("POST", f"/{verb}", body, *form.headers)
        response = bytes(self.ours.wire.ask(ours)[1])
        if verb == "filter" and not response.endswith(b'"Error":""}'):
            raise BenchError(f"/filter answered ...{response[-500:].decode(errors='replace')}")
        self.floor.wire.ask(request("PUT", path, response))
        return Exchange(verb, ours, request("POST", path, body, *form.headers), response)


def measure(size: Size) -> Section:
    """Measure all forms."""
    rows, cpu = [], []
    with fake_api(size.nodes, size.pods) as api, kindred(api) as service, floor_app() as (process, url):
        service.wait_until_ready()
        questions = Questions(size.nodes, size.pods)
        for trial in _trials(size.nodes):
            with connected(service.url, _LARGEST_RESPONSE) as ours, connected(url, _LARGEST_RESPONSE) as floor:
                pair = Pair((service, ours), (process, floor))
                with cpus_awake(), apart_from((service.pid, process.pid)):
                    for _ in range(ROUNDS):
                        pair.round(questions, trial, size.samples(trial.questions, least=4))
            rows += [_row(verb, trial, pair) for verb in VERBS]
            cpu.append(_cpu_row(trial, pair))
    title = f"HTTP verbs against a bare ASGI app that reads and answers the same bytes, {size}"
    return Section("http", title, [*rows, *cpu], [_NOTE])


def _trials(nodes: int) -> list[Trial]:
    """Return the trials for a cluster with `nodes` nodes."""
    few = nodes // 10
    return [
        Trial(Form(f"{nodes:,} names", nodes), 100, at_most=2.5, aim=1.5),
        Trial(Form(f"{few:,} names", few), 200, at_most=2.0),
        Trial(Form(f"{nodes:,} whole nodes", nodes, whole=True), 4, repeats=3, at_most=1.5),
        Trial(Form(f"{nodes:,} names, cache off", nodes, headers=(("Kindred-Cache", "off"),)), 100),
    ]


def _row(verb: Verb, trial: Trial, pair: Pair) -> Row:
    ours, floor = pair.ours.waited[verb], pair.floor.waited[verb]
    return Row(
        f"{verb}, {trial.form.name}",
        {"Kindred": Times.over(ours), "floor": Times.over(floor)},
        {},
        {"p50": Ratio.of(ours, floor, at_most=trial.at_most, aim=trial.aim), "p99": Ratio.of(ours, floor, 0.99)},
    )


def _cpu_row(trial: Trial, pair: Pair) -> Row:
    return Row(
        f"CPU of an answer, {trial.form.name}",
        {"Kindred": Times.over(pair.ours.cpu), "floor": Times.over(pair.floor.cpu)},
        {},
        {"p50": Ratio.of(pair.ours.cpu, pair.floor.cpu)},
    )
