"""`filter` beside a running question about the loss of each zone, in turns with `filter` alone; and the memory of both.

Client, service and the child that looks for the answer share the CPUs, as they would. In each round the question is
begun anew, and ended by leaving. At last one question is answered in full, while the memory is read.
"""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.bench.awake import cpus_awake
from tests.bench.command import Size
from tests.bench.live import BenchError, Kindred, Wire, connected, fake_api, kindred, request
from tests.bench.questions import Form, Questions
from tests.bench.report import Ratio, Row, Section, Times

_P99: Final = 1.5
_MEMORY: Final = 1.6
_AFTERWARDS: Final = 1.1
_ROUNDS: Final = 5
_REQUESTS: Final = 400
_REPEATS: Final = 10
"""A question takes minutes. The first four requests after the fork, while pages are copied, were the p99 of 400."""
_PATH: Final = "/what-if/loss"
_BODY: Final = b'{"by": "zone", "orders": 1}'
_PATIENCE: Final = 600.0  # seconds
_LOOKS_EVERY: Final = 0.05
_SETTLES: Final = 2.0
_LARGEST_RESPONSE: Final = 2**22
_NOTE: Final = (
    "Memory is the sum of the PSS of the service and its child. One order of arrival. The pods come again of the "
    "templates of their ReplicaSets, which have no affinity."
)


def measure(size: Size) -> Section:
    """Measure latencies, then memory."""
    form = Form(f"{size.nodes:,} names", size.nodes)
    alone: list[list[float]] = []
    during: list[list[float]] = []
    with fake_api(size.nodes, size.pods) as api, kindred(api) as service:
        service.wait_until_ready()
        questions, count = Questions(size.nodes, size.pods), size.samples(_REQUESTS, least=20)
        with connected(service.url, _LARGEST_RESPONSE) as wire, cpus_awake():
            _sent(wire, questions, form, count)
            for _ in range(_ROUNDS):
                alone.append(_sent(wire, questions, form, count))
                with _question(service):
                    during.append(_sent(wire, questions, form, count))
        memory = _memory(service)
    times = {"alone": Times.over(alone), "beside": Times.over(during)}
    longest = {"the longest beside, ms": 1e3 * max(map(max, during))}
    ratios = {"p50": Ratio.of(during, alone), "p99": Ratio.of(during, alone, 0.99, at_most=_P99)}
    return Section(
        "beside", f"Beside a running loss simulation, {size}", [Row("filter", times, longest, ratios), memory], [_NOTE]
    )


def _sent(wire: Wire, questions: Questions, form: Form, count: int) -> list[float]:
    requests = [request("POST", "/filter", questions.body(each, form)) for each in questions.of(form, count)]
    return [wire.ask(each)[0] for _ in range(_REPEATS) for each in requests]


@contextmanager
def _question(service: Kindred) -> Iterator[None]:
    """Have a question asked during the block, and leave at its end. Raises BenchError if it is answered by then."""
    parts = urlsplit(service.admin_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
    connection.request("POST", _PATH, _BODY)
    (child,) = _until_children(service, 1)
    yield
    if child not in _children(service):
        raise BenchError("the question was answered before the round was over")
    connection.close()
    _until_children(service, 0)


def _memory(service: Kindred) -> Row:
    """Ask a question, and read the memory until it is answered, and some time after that."""
    before = _pss(service)
    most, responded = before, threading.Event()

    def ask() -> None:
        parts = urlsplit(service.admin_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
        connection.request("POST", _PATH, _BODY)
        response = connection.getresponse()
        response.read()
        connection.close()
        if response.status == HTTPStatus.OK:
            responded.set()

    began = time.perf_counter()
    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        most = max(most, _pss(service))
        time.sleep(_LOOKS_EVERY)
    seconds = time.perf_counter() - began
    if not responded.is_set():
        raise BenchError("the question was not answered")
    time.sleep(_SETTLES)
    after = _pss(service)
    figures = {"before, MB": before, "at the most, MB": most, "afterwards, MB": after, "the answer, s": seconds}
    ratios = {
        "at the most": Ratio.single(most / before, at_most=_MEMORY),
        "afterwards": Ratio.single(after / before, at_most=_AFTERWARDS),
    }
    return Row("memory", {}, figures, ratios)


def _pss(service: Kindred) -> float:
    """Return the PSS of the service and of its children, in MB of 1,000,000 bytes."""
    return sum(map(_pss_of, (str(service.pid), *_children(service))))


def _pss_of(pid: str) -> float:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    except OSError:  # it has ended
        return 0.0
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")) * 1024 / 1e6


def _children(service: Kindred) -> list[str]:
    return Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text("ascii").split()


def _until_children(service: Kindred, number: int) -> list[str]:
    until = time.perf_counter() + _PATIENCE
    while len(found := _children(service)) != number:
        if time.perf_counter() > until:
            raise BenchError(f"{len(found)} children instead of {number}")
        time.sleep(_LOOKS_EVERY)
    return found
