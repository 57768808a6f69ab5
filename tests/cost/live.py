"""A running `kindred serve` under attack: the delays of /livez and of the watch, and the traces afterwards."""

import json
import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.bench import cluster, dressed
from tests.bench.live import FakeApi, HttpClient, Kindred, Process, fake_api, kindred, repeating
from tests.bench.markers import Markers
from tests.bench.report import percentile
from tests.cost.attack import Attack, Object, compact
from tests.cost.exchange import exchange
from tests.cost.report import Live
from tests.fake_apiserver.resources import RESOURCES

_PROBE_EVERY: Final = 0.005  # seconds
_MARK_EVERY: Final = 0.2
_LOOK_EVERY: Final = 0.002
_SETTLING: Final = 0.5
"""Seconds for started work to end."""
_PATIENCE: Final = 30.0
_MAX_MEMORY: Final = 4 * 1024**3
"""Bytes that the service may map in addition to its initial memory. This protects the machine."""
_MB: Final = 1e6
_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")
_PATHS: Final = {each.kind: each.path for each in RESOURCES.values()}
_GAUGE: Final = re.compile(r"^(kindred_mirror_(?:assumed_pods|pods|nodes)) (\S+)$", re.MULTILINE)


class _Delays:
    """The times of responses, without the time in which the participants waited for a CPU."""

    def __init__(self, *processes: Process) -> None:
        self._processes = processes
        self.seconds: list[float] = []

    def take(self, ask: Callable[[], object]) -> None:
        """Send a request, and record its time."""
        waited, began = self._waited(), time.perf_counter()
        ask()
        spent = time.perf_counter() - began
        self.seconds.append(max(0.0, spent - (self._waited() - waited)))

    def _waited(self) -> float:
        own = int(_SCHEDSTAT.read_text().split()[1]) / 1e9 if _SCHEDSTAT.exists() else 0.0
        return own + sum(process.waited_for_cpu() for process in self._processes)


class Range:
    """A service that follows a fake API server, to be attacked again and again."""

    def __init__(self, api: FakeApi, service: Kindred, nodes: int, pods: int) -> None:
        self._api = api
        self._service = service
        self._names = [cluster.node_name(index) for index in range(nodes)]
        self._apps = cluster.app_count(pods)
        self._scheduler = HttpClient(service.url)
        self._admin = HttpClient(service.admin_url)
        self._markers = Markers(api, service)
        self._marking, self._looking = FakeApi(api.url), HttpClient(service.url)  # for the marking thread
        self._pod = dressed.of_deployment(dressed.incoming("plain", 0, self._apps), 0, 0)
        self._responses()
        self._markers.mark()
        self._mark()
        self._admin.ask("GET", "/debug/mirror/diff")  # opens all connections, also to the API server
        self._settle()

    def measure(self, attack: Attack) -> Live:
        """Run an attack in all its ways. Raises BenchError if the service has ended."""
        service = self._service
        responses, traces = self._responses(), self._traces()
        before, cpu, waited = service.memory("VmRSS"), service.cpu_seconds(), service.waited_for_cpu()
        Path(f"/proc/{service.pid}/clear_refs").write_text("5")
        livez, delays = _Delays(service), _Delays(service, Process(self._api.pid))
        prober = HttpClient(service.url)
        marked = self._markers.mark if attack.way == "objects" else self._mark
        with (
            repeating(lambda: livez.take(lambda: prober.expect("GET", "/livez")), _PROBE_EVERY),
            repeating(lambda: delays.take(marked), _MARK_EVERY),
        ):
            self._attack(attack)
            time.sleep(_SETTLING)
        prober.close()
        peak = service.memory("VmHWM")
        faults = self._faults(responses, traces)
        return Live(
            p99=percentile(livez.seconds, 0.99),
            longest=max(livez.seconds),
            waited=service.waited_for_cpu() - waited,
            watch_delay=max(delays.seconds, default=0.0),
            cpu=service.cpu_seconds() - cpu,
            peak=round((peak - before) * _MB),
            retained=round((service.memory("VmRSS") - before) * _MB),
            faults=faults,
        )

    def _mark(self) -> None:
        """Create a pod, and wait until the mirror has one pod more. No objects of an attack may arrive meanwhile.

        It reads /readyz, because the admin port waits for requests of schedulers, and an attack may consist of them.
        """
        before = self._pods()
        name = "live-marker"
        pod = {"metadata": {"name": name, "namespace": "ns-000"}, "spec": {"nodeName": name, "containers": []}}
        self._marking.change("objects", [{"verb": "create", "path": _PATHS["Pod"], "object": pod}])
        until = time.monotonic() + _PATIENCE
        while (seen := self._pods()) == before and time.monotonic() < until:
            time.sleep(_LOOK_EVERY)
        self._marking.change(
            "objects", [{"verb": "delete", "path": _PATHS["Pod"], "name": name, "namespace": "ns-000"}]
        )
        # Any change of the number ends the wait, because a pod of the attack may be deleted meanwhile.
        while self._pods() == seen and time.monotonic() < until:
            time.sleep(_LOOK_EVERY)

    def _pods(self) -> int:
        return int(json.loads(self._looking.ask("GET", "/readyz")[1]).get("pods", 0))

    def _attack(self, attack: Attack) -> None:
        match attack.way:
            case "pod":
                for verb in ("/filter", "/prioritize"):
                    self._scheduler.ask("POST", verb, self._args(attack.document))
                self._admin.ask("POST", "/explain", attack.body())
                self._watch([attack.document])
            case "question":
                for verb in ("/filter", "/prioritize"):
                    self._scheduler.ask("POST", verb, attack.body())
            case "explain":
                self._admin.ask("POST", "/explain", attack.body())
            case "manifest":
                self._admin.ask("POST", "/explain/manifest", attack.body())
            case "objects":
                self._watch(attack.document)
            case "wire":
                exchange(attack.document, self._service.url, self._service.admin_url)

    def _watch(self, objects: list[Object]) -> None:
        """Create the objects and delete them, with an ordinary request in between."""
        made = [self._bound(each) for each in objects]
        self._change("create", made, lambda path, each: {"path": path, "object": each})
        time.sleep(_SETTLING)
        self._responses()
        self._change(
            "delete",
            made,
            lambda path, each: {
                "path": path,
                "name": each["metadata"]["name"],
                "namespace": each["metadata"].get("namespace", ""),
            },
        )

    def _bound(self, given: Object) -> Object:
        if given.get("kind", "Pod") != "Pod" or "nodeName" in given["spec"]:
            return given
        return {**given, "spec": {**given["spec"], "nodeName": self._names[0]}}

    def _change(self, verb: str, objects: list[Object], reported: Callable[[str, Object], Object]) -> None:
        changes = [{"verb": verb, **reported(_PATHS[each.get("kind", "Pod")], each)} for each in objects]
        self._api.change("objects", changes)
        self._api.quiet()

    def _args(self, pod: Object) -> bytes:
        return b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (compact(pod), compact(self._names))

    def _responses(self) -> list[tuple[int, bytes]]:
        return [self._scheduler.ask("POST", verb, self._args(self._pod)) for verb in ("/filter", "/prioritize")]

    def _traces(self) -> dict[str, float]:
        """Return the numbers of connections, assumptions and objects."""
        text = self._scheduler.expect("GET", "/metrics").decode()
        found = {name: float(value) for name, value in _GAUGE.findall(text)}
        return {**found, "file descriptors": float(len(list(Path(f"/proc/{self._service.pid}/fd").iterdir())))}

    def _faults(self, responses: list[tuple[int, bytes]], traces: dict[str, float]) -> list[str]:
        """Return the differences to the state before the attack, after some patience."""
        until = time.monotonic() + _PATIENCE
        while True:
            self._settle()
            now = self._traces()
            left = [f"{name}: {traces[name]:g} -> {now[name]:g}" for name in now if now[name] > traces[name]]
            if not left or time.monotonic() > until:
                break
        if self._responses() != responses:
            left.append("other answers")
        return left

    def _settle(self) -> None:
        self._api.quiet()
        time.sleep(_SETTLING)


@contextmanager
def ranged(nodes: int, pods: int, profile: str) -> Iterator[Range]:
    """Run a fake API server, and Kindred with limited memory."""
    settings = {"KINDRED_PROFILE": profile, "KINDRED_LOG_LEVEL": "error"}
    with fake_api(nodes, pods) as api, kindred(api, settings) as service:
        service.wait_until_ready()
        mapped = round(service.memory("VmSize") * _MB)
        resource.prlimit(service.pid, resource.RLIMIT_AS, (mapped + _MAX_MEMORY,) * 2)
        yield Range(api, service, nodes, pods)
