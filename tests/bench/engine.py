"""The engine against a naive reference, by kind of incoming pod. The results are compared, too.

Both sides are measured in turns, pod by pod, because absolute times mean little on a shared machine.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from app.objects.resources import RESOURCES
from core.events import ClusterEvent
from core.objects.kinds import Service
from core.objects.pod import Pod
from core.profile import full_profile
from tests.bench import cluster
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.decisions import Decider, decoded, loaded, names_of, settle, timed
from tests.bench.live import BenchError
from tests.bench.report import Ratio, Rounds, Row, Section
from tests.core.profile_parts import affinity_profile
from tests.fake_apiserver.bench_data import service
from tests.reference.naive import NaiveCluster

FASTER: Final = 100
"""Least factor by which a known class must be faster than the naive reference."""
_ROUNDS: Final = 4
_PODS_PER_ROUND: Final = 25
_NAIVE_PER_ROUND: Final = 5
_REPEATS: Final = 8
NAIVE: Final = "naive"
NEW: Final = "new class"
KNOWN: Final = "known class"
_OFF: Final = "cache off"
_APPS: Final = {
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
    "namespaceSelector": {},
    "topologyKey": "kubernetes.io/hostname",
}
_CHOICE: Final = "fits"
_REJECTION: Final = "fits nowhere"
_CHOICES: Final = 100
_SELECTS_NONE: Final = {"nodeSelector": {"disk": "none-has-this"}}
_JUDGED_AGAIN: Final[Mapping[str, Object]] = {
    "too large": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4k"}}}]},
    "repelled": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_APPS]}}},
}
"""Why a pod fits nowhere -> its spec. The filters that say so judge the changed node again."""
_REJECTION_AT_MOST: Final = 0.1
_JUDGED_AGAIN_AT_MOST: Final = 1.0
_SLOTS: Final = "known, slots given"
_VERBS: Final = "both verbs"
_NOTES: Final = [
    "A decision is to filter all nodes and to score those that fit. The naive reference has upstream's loops.",
    "A known class was asked about before; for a new one, counters are made. All but the naive one are given names,",
    "in an order that begins elsewhere in each decision, unless slots are given. Both verbs: request bytes to response",
    "bytes, without HTTP.",
]


class Bench:
    """One cluster, in the engine and in the naive reference."""

    def __init__(self, size: Size) -> None:
        self._decider = Decider(loaded(size), names_of(size), affinity_profile())
        given = cluster.namespaces(), cluster.nodes(size.nodes), cluster.pods(size.pods, size.nodes)
        self._naive = NaiveCluster(*given)
        self._size = size
        self._chooser = Decider(self._decider.mirror, self._decider.names, full_profile())
        settle()

    def row(self, kind: str) -> Row:
        """Measure a kind of pods."""
        samples = Rounds(NAIVE, NEW, KNOWN, _OFF, _SLOTS, _VERBS)
        apps = cluster.app_count(self._size.pods)
        per_round = self._size.samples(_PODS_PER_ROUND)
        for number in range(_ROUNDS):
            indexes = range(number * per_round, (number + 1) * per_round)
            self._round(samples, [cluster.incoming(kind, index, apps) for index in indexes])
        naive = samples.of[NAIVE]
        return Row(
            kind,
            samples.times(),
            ratios={
                f"naive to {NEW}": Ratio.of(naive, samples.of[NEW]),
                f"naive to {KNOWN}": Ratio.of(naive, samples.of[KNOWN], at_least=FASTER),
                f"naive to {_VERBS}": Ratio.of(naive, samples.of[_VERBS]),
            },
        )

    def _round(self, samples: Rounds, v1_pods: list[Object]) -> None:
        samples.begin()
        pods = [decoded(pod) for pod in v1_pods]
        for pod in pods:
            samples.add(NEW, self._decider.with_names(pod))
        step = max(1, len(pods) // self._size.samples(_NAIVE_PER_ROUND))
        for index in range(0, len(pods), step):
            self._naively(samples, v1_pods[index], pods[index])
            for pod, v1_pod in zip(pods[index : index + step], v1_pods[index : index + step], strict=True):
                self._known(samples, pod, v1_pod)

    def _known(self, samples: Rounds, pod: Pod, v1_pod: Object) -> None:
        for _ in range(_REPEATS):
            samples.add(KNOWN, self._decider.with_names(pod))
            samples.add(_OFF, self._decider.with_names(pod, cached=False))
            samples.add(_SLOTS, self._decider.from_cache(pod)[0])
        samples.add(_VERBS, self._decider.verbs(v1_pod))

    def _naively(self, samples: Rounds, v1_pod: Object, pod: Pod) -> None:
        """Time the naive reference, and compare its result with the engine's. Raises BenchError."""
        seconds, expected = timed(lambda: self._naive.decision(v1_pod))
        samples.add(NAIVE, seconds)
        feasible, scores = self._decider.response(pod, self._decider.names)
        if dict(zip(feasible, scores.tolist(), strict=True)) != expected:
            raise BenchError(f"{v1_pod['metadata']['name']}: the engine's answer is not that of the naive reference")

    def add_services(self) -> None:
        """Add a Service for each app, as over HTTP. Its pods are spread, and each one changes scores of all nodes."""
        for app in range(cluster.app_count(self._size.pods)):
            service_of_app = RESOURCES[Service].decode(json.dumps(service(app)).encode())
            self._chooser.mirror.apply(ClusterEvent("Add", service_of_app))
        settle()

    def rejections(
        self, kind: str, what: str = "", spec: Object = _SELECTS_NONE, at_most: float = _REJECTION_AT_MOST
    ) -> Iterator[Row]:
        """Measure a choice among all nodes, by all plugins, after a decision that changed one node.

        The pods are of one class that fits, and of one that fits nowhere, with the other spec. In a small cluster no
        pod of a kind may fit.
        """
        fits = self._with_place(kind)
        if fits is None:
            return
        samples = Rounds(_CHOICE, _REJECTION)
        pods = [decoded(_named(fits, number)) for number in range(self._size.samples(_CHOICES))]
        unfit = decoded({**_named(fits, -1), "spec": spec})
        for number in range(_ROUNDS):
            samples.begin()
            placed = []
            for pod in pods:
                seconds, node = self._chooser.choice(pod)
                samples.add(_CHOICE, seconds)
                self._chooser.mirror.assume(pod, node, 0.0)
                placed.append(pod.uid)
                seconds, node = self._chooser.choice(unfit)
                if node:
                    raise BenchError(f"{kind}{what}: a pod that fits nowhere is on {node}")
                samples.add(_REJECTION, seconds)
            for uid in placed:
                self._chooser.mirror.forget(uid)
            if not number:  # with the ranking, and with a first judgement of all nodes
                samples = Rounds(_CHOICE, _REJECTION)
        ratio = Ratio.of(samples.of[_REJECTION], samples.of[_CHOICE], at_most=at_most)
        name = f"{kind}{what}, one of all nodes, after a decision"
        yield Row(name, samples.times(), ratios={"fits nowhere to fits": ratio})

    def _with_place(self, kind: str) -> Object | None:
        """Return the first pod of a kind that fits on a node, or None."""
        apps = cluster.app_count(self._size.pods)
        made = (cluster.incoming(kind, index, apps) for index in range(_ROUNDS * _PODS_PER_ROUND))
        return next((each for each in made if self._chooser.choice(decoded(each))[1]), None)


def _named(v1_pod: Object, number: int) -> Object:
    return {**v1_pod, "metadata": {**v1_pod["metadata"], "name": f"choice-{number}", "uid": f"choice-{number}"}}


def measure(size: Size) -> Section:
    """Measure all kinds of pods."""
    bench = Bench(size)
    rows = [bench.row(kind) for kind in cluster.KINDS]
    rows += [row for kind in cluster.KINDS for row in bench.rejections(kind)]
    for what, spec in _JUDGED_AGAIN.items():
        rows += bench.rejections("plain", f", {what}", spec, _JUDGED_AGAIN_AT_MOST)
    bench.add_services()
    rows += [row for kind in cluster.KINDS for row in bench.rejections(kind, " of a Service")]
    return Section("engine", f"Decisions by kind of pod, {size}", rows, _NOTES)
