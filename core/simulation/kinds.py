"""Which pods are judged alike, so that one of them is tried and the others share what becomes of it.

A pod with a claim of its own is like no other one. But where rules that no pod can change, such as the topology of
volumes, leave the same nodes to several that differ in their claims alone, and one of them fits none of these even
without its volumes, the others fit none of them either. This helps Deployments with generic ephemeral volumes. Replicas
of a StatefulSet also have labels of their own, and each of them is tried.
"""

from collections.abc import Hashable
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, NamedTuple

from msgspec.structs import replace

from core.framework.evaluation import FreshEvaluation
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import IntpArray
from core.objects.pod import Pod
from core.profile import Profile
from core.scheduling_cycle import filter_nodes
from core.simulation.one_pod import fits_any

_IDENTITY: Final = frozenset({"uid", "name", "resource_version", "start_time", "waiting", "group"})
_all_but_identity: Final = attrgetter(*(field for field in Pod.__struct_fields__ if field not in _IDENTITY))


def alike(one: Pod, other: Pod) -> bool:
    """Return whether two pods are equal but for their names, so that rules judge them alike.

    Claims of their own have names of their own.
    """
    return bool(one.waiting.gates == other.waiting.gates and _all_but_identity(one) == _all_but_identity(other))


def kind_of(pod: Pod) -> Hashable:
    """Return a key that is the same for pods that are alike, if neither is gated and their requests are as counted."""
    labels, requests = frozenset(pod.labels.items()), frozenset(pod.requests.items())
    named = replace(pod, labels=labels, requests=requests, demand=replace(pod.demand, resources=None))
    kind: Hashable = _all_but_identity(named)
    return kind


class _Found(NamedTuple):
    alike: int
    """The number of the pods that are alike."""
    profile: Profile | None = None
    """Of a pod with volumes and siblings. None: the rest is not known."""
    shared: int = -1
    """The number of those that are so but for their volumes, for which the same nodes are left."""
    slots: IntpArray | None = None
    """Of these nodes."""


class Kinds:
    """The kinds of pods, as numbers. No volume may become free, and the nodes may change only in number."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._numbers: dict[Hashable, int] = {}
        self._found: dict[str, _Found] = {}  # by UID
        self._epoch = mirror.nodes.epoch

    def of(self, pod: Pod, profile: Profile | None, nodes: NodeBatch) -> AbstractSet[int]:
        """Return the kinds of a pod. `nodes` may be chosen, by a profile, which is None if it is not known."""
        if self._epoch != self._mirror.nodes.epoch:
            self._epoch = self._mirror.nodes.epoch
            self._found.clear()
        found = self._found.get(pod.uid)
        if found is None:
            found = _Found(self._number(pod))
            if pod.volumes and profile is not None and not pod.claims_resources and self._has_siblings(pod):
                found = self._with_volumes(found.alike, pod, profile, nodes)
            self._found[pod.uid] = found
        return {found.alike, found.shared} if found.profile is not None else {found.alike}

    def rejected_with(self, pod: Pod) -> AbstractSet[int]:
        """Return the kinds of which no pod fits now, because one of them, which was asked for, does not."""
        found = self._found[pod.uid]
        if found.profile is None or found.slots is None:
            return {found.alike}
        nodes = NodeBatch.of_slots(self._mirror.nodes, found.slots)
        with self._mirror.work.uncharged():
            fits = fits_any(self._mirror, found.profile, replace(pod, volumes=()), nodes)
        return {found.alike} if fits else {found.alike, found.shared}

    def _has_siblings(self, pod: Pod) -> bool:
        """Return whether a pod that was asked for before is so but for its volumes."""
        before = len(self._numbers)
        return self._number(replace(pod, volumes=())) < before

    def _with_volumes(self, alike: int, pod: Pod, profile: Profile, nodes: NodeBatch) -> _Found:
        lasting = (each for each in profile.filters if all(rule.kind is not Pod for rule in each.invalidated_by))
        with self._mirror.work.uncharged():
            verdicts = filter_nodes(Profile(tuple(lasting), ()), FreshEvaluation(self._mirror, pod), nodes)
        slots = nodes.slots[verdicts.codes == 0]
        return _Found(alike, profile, self._number(replace(pod, volumes=()), slots.tobytes()), slots)

    def _number(self, pod: Pod, slots: bytes | None = None) -> int:
        key = pod.waiting.gates, kind_of(self._mirror.counted(pod)), slots
        return self._numbers.setdefault(key, len(self._numbers))
