"""The score side: preferences of the incoming pod, and of existing pods that select it.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity/scoring.go.
"""

from collections.abc import Iterator

import numpy as np

from core.framework.interface import MAX_NODE_SCORE, mapped
from core.mirror.affinity_counts import Role
from core.mirror.cluster import ClusterMirror
from core.mirror.domain_counts import DomainCounts
from core.mirror.match_counters import MatchTerms
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.interpodaffinity.domains import DomainSums


def preferences(mirror: ClusterMirror, pod: Pod, hard_pod_affinity_weight: int) -> DomainSums:
    """Return the weighted counts of all terms that attract or repel the pod. Stale after the next event."""
    return DomainSums((*_own(mirror, pod), *_of_existing_pods(mirror, pod, hard_pod_affinity_weight)))


def normalized(raw: Int64Array) -> Int64Array:
    """Normalise raw scores to 0..100, truncated like Go's int64(). Equal scores all become 0."""
    if not len(raw):
        return raw
    lowest, highest = int(raw.min()), int(raw.max())
    if lowest == highest:
        return np.zeros_like(raw)

    def scale(scores: Int64Array) -> Int64Array:
        return (float(MAX_NODE_SCORE) * ((scores - lowest) / float(highest - lowest))).astype(np.int64)

    return mapped(raw, lowest, highest, scale)


def _own(mirror: ClusterMirror, pod: Pod) -> Iterator[tuple[DomainCounts, int]]:
    preferred = [(each.term, each.weight) for each in pod.affinity.preferred_affinity]
    preferred += [(each.term, -each.weight) for each in pod.affinity.preferred_anti_affinity]
    wanted = [MatchTerms((term.matcher,), term.topology_key) for term, _ in preferred]
    counters = mirror.affinity.matches.of(wanted, "spec.affinity")
    return zip(counters, [weight for _, weight in preferred], strict=True)


def _of_existing_pods(
    mirror: ClusterMirror, pod: Pod, hard_pod_affinity_weight: int
) -> Iterator[tuple[DomainCounts, int]]:
    for owner in mirror.affinity.owners(pod.namespace, pod.labels):
        if owner.owner_term.role is Role.PREFERRED:
            yield owner, owner.owner_term.weight
        elif owner.owner_term.role is Role.REQUIRED_AFFINITY and hard_pod_affinity_weight > 0:
            yield owner, hard_pod_affinity_weight
