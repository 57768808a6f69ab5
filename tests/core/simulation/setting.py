"""A small cluster for simulations, by all rules of kube-scheduler's default profile."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.pod import Pod
from core.profile import full_profile
from core.simulation.orders import FIRST, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Outcome, Placing, Scheduler, Schedulers, finished
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.core.decoded import pod_of
from tests.core.mirror.audit import audit

T = TypeVar("T")
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: int | str = 2, zone: str = "a") -> NodeBuilder:
    """Return a node with some CPUs, on which many pods have room."""
    return make_node(name).label(HOSTNAME, name).label(ZONE, zone).allocatable(cpu=cpu, memory="8Gi", pods=20)


def replica(name: str, owner: str = "web", cpu: int | str = 1) -> PodBuilder:
    """Return a pod of a ReplicaSet."""
    made = make_pod(name).label("app", owner).label("pod-template-hash", "h")
    return made.owned_by("ReplicaSet", f"{owner}-h", f"{owner}-uid").requests(cpu=cpu)


def schedulers(mirror: ClusterMirror) -> Schedulers:
    """Return the default scheduler, with a cache."""
    profile = full_profile()
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))
    return {DEFAULT_SCHEDULER: Scheduler(profile, cache.evaluation)}


def placed(mirror: ClusterMirror, *pods: Pod | PodBuilder) -> list[Outcome]:
    """Place pods in order, the first node by name of equally good ones. Nothing is left of it."""
    queue = [each if isinstance(each, Pod) else pod_of(each) for each in pods]
    return within(mirror, lambda fork: _placed(mirror, fork, queue))


def _placed(mirror: ClusterMirror, fork: Fork, queue: Sequence[Pod]) -> list[Outcome]:
    return finished(Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).place(queue))


def within(mirror: ClusterMirror, do: Callable[[Fork], T]) -> T:
    """Do something in a fork that the cache follows; afterwards the mirror is as before."""
    before = mirror.dump(), mirror.generation
    with mirror.fork(cache_follows=True) as fork:
        result = do(fork)
    assert (mirror.dump(), mirror.generation) == before
    assert audit(mirror) == []
    return result
