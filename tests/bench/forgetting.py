"""Drops a mirror's counters for incoming pods, so that a class is as cold as a new one."""

from typing import Final

from core.mirror.affinity_counts import MAX_MATCH_COUNTERS
from core.mirror.cluster import ClusterMirror
from core.objects.affinity import AffinityTerm, PodAffinity, PodMatcher
from core.objects.labels import Selector
from core.objects.pod import Pod
from tests.bench.cluster import HOST
from tests.core.decoded import counter_of

_NOTHING: Final = Selector(nothing=True)


class AskedTerms:
    """The terms of evaluated pods for which a mirror may have counters."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._asked: set[AffinityTerm] = set()

    def begin(self, pod: Pod) -> None:
        """Drop the counters of a pod's terms before the pod is evaluated."""
        terms = _terms(pod.affinity)
        if not terms.isdisjoint(self._asked):
            push_out_counters(self._mirror)
            self._asked.clear()
        self._asked |= terms


def push_out_counters(mirror: ClusterMirror) -> None:
    """Drop all match counters, by requesting as many new empty ones as the mirror keeps. Takes seconds."""
    for number in range(MAX_MATCH_COUNTERS):
        matcher = PodMatcher(frozenset({str(number)}), namespace_selector=_NOTHING, selector=_NOTHING)
        counter_of(mirror, (matcher,), HOST)


def _terms(affinity: PodAffinity) -> set[AffinityTerm]:
    weighted = (*affinity.preferred_affinity, *affinity.preferred_anti_affinity)
    return {*affinity.required_affinity, *affinity.required_anti_affinity, *(each.term for each in weighted)}
