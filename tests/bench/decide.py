"""Decisions over HTTP against a bare ASGI app that reads the same bodies and returns as many bytes: the floor.

Each pod is requested once, and Kindred assumes it on the chosen node. So each decision meets the changes of the one
before. The request names 100 nodes, and Kindred chooses among all nodes. For the two servers and the CPUs see `http`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tests.bench import cluster
from tests.bench.awake import apart_from, cpus_awake
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.live import BenchError, FakeApi, Process, Wire, connected, fake_api, floor_app, kindred, request
from tests.bench.report import Ratio, Row, Section, Times

AT_MOST: Final = 4.0
_AIM: Final = 2.5
_P50: Final = 0.5
_P99: Final = 2.0
_BOUND_POD: Final = 0.4
_BOUND_POD_AIM: Final = 0.3
"""Milliseconds: of a decision, also at 15,000 nodes, and of CPU for a pod, from its creation until it is seen bound."""
_NAMES: Final = 100
_PODS: Final = 200
"""Pods of a kind in a round."""
_ROUNDS: Final = 4
_IN_A_ROW: Final = 20
_ITERATIONS: Final = 20
_SETTINGS: Final = {
    "KINDRED_DECIDE": "any-node",
    "KINDRED_PROFILE": "full",
    "KINDRED_TEST_LIMITS": '{"settle": 0}',
}
_LAG: Final = 0.1  # seconds, far above what a watch takes
_LARGEST_RESPONSE: Final = 2**16
_SELECTS_NONE: Final = {"disk": "none-has-this"}
_TO_DECISION: Final = "CPU to that of a decision"


@dataclass(slots=True)
class _Side:
    """One of the two servers, with its seconds of waiting and of CPU, by round."""

    process: Process
    wire: Wire
    waited: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)

    def ask(self, sent: bytes) -> bytes:
        """Send one request of the present round."""
        seconds, body = self.wire.ask(sent)
        self.waited[-1].append(seconds)
        return bytes(body)


def measure(size: Size) -> Section:
    """Measure decisions for all kinds of pods."""
    pods = size.samples(_PODS, least=_IN_A_ROW)
    rows = []
    with fake_api(size.nodes, size.pods) as api, kindred(api, _SETTINGS) as service, floor_app() as (process, url):
        service.wait_until_ready()
        with connected(service.url, _LARGEST_RESPONSE) as ours, connected(url, _LARGEST_RESPONSE) as floor:
            for kind in cluster.KINDS:
                both = _Side(service, ours), _Side(process, floor)
                fitting = _that_fits(ours, kind, size)
                if fitting is None:  # a small cluster may have no pod to be near
                    continue
                iteration, response = fitting
                floor.ask(request("PUT", "/filter/0", response))
                bodies = list(_bodies(api, kind, iteration, size, pods * _ROUNDS))
                with cpus_awake(), apart_from((service.pid, process.pid)):
                    for number in range(_ROUNDS):
                        _round(*both, bodies[number * pods : (number + 1) * pods])
                rows.append(_row(kind, *both))
                rows += _rejections(kind, iteration, size, api, both[0])
                rows.append(_bound_pods(kind, iteration, size, api, both[0]))
    title = f"Decisions among all nodes, {_NAMES} in the request, against a bare ASGI app, {size}"
    return Section("decide", title, rows)


def _that_fits(ours: Wire, kind: str, size: Size) -> tuple[int, bytes] | None:
    """Return an iteration of a kind whose pods fit on a node, and the response for them."""
    for iteration in range(_ITERATIONS):
        body = _body(_pod(kind, iteration, size, 0), size)
        response = bytes(ours.ask(request("POST", "/filter", body, ("Kindred-Dry-Run", "true")))[1])
        if _is_decision(response):
            return iteration, response
    return None


def _bodies(  # noqa: PLR0913  # what equal pods are made of
    api: FakeApi, kind: str, iteration: int, size: Size, count: int, *, mark: str = "", unfit: bool = False
) -> Iterator[bytes]:
    """Create equal pods, and yield the request body for each. `unfit`: they fit nowhere."""
    made = [_pod(kind, iteration, size, number, mark, unfit=unfit) for number in range(count)]
    api.change("objects", [{"verb": "create", "path": "/api/v1/pods", "object": pod} for pod in made])
    api.quiet()
    for pod in made:  # as kube-scheduler has it: in the version of the API server
        metadata = pod["metadata"]
        yield _body(api.get(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"), size)


def _pod(kind: str, iteration: int, size: Size, number: int, mark: str = "", *, unfit: bool = False) -> Object:  # noqa: PLR0913
    pod = cluster.incoming(kind, iteration, cluster.app_count(size.pods))
    name = f"decide-{kind.replace('_', '-')}{'-unfit' if unfit else mark}-{number}"
    spec = {**pod["spec"], "nodeSelector": _SELECTS_NONE} if unfit else pod["spec"]
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": name}, "spec": spec}


def _body(pod: Object, size: Size) -> bytes:
    """Return ExtenderArgs with a pod."""
    names = msgspec.json.encode([cluster.node_name(index) for index in range(min(_NAMES, size.nodes))])
    return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (msgspec.json.encode(pod), names)


def _is_decision(response: bytes) -> bool:
    return b'"items":[{' in response or b'"NodeNames":["' in response


def _round(ours: _Side, floor: _Side, bodies: list[bytes]) -> None:
    """Send requests with new pods to both sides in turns, several in a row."""
    for side in (ours, floor):
        side.waited.append([])
    before = [side.process.main_thread_cpu_seconds() for side in (ours, floor)]
    for begin in range(0, len(bodies), _IN_A_ROW):
        in_a_row = bodies[begin : begin + _IN_A_ROW]
        for body in in_a_row:
            response = ours.ask(request("POST", "/filter", body))
            if not _is_decision(response):
                raise BenchError(f"no decision: {response[:500].decode(errors='replace')}")
        for body in in_a_row:
            floor.ask(request("POST", "/filter/0", body))
    for side, seconds in zip((ours, floor), before, strict=True):
        side.cpu.append([(side.process.main_thread_cpu_seconds() - seconds) / len(bodies)])


def _rejections(kind: str, iteration: int, size: Size, api: FakeApi, ours: _Side) -> Iterator[Row]:
    """Yield what a refusal costs: after a decision, which changes one node, and after another refusal."""
    pods = size.samples(_PODS, least=_IN_A_ROW)
    fitting, unfit = (
        list(_bodies(api, kind, iteration, size, pods * _ROUNDS, **more)) for more in ({"mark": "-b"}, {"unfit": True})
    )
    cpu: list[list[list[float]]] = [[], [], []]
    waited: list[list[list[float]]] = [[], [], []]
    with cpus_awake(), apart_from((ours.process.pid,)):
        for number in range(_ROUNDS):
            for each in (*cpu, *waited):
                each.append([])
            for index in range(number * pods, (number + 1) * pods):
                for place, body in enumerate((fitting[index], unfit[index], unfit[index])):
                    before = ours.process.main_thread_cpu_seconds()
                    seconds, response = ours.wire.ask(request("POST", "/filter", body))
                    cpu[place][-1].append(ours.process.main_thread_cpu_seconds() - before)
                    waited[place][-1].append(seconds)
                    if _is_decision(bytes(response)) is bool(place):
                        raise BenchError(f"{kind}: {bytes(response)[:500].decode(errors='replace')}")
    for place, after in ((1, "after a decision"), (2, "after a refusal")):
        ratio = Ratio.of(cpu[place], cpu[0], at_most=1.0)
        yield Row(
            f"{kind}, fits nowhere, {after}", {"Kindred": Times.over(waited[place])}, ratios={_TO_DECISION: ratio}
        )


def _bound_pods(kind: str, iteration: int, size: Size, api: FakeApi, ours: _Side) -> Row:
    """Measure the CPU of a pod that is created, decided for, bound as decided, and shown by the watch both times."""
    pods = size.samples(_PODS, least=_IN_A_ROW)
    cpu: list[list[float]] = []
    with apart_from((ours.process.pid,)):
        for number in range(_ROUNDS):
            before = ours.process.main_thread_cpu_seconds()
            bound = []
            for body in _bodies(api, kind, iteration, size, pods, mark=f"-bound-{number}"):
                pod = msgspec.json.decode(body)["Pod"]
                response = msgspec.json.decode(ours.wire.ask(request("POST", "/filter", body))[1])
                node = response["Nodes"]["items"][0]["metadata"]["name"]
                bound.append({**pod, "spec": {**pod["spec"], "nodeName": node}})
            api.change("objects", [{"verb": "update", "path": "/api/v1/pods", "object": pod} for pod in bound])
            api.quiet()
            time.sleep(_LAG)
            cpu.append([(ours.process.main_thread_cpu_seconds() - before) / pods])
    ratio = Ratio.of(cpu, [[_BOUND_POD / 1e3]] * _ROUNDS, at_most=1.0, aim=_BOUND_POD_AIM / _BOUND_POD)
    return Row(f"{kind}, CPU of a bound pod", {"Kindred": Times.over(cpu)}, ratios={f"of {_BOUND_POD:g} ms": ratio})


def _row(kind: str, ours: _Side, floor: _Side) -> Row:
    times = {
        "Kindred": Times.over(ours.waited),
        "floor": Times.over(floor.waited),
    }
    ratios = {
        "p50": Ratio.of(ours.waited, floor.waited, at_most=AT_MOST, aim=_AIM),
        f"p50, of {_P50:g} ms": Ratio.of(ours.waited, [[_P50 / 1e3]] * _ROUNDS, at_most=1.0),
        f"p99, of {_P99:g} ms": Ratio.of(ours.waited, [[_P99 / 1e3]] * _ROUNDS, 0.99, at_most=1.0),
        "CPU": Ratio.of(ours.cpu, floor.cpu),
    }
    return Row(kind, times, ratios=ratios)
