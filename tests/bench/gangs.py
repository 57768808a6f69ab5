"""The CPU time in which a gang of 50 is placed, by how alike its members are and how close to each other they go.

Each gang is of new classes, as a new job is. It is placed on the cluster as it is, and then deleted.
"""

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from app.objects.decode_pod import decode_pod
from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.gangs.attempts import Shortfall
from core.gangs.placing import Gang, Placer, steps_for
from core.objects.groups import SPREAD, Packing, PackingWay
from core.objects.pod import Pod
from core.profile import full_profile
from tests.bench import cluster
from tests.bench.command import Size
from tests.bench.decisions import loaded, settle
from tests.bench.live import BenchError
from tests.bench.report import Ratio, Row, Section, Times
from tests.core.gangs.gang_setting import place_gang
from tests.core.profile_parts import derive_states

AT_MOST: Final = 0.1
"""Seconds for a gang."""
_AIM: Final = 0.6
_MEMBERS: Final = 50
_ROUNDS: Final = 4
_GANGS: Final = 10
"""Of a kind and a packing, in a round."""
ALIKE: Final = "alike"
OTHER_LABELS: Final = "other labels each"
OTHER_SPECS: Final = "other labels and requests each"
KINDS: Final = (ALIKE, OTHER_LABELS, OTHER_SPECS)
PACKINGS: Final[Mapping[str, Packing]] = MappingProxyType(
    {
        "spread": SPREAD,
        "near, by rack": Packing(PackingWay.NEAR, cluster.RACK),
        "pack": Packing(PackingWay.PACK),
    }
)


class Bench:
    """One cluster, with what places gangs on it."""

    def __init__(self, size: Size) -> None:
        profile = full_profile()
        mirror = loaded(size)
        derive_states(profile, mirror)
        cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
        self._mirror = mirror
        self._placer = Placer(mirror, profile, cache.evaluation, lambda _, best: int(best[0]))
        self._steps = steps_for(size.nodes)
        self._numbers = itertools.count()
        settle()

    def place(self, kind: str, packing: Packing) -> float:
        """Place a new gang; return the seconds of CPU. Raises BenchError if it does not fit."""
        members = [*_members(kind, next(self._numbers))]
        began = time.process_time()
        found = place_gang(self._placer, Gang(members, max_steps=self._steps, packing=packing))
        seconds = time.process_time() - began
        if isinstance(found, Shortfall):
            raise BenchError(f"{kind}: {found.placed} of {found.needed} members fit")
        for uid in found:
            self._mirror.forget(uid)
        return seconds


def _members(kind: str, gang: int) -> Iterator[Pod]:
    for number in range(_MEMBERS):
        name = f"gang-{gang}-{number}"
        labels = {"job": f"gang-{gang}"} if kind == ALIKE else {"job": f"gang-{gang}", "member": str(number)}
        cpu = 6_000 + 80 * number if kind == OTHER_SPECS else 8_000
        requests = {"cpu": f"{cpu}m", "memory": "1Gi"}
        pod = {
            "metadata": {"name": name, "namespace": "ns-000", "uid": name, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "img", "resources": {"requests": requests}}]},
        }
        yield decode_pod(json.dumps(pod).encode())


def measure(size: Size) -> Section:
    """Measure all kinds of members and all packings."""
    bench = Bench(size)
    gangs = size.samples(_GANGS)
    rows = []
    for kind, (name, packing) in itertools.product(KINDS, PACKINGS.items()):
        bench.place(kind, packing)
        rounds = [[bench.place(kind, packing) for _ in range(gangs)] for _ in range(_ROUNDS)]
        rows.append(_row(f"{kind}, {name}", rounds))
    notes = ["CPU time of the placing alone, from the equivalence cache, with classes that are new for each gang."]
    return Section("gangs", f"Gangs of {_MEMBERS}, {size}", rows, notes)


def _row(name: str, rounds: Sequence[Sequence[float]]) -> Row:
    bound = [[AT_MOST]] * len(rounds)
    return Row(
        name,
        {"a gang": Times.over(rounds)},
        ratios={f"to {AT_MOST * 1e3:.0f} ms": Ratio.of(rounds, bound, at_most=1.0, aim=_AIM)},
    )
