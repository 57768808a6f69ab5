"""A cluster whose cached answers are held against fresh ones at every question, and a few nodes and pods for it."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.events import ClusterEvent, Object
from core.framework.evaluation import FreshEvaluation
from core.framework.interface import AnyFilter
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from tests.builders import make_node, make_pod
from tests.core.decoded import node_of, pod_of
from tests.core.equivalence.said_plugin import statuses, whole

TTL = 30.0
A, B, C = (node_of(make_node(name).label("zone", zone)) for name, zone in (("a", "x"), ("b", "x"), ("c", "y")))
"""Two nodes of one zone, and one of another."""
WEB, DB = (make_pod(app).label("app", app) for app in ("web", "db"))
SMALL_NODE: Final = node_of(make_node("a").allocatable(cpu="1", memory="1Gi", pods=10))
HALF: Final = pod_of(WEB.requests(cpu="600m"))
"""A pod of which SMALL_NODE takes one and no more."""


class HeldCluster:
    """A mirror of some objects, and a cache over some filters, for every pod a class."""

    def __init__(self, *objects: Object, filters: tuple[AnyFilter, ...], max_bytes: int = 10**6) -> None:
        self.mirror = ClusterMirror(assumed_pod_ttl=TTL)
        self.filters = filters
        self.cache = EquivalenceCache(self.mirror, filters, CacheOptions(mode="spec", max_bytes=max_bytes))
        self.sees(*objects)

    def sees(self, *objects: Object) -> None:
        """Add or update objects, as a watch tells it."""
        for each in objects:
            self.mirror.apply(ClusterEvent("Update", each))

    def loses(self, *objects: Object) -> None:
        """Delete objects, as a watch tells it."""
        for each in objects:
            self.mirror.apply(ClusterEvent("Delete", each))

    def answers(self, pod: Pod) -> Mapping[str, tuple[str, ...]]:
        """Return the reasons why nodes do not fit, by node, of all filters; they have to be those of a fresh run."""
        batch = whole(self.mirror)
        found: dict[str, tuple[str, ...]] = dict.fromkeys(batch.names, ())
        for plugin in self.filters:
            cached = statuses(self.cache.evaluation(pod), plugin, batch)
            assert cached == statuses(FreshEvaluation(self.mirror, pod), plugin, batch)
            for name, status in zip(batch.names, cached, strict=True):
                found[name] += status.reasons
        self._hold_chain(pod, batch)
        return found

    def _hold_chain(self, pod: Pod, batch: NodeBatch) -> None:
        cached = self.cache.evaluation(pod).filtered(self.filters, batch)
        fresh = FreshEvaluation(self.mirror, pod).filtered(self.filters, batch)
        assert [cached.status(at) for at in range(len(batch))] == [fresh.status(at) for at in range(len(batch))]

    def fits(self, pod: Pod) -> list[str]:
        """Name the nodes that fit."""
        return [name for name, reasons in self.answers(pod).items() if not reasons]

    def misses(self) -> int:
        """Count the cells that were evaluated since the last call."""
        number = self.cache.statistics.misses.total()
        self.cache.statistics.misses.clear()
        return number


def on(node: str, pod: Pod, name: str = "") -> Pod:
    """Put a pod on a node, another one of the same class if it is given a name."""
    return replace(pod, uid=name or pod.uid, name=name or pod.name, node_name=node)


def affinity(*nodes: Node) -> HeldCluster:
    """Return a cluster of these nodes, else of all three, that is asked about inter-pod affinity."""
    return HeldCluster(*(nodes or (A, B, C)), filters=(InterPodAffinity(),))
