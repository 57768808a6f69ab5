"""The equivalence cache on against off, in turns in one run: by kind of pod and profile, in a rollout, and its size.

*Plugins* is what evaluation costs, given the nodes as slots: class key, filter, scores, normalisation. *Verbs* is both
verbs from request bytes to response bytes, most of which is names, whatever the plugins cost.
"""

import argparse
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from app.extender_v1 import Extender
from app.watch.decode_pod import decode_pod
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.objects.pod import Pod
from core.profile import Profile, affinity_profile, full_profile
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.bench import cluster, dressed
from tests.bench.cluster import Object
from tests.bench.live import machine, say
from tests.conformance.engine import load

SLOWEST: Final = 1.05
"""Most that both verbs may take with the cache, as a multiple of what they take without, for any kind."""
FASTER: Final = 3.0
"""Least that the plugins have to be faster by where there are predicates beyond affinity."""
LIVE_CLASSES: Final = 3_000
_PODS_PER_KIND: Final = 40
_DEPLOYMENTS: Final = 200
_REPLICAS: Final = 50


@dataclass(slots=True)
class Times:
    """Seconds per question, with the cache and without."""

    on: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times as long it takes with the cache: the median over pairs that were measured in a row."""
        return statistics.median(on / off for on, off in zip(self.on, self.off, strict=True))

    def __str__(self) -> str:
        return f"{statistics.median(self.off) * 1e3:7.3f} {statistics.median(self.on) * 1e3:7.3f} {self.ratio:6.2f}"


class Bench:
    """One cluster and one profile, with a cache."""

    def __init__(self, mirror: ClusterMirror, names: list[str], profile: Profile) -> None:
        self.mirror = mirror
        self.names = names
        self.profile = profile
        self.cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec", max_bytes=2**30))
        self._extender = Extender(profile, mirror, self.cache)
        self._rotation: Iterator[int] = itertools.cycle(range(0, len(names), max(1, len(names) // 97)))

    def compare(self, v1_pods: Sequence[Object], rounds: int) -> tuple[list[float], Times, Times]:
        """Return the seconds of first questions, and then of known classes: (first, plugins, verbs)."""
        pods = [decode_pod(json.dumps(pod).encode()) for pod in v1_pods]
        first = [self.decide(self.cache.evaluation(pod))[0] for pod in pods]
        plugins, verbs = Times(), Times()
        for number in range(rounds):
            for pod, v1_pod in zip(pods, v1_pods, strict=True):
                for cached in (False, True) if number % 2 else (True, False):  # the second one finds warmer memory
                    seconds = self._decide_from_cache(pod) if cached else self._decide_afresh(pod)
                    (plugins.on if cached else plugins.off).append(seconds)
                for cached in (False, True) if number % 2 else (True, False):
                    (verbs.on if cached else verbs.off).append(self._verbs(v1_pod, cached=cached))
        return first, plugins, verbs

    def decide(self, evaluation: Evaluation) -> tuple[float, str]:
        """Filter all nodes and score those that fit; return the seconds without those for names, and the best node."""
        batch = self.mirror.batch(self.names)
        began = time.perf_counter()
        verdicts = filter_nodes(self.profile, evaluation, batch)
        spent = time.perf_counter() - began
        feasible = list(itertools.compress(self.names, (verdicts.codes == 0).tolist()))
        batch = self.mirror.batch(feasible)
        began = time.perf_counter()
        scores = score_nodes(self.profile, evaluation, batch)
        spent += time.perf_counter() - began
        return spent, feasible[int(scores.argmax())] if feasible else ""

    def _decide_afresh(self, pod: Pod) -> float:
        return self.decide(FreshEvaluation(self.mirror, pod))[0]

    def _decide_from_cache(self, pod: Pod) -> float:
        """Count what it takes to find the class, too, which each of the two verbs has to."""
        began = time.perf_counter()
        self.cache.evaluation(pod)
        evaluation = self.cache.evaluation(pod)
        found = time.perf_counter() - began
        return found + self.decide(evaluation)[0]

    def _verbs(self, v1_pod: Object, *, cached: bool) -> float:
        start = next(self._rotation)
        names = self.names[start:] + self.names[:start]
        body = json.dumps({"Pod": v1_pod, "Nodes": None, "NodeNames": names}).encode()
        began = time.perf_counter()
        answer = self._extender.filter(body, cached=cached).body
        spent = time.perf_counter() - began
        fitting = json.loads(answer)["NodeNames"]
        if fitting:
            body = json.dumps({"Pod": v1_pod, "Nodes": None, "NodeNames": fitting}).encode()
            began = time.perf_counter()
            self._extender.prioritize(body, cached=cached)
            spent += time.perf_counter() - began
        return spent


def compare(bench: Bench, name: str, rounds: int, apps: int) -> list[str]:
    """Print the table of a profile; return what was missed."""
    missed = []
    for kind, dress in itertools.product(cluster.KINDS, (False, True) if name == "full" else (False,)):
        make = dressed.incoming if dress else cluster.incoming
        first, plugins, verbs = bench.compare([make(kind, index, apps) for index in range(_PODS_PER_KIND)], rounds)
        title = f"{name:9} {kind + (' dressed' if dress else ''):32}"
        say(f"{title} {statistics.median(first) * 1e3:8.3f}   {plugins}   {verbs}")
        if verbs.ratio > SLOWEST:
            missed.append(f"{title.strip()}: the verbs take {verbs.ratio:.2f} times as long with the cache")
        if name == "full" and plugins.ratio > 1 / FASTER:
            missed.append(f"{title.strip()}: the plugins are only {1 / plugins.ratio:.1f} times as fast with the cache")
    return missed


def roll_out(bench: Bench, apps: int) -> None:
    """Ask for every pod of all Deployments in turns, place each, and print what the cache had and what it saved."""
    kinds = list(cluster.KINDS)
    templates = [dressed.incoming(kinds[number % 4], number, apps) for number in range(_DEPLOYMENTS)]
    bench.cache.clear()
    before = dict(bench.cache.statistics.misses), bench.cache.statistics.hits
    times = Times()
    for replica, number in itertools.product(range(_REPLICAS), range(_DEPLOYMENTS)):
        pod = decode_pod(json.dumps(dressed.of_deployment(templates[number], number, replica)).encode())
        times.off.append(bench.decide(FreshEvaluation(bench.mirror, pod))[0])
        spent, node = bench.decide(bench.cache.evaluation(pod))
        times.on.append(spent)
        if node:
            bench.mirror.assume(pod, node, 0.0)
    misses = {name: number - before[0].get(name, 0) for name, number in bench.cache.statistics.misses.items()}
    hits = bench.cache.statistics.hits - before[1]
    told = ", ".join(f"{name} {number:,}" for name, number in misses.items() if number)
    say(f"A rollout of {_DEPLOYMENTS} Deployments with {_REPLICAS} pods each, every placement applied to the mirror:")
    say(
        f"  cells {hits:,} hits of {hits + sum(misses.values()):,} ({hits / (hits + sum(misses.values())):.1%}); {told}"
    )
    say(f"  plugins, ms off / on / ratio: {times}; in sum {sum(times.off):.1f} s off, {sum(times.on):.1f} s on")


def weigh(bench: Bench, apps: int) -> None:
    """Print what the cache takes with many classes."""
    bench.cache.clear()
    gc.collect()
    before = _resident_bytes()
    kinds = list(cluster.KINDS)
    for number in range(LIVE_CLASSES):
        v1_pod = dressed.of_deployment(dressed.incoming(kinds[number % 4], number, apps), number, 0)
        v1_pod["metadata"]["labels"]["copy"] = str(number)
        bench.decide(bench.cache.evaluation(decode_pod(json.dumps(v1_pod).encode())))
    grown = _resident_bytes() - before
    say(f"{len(bench.cache):,} live classes take {bench.cache.nbytes / 1e6:.1f} MB as the cache counts it;")
    say(f"  the process has grown by {grown / 1e6:.1f} MB, match counters and all else that new classes need included")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a report; 1 if the cache makes anything slower, or predicates beyond affinity not fast enough."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cache", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=6, help="times that each known class is asked")
    options = parser.parse_args(arguments)
    say(machine())
    say(f"Loading {options.nodes:,} nodes and {options.pods:,} pods ...")
    existing = cluster.pods(options.pods, options.nodes)
    mirror = load(cluster.namespaces(), dressed.nodes(options.nodes), existing)
    names = [cluster.node_name(index) for index in range(options.nodes)]
    gc.collect()
    gc.freeze()
    apps = cluster.app_count(options.pods)
    say("Milliseconds p50: first question of a class, plugins off / on / ratio, both verbs off / on / ratio")
    missed = []
    for name, profile in (("affinity", affinity_profile()), ("full", full_profile())):
        bench = Bench(mirror, names, profile)
        missed += compare(bench, name, options.rounds, apps)
    roll_out(bench, apps)
    weigh(bench, apps)
    for each in missed:
        say(f"MISSED {each}")
    return 1 if missed else 0


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no path, a kernel's answer
        return int(file.read().split()[1]) * 4096


if __name__ == "__main__":
    sys.exit(main())
