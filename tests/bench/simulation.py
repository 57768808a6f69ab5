"""The CPU time of what-if questions: the drain of a node, many more replicas, and the loss of each zone.

One order of arrival and of ties. Each pod that leaves comes again as a copy of itself, as the pods have no owner.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.objects.pod import Pod
from core.profile import full_profile
from core.simulation.capacity import Template, capacity
from core.simulation.drain import drain
from core.simulation.facts import Again
from core.simulation.loss import lose_each
from core.simulation.moves import Basis
from core.simulation.placing import DEFAULT_SCHEDULER, Scheduler, finished
from core.simulation.removal import remove_each
from tests.bench import cluster
from tests.bench.command import Size
from tests.bench.decisions import decoded, loaded, settle
from tests.bench.live import BenchError
from tests.bench.report import Ratio, Row, Section, Times
from tests.core.profile_parts import derive_states
from tests.core.simulation.setting import Known

DRAIN: Final = 0.05
REPLICAS: Final = 2.0
LOSS: Final = 60.0
REMOVAL: Final = 40.0
"""Seconds of CPU at most."""
_LOSS_AIM: Final = 0.5
_ROUNDS: Final = 4
_DRAINS: Final = 10
"""Nodes that are drained in a round, each by itself."""
_ALL_PLACED_FROM: Final = 100_000
"""Pods of a cluster that has all apps that others are attracted to."""
MORE: Final = 10_000
"""Replicas, at 5,000 nodes."""


class Copies(Known):
    """Each pod comes again."""

    def comes_again(self, _: Pod) -> Again | str:
        """Return a copy."""
        return Again()


class Bench:
    """One cluster, with its questions."""

    def __init__(self, size: Size) -> None:
        profile, mirror = full_profile(), loaded(size)
        derive_states(profile, mirror)
        cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec", max_bytes=2**30))
        self._size = size
        self.basis = Basis(mirror, {DEFAULT_SCHEDULER: Scheduler(profile, cache.evaluation)}, Copies())
        settle()

    def drain(self, number: int) -> float:
        """Drain a node. Return the seconds."""
        name = cluster.node_name(number * 37 % self._size.nodes)
        return self._timed(lambda: not finished(drain(self.basis, [name])).unplaced)

    def more(self, kind: str) -> float:
        """Place more replicas of a kind of pod. Return the seconds."""
        pod, number = decoded(cluster.incoming(kind, 0, cluster.app_count(self._size.pods))), self.replicas
        return self._timed(lambda: finished(capacity(self.basis, [Template(pod)], number)).placed == number)

    def remove(self) -> float:
        """Ask of each node whether it could go. Return the seconds for all of them."""
        return self._timed(lambda: all(each.can_go for each in finished(remove_each(self.basis)).nodes))

    def lose(self) -> float:
        """Lose each zone. Return the seconds for all of them."""
        return self._timed(lambda: finished(lose_each(self.basis, cluster.ZONE)).is_survived)

    @property
    def replicas(self) -> int:
        """How many replicas `more` places."""
        return MORE * self._size.nodes // 5_000

    def _timed(self, ask: Callable[[], bool]) -> float:
        began = time.process_time()
        is_right = ask()
        seconds = time.process_time() - began
        if not is_right and self._size.pods >= _ALL_PLACED_FROM:
            raise BenchError("a pod has no place")
        return seconds


def measure(size: Size) -> Section:
    """Measure all questions."""
    bench, drains = Bench(size), size.samples(_DRAINS)
    bench.drain(0)
    rounds = [[bench.drain(1 + number * drains + each) for each in range(drains)] for number in range(_ROUNDS)]
    rows = [_row("drain of a node", rounds, DRAIN)]
    rows += [
        _row(f"{bench.replicas:,} replicas, {kind}", [[bench.more(kind)]], REPLICAS)
        for kind in ("plain", "aff_zone_prefanti_host", "pref_mix")
    ]
    rows.append(_row("removal of each node by itself", [[bench.remove()]], REMOVAL))
    rows.append(_row("loss of each of three zones", [[bench.lose()]], LOSS, _LOSS_AIM))
    notes = [
        "CPU time on one core, with what is supposed and its undoing. Pods are placed by the filters and exact sums.",
        "No node has an image, so each zone is lost in one state. With images it is lost in two, one after the other.",
    ]
    return Section("simulation", f"What would happen, {size}", rows, notes)


def _row(name: str, rounds: Sequence[Sequence[float]], most: float, aim: float = 0.6) -> Row:
    bound = [[most]] * len(rounds)
    ratio = Ratio.of(rounds, bound, at_most=1.0, aim=aim)
    return Row(name, {"a question": Times.over(rounds)}, ratios={f"to {most * 1e3:,.0f} ms": ratio})
