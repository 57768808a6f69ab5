"""A node with its pods as they were at one generation: the value that snapshots share."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from core.mirror.resource_figures import PlacedRequests
from core.objects.affinity import NO_AFFINITY
from core.objects.node import Node
from core.objects.pod import Pod


class FrozenNodeInfo(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A known node at one generation, with all its pods, assumed ones among them; never changed again.

    Where a snapshot supposes something of a node, the supposed value keeps the generation of the real one.
    """

    name: str
    node: Node
    generation: int
    in_partition: bool
    pods: Mapping[str, Pod]  # uid -> pod, in no particular order
    pods_with_affinity: Mapping[str, Pod]  # uid -> pod, those with any inter-pod term, be it one that is broken
    pods_with_required_anti_affinity: Mapping[str, Pod]  # uid -> pod
    guaranteed_requested: Mapping[str, int]  # resource -> amount, never 0; see resource_figures.py
    best_effort_requested: Mapping[str, int]  # resource -> amount, never 0

    def supposing(self, pods: Iterable[Pod], victims: Collection[str]) -> "FrozenNodeInfo":
        """Return a copy with further pods, and then without the victims (uids)."""
        supposed = {**self.pods, **{pod.uid: pod for pod in pods}}
        requested = PlacedRequests(self.guaranteed_requested, self.best_effort_requested)
        for uid, pod in supposed.items():
            delta = (uid not in victims) - (uid in self.pods)
            if delta:
                requested.count(pod, delta)
        kept = {uid: pod for uid, pod in supposed.items() if uid not in victims}
        return replace(
            self,
            pods=MappingProxyType(kept),
            pods_with_affinity=with_affinity(kept),
            pods_with_required_anti_affinity=with_required_anti_affinity(kept),
            guaranteed_requested=MappingProxyType(requested.guaranteed),
            best_effort_requested=MappingProxyType(requested.best_effort),
        )


def with_affinity(pods: Mapping[str, Pod]) -> Mapping[str, Pod]:
    """Return the pods that have inter-pod affinity terms (upstream podWithAffinity)."""
    return MappingProxyType({uid: pod for uid, pod in pods.items() if pod.affinity != NO_AFFINITY})


def with_required_anti_affinity(pods: Mapping[str, Pod]) -> Mapping[str, Pod]:
    """Return the pods that repel others (upstream podWithRequiredAntiAffinity)."""
    return MappingProxyType({uid: pod for uid, pod in pods.items() if pod.affinity.required_anti_affinity})
