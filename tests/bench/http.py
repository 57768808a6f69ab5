"""Kindred's HTTP verbs against a bare ASGI app that reads the same bodies and answers the same bytes: the floor.

Both are processes of their own, asked in turns, some questions in a row, over one kept connection each. Questions have
their names in an order that begins elsewhere each time, as kube-scheduler's do; pods are of all kinds in turns, of
classes that were asked about before. CPUs are kept awake; see `awake`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from tests.bench import command
from tests.bench.awake import cpus_awake
from tests.bench.command import Size
from tests.bench.live import BenchError, Process, fake_api, floor_app, kindred
from tests.bench.questions import Form, Questions
from tests.bench.report import Ratio, Row, Section, Times
from tests.bench.wire import Wire, connected, request

Verb: TypeAlias = Literal["filter", "prioritize"]

ROUNDS: Final = 5
_IN_A_ROW: Final = 20
"""Questions to one side before the other has its turn. A scheduler has one extender, which finds in the CPU's cache what
its last question left there; request by request, each side would find what the other left."""
_NOTE: Final = (
    "The CPUs are kept from their idle states while this is measured: after each of them a virtual CPU begins with empty "
    "caches, which costs whoever does more the more."
)
_LARGEST_ANSWER: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Trial:
    """A form, how many questions of it are asked in a round, how often each, and what is allowed and hoped for."""

    form: Form
    questions: int
    repeats: int = 1
    at_most: float | None = None
    aim: float | None = None


class Exchange(NamedTuple):
    """One question as requests to both sides, and the answer that both give."""

    ours: bytes
    floor: bytes
    answer: bytes


@dataclass(slots=True)
class Side:
    """One of the two servers, and the seconds that it took, of waiting and of CPU, by round."""

    process: Process
    wire: Wire
    waited: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)

    def ask(self, sent: bytes, answer: bytes) -> None:
        """Ask, and hold the answer against the one that was given before. Raises BenchError."""
        seconds, body = self.wire.ask(sent)
        if body != answer:
            raise BenchError(f"another answer than before: {bytes(body[:500]).decode(errors='replace')}")
        self.waited[-1].append(seconds)

    @contextmanager
    def round(self, questions: int) -> Iterator[None]:
        """Count the CPU time of a round."""
        self.waited.append([])
        before = self.process.main_thread_cpu_seconds()
        yield
        self.cpu.append([(self.process.main_thread_cpu_seconds() - before) / questions])


class Pair:
    """Kindred and the floor app, for one trial. What is compared is told by verb."""

    def __init__(self, ours: tuple[Process, Wire], floor: tuple[Process, Wire]) -> None:
        self._wires = ours[1], floor[1]
        self.sides: dict[Verb, tuple[Side, Side]] = {
            "filter": (Side(*ours), Side(*floor)),
            "prioritize": (Side(*ours), Side(*floor)),
        }

    def round(self, questions: Questions, trial: Trial, count: int) -> None:
        """Ask new questions with both verbs, as a scheduler does."""
        asked = list(questions.of(trial.form, count))
        exchanges = self._compare("filter", trial, [questions.body(each, trial.form) for each in asked])
        fitting = [each.fitting(exchange.answer) for each, exchange in zip(asked, exchanges, strict=True)]
        del exchanges, asked  # 32 MB each where nodes are whole
        bodies = [questions.body(each, trial.form) for each in fitting if each.names]
        self._compare("prioritize", trial, bodies)

    def _compare(self, verb: Verb, trial: Trial, bodies: list[bytes]) -> list[Exchange]:
        exchanges = [self._recorded(verb, trial.form, body, index) for index, body in enumerate(bodies)]
        ours, floor = self.sides[verb]
        repeated = exchanges * trial.repeats
        with ours.round(len(repeated)), floor.round(len(repeated)):
            for index, exchange in enumerate(repeated):
                turns = [(ours, exchange.ours), (floor, exchange.floor)]
                for side, sent in turns if index % 2 else reversed(turns):
                    side.ask(sent, exchange.answer)
        return exchanges

    def _recorded(self, verb: Verb, form: Form, body: bytes, index: int) -> Exchange:
        """Ask Kindred, and tell the floor app what it answered."""
        path = f"/{verb}/{index}"
        ours = request("POST", f"/{verb}", body, *form.headers)
        answer = bytes(self._wires[0].ask(ours)[1])
        if verb == "filter" and not answer.endswith(b'"Error":""}'):
            raise BenchError(f"/filter answered ...{answer[-500:].decode(errors='replace')}")
        self._wires[1].ask(request("PUT", path, answer))
        return Exchange(ours, request("POST", path, body, *form.headers), answer)


def measure(size: Size, rounds: int = ROUNDS, chosen: str = "") -> Section:
    """Measure all forms, or those with a text in their name."""
    rows = []
    with fake_api(size.nodes, size.pods) as api, kindred(api) as service, floor_app() as (process, url):
        service.wait_until_ready()
        questions = Questions(size.nodes, size.pods)
        for trial in _trials(size.nodes):
            if chosen not in trial.form.name:
                continue
            with connected(service.url, _LARGEST_ANSWER) as ours, connected(url, _LARGEST_ANSWER) as floor:
                pair = Pair((service, ours), (process, floor))
                with cpus_awake():
                    for _ in range(rounds):
                        pair.round(questions, trial, size.samples(trial.questions, least=4))
            rows += [_row(verb, trial, *sides) for verb, sides in pair.sides.items()]
    title = f"HTTP verbs against a bare ASGI app that reads and answers the same bytes, {size}"
    return Section("http", title, rows, [_NOTE])


def _trials(nodes: int) -> list[Trial]:
    """Return what is measured with a cluster of so many nodes."""
    few = nodes // 10
    return [
        Trial(Form(f"{nodes:,} names", nodes), 100, at_most=2.5, aim=1.5),
        Trial(Form(f"{few:,} names", few), 200, at_most=2.0),
        Trial(Form(f"{nodes:,} whole nodes", nodes, whole=True), 4, repeats=3, at_most=1.5),
        Trial(Form(f"{nodes:,} names, cache off", nodes, headers=(("Kindred-Cache", "off"),)), 100),
    ]


def _row(verb: Verb, trial: Trial, ours: Side, floor: Side) -> Row:
    return Row(
        f"{verb}, {trial.form.name}",
        {"Kindred": _times(ours), "floor": _times(floor)},
        {"Kindred's CPU, ms": _cpu(ours), "floor's CPU, ms": _cpu(floor)},
        {
            "p50": Ratio.of(ours.waited, floor.waited, at_most=trial.at_most, aim=trial.aim),
            "p99": Ratio.of(ours.waited, floor.waited, 0.99),
            "CPU": Ratio.of(ours.cpu, floor.cpu),
        },
    )


def _times(side: Side) -> Times:
    return Times.of([seconds for each in side.waited for seconds in each])


def _cpu(side: Side) -> float:
    return Times.of([seconds for each in side.cpu for seconds in each]).p50


def main() -> None:
    """Measure as a program, maybe only some forms."""
    parser = command.parser("tests.bench.http", __doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="with questions of their own")
    parser.add_argument("--form", default="", metavar="TEXT", help="only forms with this in their name")
    options = parser.parse_args()
    command.finish(measure(command.size(options), options.rounds, options.form))


if __name__ == "__main__":
    main()
