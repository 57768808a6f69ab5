"""The time without decisions: after a leader was killed or terminated, and after the start of a single replica.

A replica starts and follows the leader, which is then ended. From then on the other one gets requests for a decision,
many a second. A pod is pending that no leader can place, so each new leader must wait for bindings that may be under
way. The times include what any process waited for a CPU.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Final

import msgspec

from tests.bench import cluster
from tests.bench.command import Size
from tests.bench.live import BenchError, FakeApi, HttpClient, Kindred, fake_api, kindred
from tests.bench.report import Ratio, Row, Section

KILLED: Final = 9.0
TERMINATED: Final = 2.0
STARTED: Final = 2.0
_AIM: Final = 7.0
_KILLS: Final = 4
_SETTINGS: Final = {
    "KINDRED_DECIDE": "any-node",
    "KINDRED_PROFILE": "full",
    "KINDRED_LOG_LEVEL": "error",
    "POD_NAMESPACE": "kindred",
}
_ELECTED: Final = {**_SETTINGS, "KINDRED_LEADER_ELECTION": "kindred"}
_SETTLES: Final = "waiting for earlier decisions to settle"
_PATIENCE: Final = 120.0
_EVERY: Final = 0.02  # seconds
_PODS: Final = "/api/v1/pods"


class _Cluster:
    """The API server, with a pod for each replica, and pods to decide for."""

    def __init__(self, api: FakeApi, size: Size) -> None:
        self._api = api
        self._size = size
        self._numbers = count()
        self._create("nowhere", {"nodeSelector": {"disk": "none-has-this"}})

    @contextmanager
    def replica(self, settings: dict[str, str]) -> Iterator[Kindred]:
        """Run a replica in a pod of its own."""
        name = f"kindred-{next(self._numbers)}"
        metadata = {"name": name, "namespace": "kindred", "uid": name}
        self._change("create", {"metadata": metadata, "spec": {"nodeName": "elsewhere"}})
        with kindred(self._api, {**settings, "POD_NAME": name}) as service:
            yield service

    def first_decision(self, service: Kindred) -> float:
        """Request a decision for a new pod until there is one. Bind the pod, and return the time of the decision."""
        pod = self._create(f"new-{next(self._numbers)}", {})
        names = [cluster.node_name(index) for index in range(min(100, self._size.nodes))]
        body = msgspec.json.encode({"Pod": pod, "NodeNames": names})
        client = HttpClient(service.url)
        until = time.perf_counter() + _PATIENCE
        while time.perf_counter() < until:
            decided = msgspec.json.decode(client.expect("POST", "/filter", body))
            if decided.get("Nodes"):
                ended = time.perf_counter()
                (chosen,) = decided["Nodes"]["items"]
                self._change("update", {**pod, "spec": {**pod["spec"], "nodeName": chosen["metadata"]["name"]}})
                return ended
            time.sleep(_EVERY)
        raise BenchError(f"no decision within {_PATIENCE:g} s: {decided}")

    def _create(self, name: str, spec: cluster.Object) -> cluster.Object:
        made = cluster.incoming("plain", 0, cluster.app_count(self._size.pods))
        metadata = {**made["metadata"], "name": name, "uid": name}
        self._change("create", {**made, "metadata": metadata, "spec": {**made["spec"], **spec}})
        return self._api.get(f"/api/v1/namespaces/{metadata['namespace']}/pods/{name}")

    def _change(self, verb: str, pod: cluster.Object) -> None:
        self._api.change("objects", [{"verb": verb, "path": _PODS, "object": pod}])


def _until(service: Kindred, condition: Callable[[list[str]], bool]) -> float:
    """Wait for a condition on the problems of /readyz. Return the time."""
    client = HttpClient(service.url)
    until = time.perf_counter() + _PATIENCE
    while time.perf_counter() < until:
        problems = msgspec.json.decode(client.ask("GET", "/readyz")[1])["problems"]
        if condition(problems):
            return time.perf_counter()
        time.sleep(_EVERY)
    raise BenchError(f"not within {_PATIENCE:g} s: {problems}")


def measure(size: Size) -> Section:
    """End leaders in both ways, and start a single replica."""
    killed: list[float] = []
    terminated: list[float] = []
    kills = size.samples(_KILLS)
    with fake_api(size.nodes, size.pods) as api, ExitStack() as stack:
        objects = _Cluster(api, size)
        leader = stack.enter_context(objects.replica(_ELECTED))
        objects.first_decision(leader)
        for number in range(2 * kills):
            follower = stack.enter_context(objects.replica(_ELECTED))
            # Nothing else is a problem: a replica looks at the Lease before it has synced.
            _until(follower, lambda problems: [each[:21] for each in problems] == ["another replica leads"])
            time.sleep(1.0 + number / (2 * kills))  # at any time between two renewals
            sent, times = (signal.SIGKILL, killed) if number % 2 else (signal.SIGTERM, terminated)
            os.kill(leader.pid, sent)
            ended = time.perf_counter()
            times.append(objects.first_decision(follower) - ended)
            leader = follower
        os.kill(leader.pid, signal.SIGKILL)
        with objects.replica(_SETTINGS) as single:
            synced = _until(single, lambda problems: problems in ([], [_SETTLES]))
            started = objects.first_decision(single) - synced
    rows = [
        _row("the leader is killed", killed, KILLED, aim=_AIM),
        _row("the leader is terminated", terminated, TERMINATED),
        _row("a single replica starts, from its sync on", [started], STARTED),
    ]
    return Section("failover", f"From the end of a leader to the next decision, {size}", rows)


def _row(name: str, seconds: list[float], most: float, aim: float | None = None) -> Row:
    mean = sum(seconds) / len(seconds)
    figures = {"mean, s": mean, "longest, s": max(seconds)}
    share = None if aim is None else aim / most
    ratios = {f"longest, of {most:g} s": Ratio.single(max(seconds) / most, at_most=1, aim=share)}
    return Row(name, figures=figures, ratios=ratios)
