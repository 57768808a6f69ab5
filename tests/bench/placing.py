"""The CPU time of placing one pod of many, against kube-scheduler's own plugins on the same cluster in one run.

The real plugins run in a process of their own (tests/e2e/go/cmd/intree-plugins), which is built if it is missing, so
this needs Go. In-tree runs PreFilter, Filter of all nodes, PreScore and Score for each pod, and does not count it. Here
each pod is placed and counts for the next one, and at last all of them are taken back.
"""

import time
from typing import Final

import msgspec

from core.releases.differences import rules_of
from core.releases.release import nearest
from core.simulation.orders import FIRST
from core.simulation.placing import finished
from tests.bench import cluster, simulation
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.decisions import decoded
from tests.bench.intree_process import InTree, running
from tests.bench.live import BenchError
from tests.bench.report import Ratio, Rounds, Row, Section
from tests.e2e.binaries import RELEASES, BuildError, binaries, module_of

RELEASE: Final = "1.37"
WITH_AFFINITY: Final = 20
PLAIN: Final = 5
"""Least factor by which a pod is placed faster than in-tree."""
_PROGRAM: Final = "intree-plugins"
_IN_TREE: Final = "in-tree, CPU"
_HERE: Final = "here, CPU"
_ROUNDS: Final = 4
_PODS: Final = 5
"""Pods of a round in-tree."""
_REPLICAS: Final = 100
"""Replicas of a round here."""


class _Loaded(msgspec.Struct, frozen=True):
    kubernetes: str = ""
    rejected: str = ""


class _Timed(msgspec.Struct, frozen=True):
    nanoseconds: int = 0
    node: str = ""
    rejected: str = ""


class Bench:
    """One cluster, from the same objects on both sides."""

    def __init__(self, in_tree: InTree, size: Size) -> None:
        self._in_tree = in_tree
        self._size = size
        self._apps = cluster.app_count(size.pods)
        self._basis = simulation.Bench(size).basis
        self._basis.mirror.change_rules(rules_of(nearest(RELEASE).release))
        in_tree.send(
            {
                "namespaces": [*cluster.namespaces()],
                "nodes": [*cluster.nodes(size.nodes)],
                "pods": [*cluster.pods(size.pods, size.nodes)],
                "pod": cluster.incoming("plain", 0, self._apps),
            }
        )
        loaded = in_tree.receive(_Loaded)
        if loaded.rejected or loaded.kubernetes != RELEASES[RELEASE]:
            raise BenchError(f"{_PROGRAM} {loaded.kubernetes}: {loaded.rejected}")

    def row(self, kind: str) -> Row:
        """Measure a kind of pods. Raises BenchError if the first of them goes to another node than in-tree."""
        samples = Rounds(_IN_TREE, _HERE)
        for number in range(_ROUNDS):
            samples.begin()
            pod = cluster.incoming(kind, number, self._apps)
            timed = [self._ask(pod) for _ in range(self._size.samples(_PODS))]
            samples.add(_IN_TREE, *(each.nanoseconds / 1e9 for each in timed))
            seconds, node = self._place(pod)
            samples.add(_HERE, seconds)
            if node != timed[0].node:
                raise BenchError(f"{pod['metadata']['name']}: in-tree on {timed[0].node}, here on {node}")
        least = PLAIN if kind == "plain" else WITH_AFFINITY
        ratio = Ratio.of(samples.of[_IN_TREE], samples.of[_HERE], at_least=least)
        return Row(kind, samples.times(), ratios={"in-tree to here": ratio})

    def _ask(self, pod: Object) -> _Timed:
        self._in_tree.send(pod)
        timed = self._in_tree.receive(_Timed)
        if timed.rejected:
            raise BenchError(f"{_PROGRAM}: {timed.rejected}")
        return timed

    def _place(self, v1_pod: Object) -> tuple[float, str]:
        """Place replicas. Return the seconds for each, and the node of the first one."""
        pod = decoded(v1_pod)
        pods = [msgspec.structs.replace(pod, uid=f"{pod.uid}-{at}", name=f"{pod.name}-{at}") for at in range(_REPLICAS)]
        began = time.process_time()
        with self._basis.mirror.fork(cache_follows=True) as fork:
            outcomes = finished(self._basis.placing(fork, FIRST).place(pods))
        seconds = time.process_time() - began
        return seconds / len(pods), outcomes[0].node


def measure(size: Size) -> Section:
    """Measure all kinds of pods. Raises BenchError without upstream's plugins, and where a pod goes elsewhere."""
    try:
        program = binaries([_PROGRAM], module_of(RELEASES[RELEASE]))[_PROGRAM]
    except BuildError as error:
        raise BenchError(str(error)) from None
    with running([str(program), "-timed"]) as in_tree:
        bench = Bench(in_tree, size)
        rows = [bench.row(kind) for kind in cluster.KINDS]
    notes = [
        f"CPU time of a pod. In-tree is Kubernetes {RELEASES[RELEASE]} without DynamicResources, with GOMAXPROCS 1.",
        f"Here it is the mean of {_REPLICAS} replicas of a class, of which the first is not known yet.",
    ]
    return Section("placing", f"Placing pods, and the real plugins, {size}", rows, notes)
