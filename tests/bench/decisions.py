"""Decisions of the engine in this process, timed: filter the nodes, then score those that fit."""

import gc
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from app.objects.decode_pod import decode_pod
from app.verbs.effects import Effects
from app.verbs.filter import Extender
from app.verbs.pods import PodLookup
from app.verbs.request import Request
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import choose_nodes, filter_nodes, score_nodes
from tests.bench import cluster
from tests.bench.cluster import Object
from tests.bench.command import Size
from tests.bench.live import BenchError
from tests.conformance.engine import load

T = TypeVar("T")

_STARTS: Final = 97
_CACHE: Final = CacheOptions(
    mode="spec", max_bytes=2**30
)  # mode `spec`, so that pods without a controller have a class


def loaded(size: Size) -> ClusterMirror:
    """Return a mirror of the bench cluster, for a process that makes nothing else so large."""
    return load(cluster.namespaces(), cluster.nodes(size.nodes), cluster.pods(size.pods, size.nodes))


def names_of(size: Size) -> list[str]:
    """Return the names of all nodes."""
    return [cluster.node_name(index) for index in range(size.nodes)]


def settle() -> None:
    """Keep what has been made out of the collector's way, as the service does."""
    gc.collect()
    gc.freeze()


class Decider:
    """A mirror with a profile and a cache. As from a scheduler, the order of the names has another start each time."""

    def __init__(self, mirror: ClusterMirror, names: list[str], profile: Profile) -> None:
        self.mirror = mirror
        self.names = names
        self.cache = EquivalenceCache(mirror, profile.plugins, _CACHE)
        self._profile = profile
        self._extender = Extender(profile, mirror, self.cache)
        self._effects = Effects(mirror, time.monotonic, PodLookup(mirror, None, time.monotonic))
        self._rotation: Iterator[int] = itertools.cycle(range(0, len(names), max(1, len(names) // _STARTS)))

    def rotated(self) -> list[str]:
        """Return the names in the order of the next request."""
        start = next(self._rotation)
        return self.names[start:] + self.names[:start]

    def response(self, pod: Pod, names: list[str]) -> tuple[list[str], Int64Array]:
        """Return the nodes that fit, and their scores, by the cache."""
        passed, scores = self._response(self.cache.evaluation(pod), _written(names))
        return [names[position] for position in passed.tolist()], scores

    def with_names(self, pod: Pod, *, cached: bool = True) -> float:
        """Decide with names in the form of a request. Return the seconds, with the time for looking up the slots.

        `prioritize` recognises the nodes that `filter` passed on, and does not look them up.
        """
        names = _written(self.rotated())
        seconds, _ = timed(lambda: self._response(self._evaluation(pod, cached=cached), names))
        return seconds

    def with_slots(self, evaluate: Callable[[], Evaluation]) -> tuple[float, str]:
        """Decide with nodes as slots. Return the seconds, with the time for the class, and the best node."""
        batch = self.mirror.batch(self.names)
        began = time.perf_counter()
        evaluation = evaluate()
        verdicts = filter_nodes(self._profile, evaluation, batch)
        spent = time.perf_counter() - began
        feasible = list(itertools.compress(self.names, (verdicts.codes == 0).tolist()))
        batch = self.mirror.batch(feasible)
        began = time.perf_counter()
        scores = score_nodes(self._profile, evaluation, batch)
        spent += time.perf_counter() - began
        return spent, feasible[int(scores.argmax())] if feasible else ""

    def afresh(self, pod: Pod) -> tuple[float, str]:
        """Decide with slots, without the cache."""
        return self.with_slots(lambda: FreshEvaluation(self.mirror, pod))

    def from_cache(self, pod: Pod) -> tuple[float, str]:
        """Decide with slots. Finding the class counts twice, because each of the two verbs does it."""

        def evaluate() -> Evaluation:
            self.cache.evaluation(pod)
            return self.cache.evaluation(pod)

        return self.with_slots(evaluate)

    def choice(self, pod: Pod) -> tuple[float, str]:
        """Choose one of all nodes, as `decide` does. Return the seconds, and the node. Empty: none fits."""
        began = time.perf_counter()
        batch = self.mirror.all_nodes()
        best, _ = choose_nodes(self._profile, self.cache.evaluation(pod), batch)
        seconds = time.perf_counter() - began
        return seconds, batch.names[int(best[0])] if len(best) else ""

    def verbs(self, v1_pod: Object, *, cached: bool = True) -> float:
        """Run both verbs from request bytes to response bytes. Return the seconds."""
        body = _body(v1_pod, self.rotated())
        spent, filtered = timed(lambda: self._extender.filter(Request(body, cached=cached), self._effects))
        fitting = json.loads(filtered.body)["NodeNames"]
        if not fitting:
            return spent
        body = _body(v1_pod, fitting)
        seconds, _ = timed(lambda: self._extender.prioritize(Request(body, cached=cached), self._effects))
        return spent + seconds

    def _evaluation(self, pod: Pod, *, cached: bool) -> Evaluation:
        return self.cache.evaluation(pod) if cached else FreshEvaluation(self.mirror, pod)

    def _response(self, evaluation: Evaluation, names: bytes) -> tuple[IntpArray, Int64Array]:
        batch = NodeBatch.found(self.mirror.nodes, names, 0, len(names))
        if batch is None:
            raise BenchError("a node is not known")
        passed = (filter_nodes(self._profile, evaluation, batch).codes == 0).nonzero()[0]
        fitting = NodeBatch.of_slots(self.mirror.nodes, batch.slots.take(passed))
        return passed, score_nodes(self._profile, evaluation, fitting)


def decoded(v1_pod: Object) -> Pod:
    """Decode a pod in the form of a request."""
    return decode_pod(json.dumps(v1_pod).encode())


def timed(act: Callable[[], T]) -> tuple[float, T]:
    """Return the seconds of a call, and its result."""
    began = time.perf_counter()
    result = act()
    return time.perf_counter() - began, result


def _body(v1_pod: Object, names: list[str]) -> bytes:
    """Return ExtenderArgs in Go's form, without spaces."""
    return json.dumps({"Pod": v1_pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


def _written(names: list[str]) -> bytes:
    """Return names in the form of a request, without brackets."""
    return json.dumps(names, separators=(",", ":")).encode()[1:-1]
