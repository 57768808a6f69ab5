"""A small cluster for simulations, by all rules of kube-scheduler's default profile."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod
from core.profile import full_profile
from core.simulation.facts import Again, BudgetFacts, PodFacts, copied
from core.simulation.orders import FIRST, ties
from core.simulation.placing import DEFAULT_SCHEDULER, Outcome, Placing, Scheduler, Schedulers, Steps, finished
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


class Known:
    """Facts of some pods by name, and of all budgets. Each pod comes again as a copy."""

    def __init__(self, pods: Mapping[str, PodFacts] | None = None, budget: BudgetFacts | None = None) -> None:
        self._pods = pods or {}
        self._budget = budget or BudgetFacts()

    def prepare(self, pods: Sequence[Pod]) -> None:
        """Do nothing."""

    def comes_again(self, pod: Pod) -> Again | str:
        """Return a copy of the pod, or why none comes."""
        return copied(pod)

    def of_pod(self, pod: Pod) -> PodFacts:
        """Return what is known of a pod."""
        return self._pods.get(pod.name, PodFacts())

    def of_budget(self, _budget: PodDisruptionBudget) -> BudgetFacts:
        """Return what is known of the budgets."""
        return self._budget


NOTHING_MORE: Final = Known()


def placed(mirror: ClusterMirror, *pods: Pod | PodBuilder) -> list[Outcome]:
    """Place pods in order, the first node by name of equally good ones. Nothing is left of it."""
    queue = [each if isinstance(each, Pod) else pod_of(each) for each in pods]
    return within(mirror, lambda fork: _placed(mirror, fork, queue))


def _placed(mirror: ClusterMirror, fork: Fork, queue: Sequence[Pod]) -> list[Outcome]:
    return finished(Placing(mirror, fork, schedulers(mirror), ties(mirror, FIRST)).place(queue))


def result_of(mirror: ClusterMirror, steps: Steps[T]) -> T:
    """Take all steps of a question; afterwards the mirror is as before."""
    before = mirror.dump(), mirror.generation
    found = finished(steps)
    assert (mirror.dump(), mirror.generation) == before
    assert audit(mirror) == []
    return found


def within(mirror: ClusterMirror, do: Callable[[Fork], T]) -> T:
    """Do something in a fork that the cache follows; afterwards the mirror is as before."""
    before = mirror.dump(), mirror.generation
    with mirror.fork(cache_follows=True) as fork:
        result = do(fork)
    assert (mirror.dump(), mirror.generation) == before
    assert audit(mirror) == []
    return result
