"""How the cost of a decision grows with the cluster. All sizes are in one process, and take turns.

A sample is one decision of each kind of pod, divided by the number of kinds.
"""

from collections.abc import Callable, Mapping
from typing import Final

from core.profile import full_profile
from tests.bench import cluster
from tests.bench.cluster import KINDS
from tests.bench.command import Size
from tests.bench.decisions import Decider, decoded, loaded, names_of, settle
from tests.bench.report import Ratio, Rounds, Row, Section
from tests.core.profile_parts import affinity_profile

_ROUNDS: Final = 5
_PODS_PER_ROUND: Final = 12
_NEW: Final = "new class"
_KNOWN: Final = "known class"
_VERBS: Final = "both verbs"
_CHOICE: Final = "one of all nodes"
_CHOICES: Final = 7
_FIRST_CHOICES: Final = 3
"""After these each class has a ranking."""
_TIMES_NODES: Final = 3
_LINEAR: Final = {_NEW: _TIMES_NODES * 1.1, _KNOWN: _TIMES_NODES * 1.1, _VERBS: _TIMES_NODES * 1.1}
"""Limit of the cost of three times the nodes, with pods in proportion. Linear is 3. The rest allows for noise, and for
CPU caches that hold 5,000 names but not 15,000."""
_FLAT: Final = {_KNOWN: 1.25, _VERBS: 1.25}
"""Limit of the cost of three times the pods on the same nodes. Independent is 1. The rest allows for noise and CPU
caches. There is no limit for a new class, which must count the pods once."""


class OneSize:
    """A cluster of one size, and the seconds of decisions, by heading and round."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self._apps = cluster.app_count(size.pods)
        self._decider = Decider(loaded(size), names_of(size), affinity_profile())
        self._chooser = Decider(self._decider.mirror, names_of(size), full_profile())
        self.seconds = Rounds(_NEW, _KNOWN, _VERBS, _CHOICE)

    def ask(self, index: int) -> None:
        """Evaluate a pod of each kind: as a new class, as a known class, and with both verbs."""
        v1_pods = [cluster.incoming(kind, index, self._apps) for kind in KINDS]
        pods = [decoded(pod) for pod in v1_pods]
        self._add(_NEW, lambda: [self._decider.with_names(pod) for pod in pods])
        for _ in range(3):
            self._add(_KNOWN, lambda: [self._decider.with_names(pod) for pod in pods])
            self._add(_VERBS, lambda: [self._decider.verbs(pod) for pod in v1_pods])
        mirror = self._chooser.mirror
        for number in range(_CHOICES):
            chosen = [self._chooser.choice(pod) for pod in pods]
            if number >= _FIRST_CHOICES:
                self.seconds.add(_CHOICE, sum(seconds for seconds, _ in chosen) / len(chosen))
            placed = [mirror.assume(pod, node, 0.0) for pod, (_, node) in zip(pods, chosen, strict=True) if node]
            for pod in placed:
                mirror.forget(pod.uid)

    def row(self) -> Row:
        """Return the row of this size."""
        figures = {"nodes": float(self.size.nodes), "pods": float(self.size.pods)}
        return Row(str(self.size), self.seconds.times(), figures)

    def ratios(self, smaller: "OneSize", at_most: Mapping[str, float]) -> dict[str, Ratio]:
        """Compare with another size."""
        return {
            name: Ratio.of(rounds, smaller.seconds.of[name], at_most=at_most.get(name))
            for name, rounds in self.seconds.of.items()
        }

    def _add(self, name: str, decide: Callable[[], list[float]]) -> None:
        seconds = decide()
        self.seconds.add(name, sum(seconds) / len(seconds))


def measure(size: Size) -> Section:
    """Measure a fifth of the size, the size, three times of it, and three times its pods alone."""
    nodes, pods = size.nodes, size.pods
    small = OneSize(Size(nodes // 5, pods // 5))
    usual = OneSize(size)
    large = OneSize(Size(nodes * _TIMES_NODES, pods * _TIMES_NODES))
    crowded = OneSize(Size(nodes, pods * _TIMES_NODES))
    sizes = (small, usual, large, crowded)
    settle()
    per_round = size.samples(_PODS_PER_ROUND)
    for number in range(_ROUNDS):
        for each in sizes:
            each.seconds.begin()
        for index in range(number * per_round, (number + 1) * per_round):
            for each in sizes:
                each.ask(index)
    rows = [
        *(each.row() for each in sizes),
        Row(f"{_TIMES_NODES} times the nodes and pods", ratios=large.ratios(usual, _LINEAR)),
        Row(f"{_TIMES_NODES} times the pods on the same nodes", ratios=crowded.ratios(usual, _FLAT)),
    ]
    return Section("growth", f"A decision as the cluster grows from {usual.size}", rows)
