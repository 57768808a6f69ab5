"""The engine against the real in-tree InterPodAffinity plugin, on one cluster, in one run, in turns pod by pod.

In-tree runs PreFilter, Filter of all nodes, PreScore, Score and NormalizeScore in a scheduler's framework, with the
nodes as NodeInfos. The engine gets the nodes as slots, and in a second measurement as names. The results are compared
node by node. If the program with the plugin is missing, it is built from tests/e2e/go, which needs Go.
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation, FreshEvaluation
from core.mirror.affinity_counts import MAX_MATCH_COUNTERS
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.affinity import NO_AFFINITY, AffinityTerm, PodAffinity, PodMatcher
from core.objects.labels import Selector
from core.objects.pod import Pod
from core.scheduling_cycle import filter_nodes, score_nodes
from tests.bench import cluster, command
from tests.bench.cluster import HOST, Object
from tests.bench.command import Size
from tests.bench.decisions import names_of, settle
from tests.bench.intree_process import PROGRAM, InTree, difference, running
from tests.bench.live import BenchError, say
from tests.bench.report import INTREE, Ratio, Report, Rounds, Row, Section, made_now, section_text, write
from tests.conformance.engine import decoded_pod, load
from tests.core.decoded import counter_of
from tests.core.profile_parts import affinity_profile
from tests.e2e.binaries import BuildError, binaries

_NOTHING: Final = Selector(nothing=True)


class RequestedTerms:
    """The terms of evaluated pods for which a mirror may have counters."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._requested: set[AffinityTerm] = set()

    def begin(self, pod: Pod) -> None:
        """Drop the counters of a pod's terms before the pod is evaluated."""
        terms = _terms(pod.affinity)
        if not terms.isdisjoint(self._requested):
            push_out_counters(self._mirror)
            self._requested.clear()
        self._requested |= terms


def push_out_counters(mirror: ClusterMirror) -> None:
    """Drop all match counters, by requesting as many new empty ones as the mirror keeps. Takes seconds."""
    for number in range(MAX_MATCH_COUNTERS):
        matcher = PodMatcher(frozenset({str(number)}), namespace_selector=_NOTHING, selector=_NOTHING)
        counter_of(mirror, (matcher,), HOST)


def _terms(affinity: PodAffinity) -> set[AffinityTerm]:
    weighted = (*affinity.preferred_affinity, *affinity.preferred_anti_affinity)
    return {*affinity.required_affinity, *affinity.required_anti_affinity, *(each.term for each in weighted)}


KNOWN_FASTER: Final = 500
"""Least factor by which a known class must be faster than in-tree, for pods with affinity terms."""
COLD_FASTER: Final = 50
"""The same for a new class, whose terms have no counters yet."""
IN_TREE: Final = "in-tree"
COLD: Final = "cold class"
COLD_NAMES: Final = "cold, from names"
KNOWN: Final = "known class"
KNOWN_NAMES: Final = "known, from names"
AFRESH: Final = "known, no cache"
_ROUNDS: Final = 5
_PODS_PER_ROUND: Final = 20
_REPEATS: Final = 5
"""Evaluations of a known class for each evaluation in-tree."""
_NO_SCORES: Final[Int64Array] = np.empty(0, np.int64)
_NOTES: Final = (
    (
        "A decision is to filter all nodes and to score those that fit. In-tree is PreFilter to NormalizeScore, on a "
        "framework that runs no other plugin; its snapshot, and all that a scheduler does besides, do not count."
    ),
    (
        "In-tree is given NodeInfos, the engine slots of nodes; from names: also turns the names of all nodes, "
        "as they stand in a request, into slots. The engine finds the class twice, for filter and for prioritize."
    ),
    (
        "Cold: the equivalence cache does not know the class, and nothing is counted for any of the pod's terms. "
        "Known: it was asked before; no cache: evaluated again, from the counters. A turn is in-tree once, cold once, "
        f"and {_REPEATS} times in a row known with the cache, then without."
    ),
)


class Decision(NamedTuple):
    """The engine's result, and its seconds."""

    given_slots: float
    from_names: float
    names: Sequence[str]
    """All nodes, in the order of the request."""
    fitting: IntpArray
    """Positions of the nodes that fit."""
    scores: Int64Array

    def by_name(self) -> dict[str, int]:
        """Return node -> score for the nodes that fit."""
        return dict(zip((self.names[at] for at in self.fitting.tolist()), self.scores.tolist(), strict=True))


class Engine:
    """The mirror, used as in the service. Classes are by the spec, because the pods have no controller."""

    def __init__(self, mirror: ClusterMirror, names: list[str]) -> None:
        self._mirror = mirror
        self._names = names
        self._starts: Iterator[int] = itertools.cycle(range(0, len(names), max(1, len(names) // 97)))
        self._profile = affinity_profile()
        self._cache = EquivalenceCache(mirror, self._profile.plugins, CacheOptions(mode="spec"))
        self._requested = RequestedTerms(mirror)

    def forget(self, v1_pod: Object) -> None:
        """Make the class of a pod cold."""
        self._cache.clear()
        self._requested.begin(decoded_pod(v1_pod))

    def from_cache(self, v1_pod: Object) -> Decision:
        """Decide as the service does."""
        pod = decoded_pod(v1_pod)  # decoded for each request, because values keep their hashes
        return self._decide(lambda: self._cache.evaluation(pod))

    def afresh(self, v1_pod: Object) -> Decision:
        """Decide without the cache."""
        pod = decoded_pod(v1_pod)
        return self._decide(lambda: FreshEvaluation(self._mirror, pod))

    def _decide(self, evaluation: Callable[[], Evaluation]) -> Decision:
        start = next(self._starts)
        names = self._names[start:] + self._names[:start]  # the scheduler's order has another start in every cycle
        written = msgspec.json.encode(names)
        began = time.perf_counter()
        batch = NodeBatch.found(self._mirror.nodes, written, 1, len(written) - 1)
        if batch is None:
            raise BenchError("a node is not known")
        looked_up = time.perf_counter()
        verdicts = filter_nodes(self._profile, evaluation(), batch)
        fitting = np.flatnonzero(verdicts.codes == 0)
        scores = score_nodes(self._profile, evaluation(), batch.part(fitting)) if len(fitting) else _NO_SCORES
        decided = time.perf_counter()
        return Decision(decided - looked_up, decided - began, names, fitting, scores)


class Bench:
    """One cluster, from the same objects in the engine and in the in-tree plugin."""

    def __init__(self, in_tree: InTree, size: Size) -> None:
        """Send and load the cluster. Raises BenchError if it is not complete."""
        mirror = load(
            in_tree.sent("namespace", cluster.namespaces()),
            in_tree.sent("node", cluster.nodes(size.nodes)),
            in_tree.sent("pod", cluster.pods(size.pods, size.nodes)),
        )
        self.description = in_tree.take_snapshot()
        stored = len(mirror.nodes.slots), mirror.pod_count()
        if stored != (self.description.nodes, self.description.pods):
            raise BenchError(f"(nodes, pods): {stored} here, and in the snapshot {self.description}")
        self._in_tree = in_tree
        self._engine = Engine(mirror, names_of(size))
        self._size = size
        settle()

    def row(self, kind: str) -> Row:
        """Measure a kind of pods. Raises BenchError if a result differs from in-tree's."""
        samples = Rounds(IN_TREE, COLD, KNOWN, AFRESH, COLD_NAMES, KNOWN_NAMES)
        apps = cluster.app_count(self._size.pods)
        per_round = self._size.samples(_PODS_PER_ROUND)
        for number in range(_ROUNDS):
            samples.begin()
            for index in range(number * per_round, (number + 1) * per_round):
                self._turn(samples, cluster.incoming(kind, index, apps))
        has_terms = decoded_pod(cluster.incoming(kind, 0, apps)).affinity != NO_AFFINITY
        bounds = {COLD: COLD_FASTER, KNOWN: KNOWN_FASTER} if has_terms else {}
        in_tree = samples.of[IN_TREE]
        return Row(
            kind,
            samples.times(),
            ratios={
                f"{IN_TREE} to {heading}": Ratio.of(in_tree, rounds, at_least=bounds.get(heading))
                for heading, rounds in samples.of.items()
                if heading != IN_TREE
            },
        )

    def _turn(self, samples: Rounds, v1_pod: Object) -> None:
        """Evaluate in-tree, and then in the engine, as a new and then as a known class. Compare the results."""
        self._engine.forget(v1_pod)
        response = self._in_tree.ask(v1_pod)
        cold = self._engine.from_cache(v1_pod)
        known = [self._engine.from_cache(v1_pod) for _ in range(_REPEATS)]
        afresh = [self._engine.afresh(v1_pod) for _ in range(_REPEATS)]
        samples.add(IN_TREE, response.seconds)
        samples.add(COLD, cold.given_slots)
        samples.add(COLD_NAMES, cold.from_names)
        samples.add(KNOWN, *(each.given_slots for each in known))
        samples.add(KNOWN_NAMES, *(each.from_names for each in known))
        samples.add(AFRESH, *(each.given_slots for each in afresh))
        for decision in (cold, *known, *afresh):
            differs = difference(response.scores, decision.by_name())
            if differs:
                raise BenchError(f"{v1_pod['metadata']['name']}: {differs}")


def measure(program: Sequence[str], size: Size) -> tuple[Section, dict[str, str]]:
    """Measure all kinds of pods. Return the section, and additions to the machine's description.

    `program` is the command that runs the in-tree plugin. Raises BenchError if a result differs from in-tree's.
    """
    with running(program) as in_tree:
        bench = Bench(in_tree, size)
        rows = [bench.row(kind) for kind in cluster.KINDS]
    described = bench.description
    return Section("intree", f"The engine and the in-tree plugin, {size}", rows, list(_NOTES)), {
        "Go": described.go,
        "Kubernetes": described.kubernetes,
        "GOMAXPROCS": str(described.gomaxprocs),
        "parallelism of in-tree": str(described.parallelism),
    }


def main(arguments: Sequence[str]) -> int:
    """Print and write the report. Return 1 if a result differs from in-tree's, or if a ratio is out of its bounds."""
    parser = command.parser("tests.bench.intree", __doc__)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="of the report; default: docs/bench, if all is full"
    )
    options = parser.parse_args(arguments)
    size = command.size(options)
    try:
        program = binaries([PROGRAM])[PROGRAM]
        say(f"Measuring on {size} ...")
        section, described = measure([str(program)], size)
    except (BuildError, BenchError) as error:
        say(str(error))
        return 1
    if (size.nodes, size.pods) != (command.NODES, command.PODS):
        section = section.unbounded()
    made = Report(*made_now(" ".join(["python -m tests.bench.intree", *arguments])), [section])
    made = msgspec.structs.replace(made, machine={**made.machine, **described})
    say(", ".join(f"{key} {value}" for key, value in made.machine.items()))
    say(section_text(section))
    output: Path | None = options.output or (INTREE if size == Size() else None)
    if output is not None:
        write(made, output)
    for line in section.missed:
        say(f"MISSED {line}")
    return 1 if section.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
