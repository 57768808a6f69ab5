"""Gangs over a small mirror, by all rules of kube-scheduler's default profile."""

from collections.abc import Callable, Mapping

from core.equivalence.cache import CacheOptions, EquivalenceCache
from core.framework.evaluation import Evaluation
from core.gangs.attempts import Shortfall
from core.gangs.gangs import Gangs
from core.gangs.placing import Gang, Placer
from core.gangs.unit import Placed, Rejected, Unfinished, Unit, UnitStatus
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.profile import full_profile
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.core.decoded import Builder, mirror_of, pod_of, tell

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name: str, cpu: int = 2, zone: str = "a") -> NodeBuilder:
    """Return a node with some CPUs, on which many pods have room."""
    return make_node(name).label(HOSTNAME, name).label(ZONE, zone).allocatable(cpu=cpu, memory="8Gi", pods=20)


def member(name: str, minimum: int | str = 2, group: str = "train", cpu: int = 1) -> PodBuilder:
    """Return a pending member."""
    return make_pod(name).of_group(group, minimum).requests(cpu=cpu)


def placer(mirror: ClusterMirror, on_evaluation: Callable[[], None] = lambda: None) -> Placer:
    """Return what places gangs; among equal nodes it takes the first one."""
    profile = full_profile()
    cache = EquivalenceCache(mirror, profile.plugins, CacheOptions(mode="spec"))

    def evaluate(pod: Pod) -> Evaluation:
        on_evaluation()
        return cache.evaluation(pod)

    return Placer(mirror, profile, evaluate, lambda _, best: int(best[0]))


def place_gang(placer: Placer, gang: Gang) -> Mapping[str, str] | Shortfall:
    """Make a whole attempt in one part."""
    found = placer.begin(gang).go_on(0.0, lambda: 0.0, 1.0)
    assert found is not None
    return found


class GangSetting:
    """Gangs, and what happens around them."""

    def __init__(self, *objects: Builder, step: float = 0.0, tick: float = 0.0) -> None:
        """Set the CPU time in seconds. `step`: for each evaluation of more than 16 nodes. `tick`: between two looks."""
        self.step = step
        self.tick = tick
        self.spent = 0.0
        self.mirror = mirror_of(*objects)
        self.now = 0.0
        self.excluded: set[str] = set()  # names of pods that are not decided for
        self.gangs = self.fresh()

    def fresh(self) -> Gangs:
        """Return what a replica has that has just started."""
        made = placer(self.mirror, self._evaluated)
        return Gangs(self.mirror, made, lambda pod: pod.name not in self.excluded, self._cpu)

    def _cpu(self) -> float:
        self.spent += self.tick
        return self.spent

    def _evaluated(self) -> None:
        self.spent += self.step

    def work(self, seconds: float) -> None:
        """Let time go by, in which gangs that wait are gone on with between requests."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.1
            self.gangs.begin(self.now)
            self.gangs.work(self.now)

    def see(self, *pods: PodBuilder) -> None:
        """Let the watch show pods."""
        tell(self.mirror, "Update", *pods)

    def see_node(self, name: str, cpu: int = 1) -> None:
        """Let the watch show another node."""
        tell(self.mirror, "Add", node(name, cpu))

    def lose_node(self, name: str) -> None:
        """Let the watch show that a node is gone."""
        tell(self.mirror, "Delete", node(name))

    def place_of(self, pod: PodBuilder) -> str:
        """Return the node on which a pod counts."""
        stored = self.mirror.get_pod(pod_of(pod).uid)
        assert stored is not None
        return stored.node_name

    def delete(self, *pods: PodBuilder) -> None:
        """Let the watch show that pods are gone."""
        tell(self.mirror, "Delete", *pods)

    def ask(self, pod: PodBuilder, nodes: NodeBatch | None = None) -> str:
        """Ask as whoever decides; return `on NODE`, why there is none, or `ordinary`."""
        value = pod_of(pod)
        self.gangs.begin(self.now)
        if self.mirror.is_assumed(value.uid) and not self.gangs.has_reserved(value.uid):
            self.mirror.forget(value.uid)
        match self.gangs.ask(value, self.now, nodes):
            case Placed(node=name):
                self.mirror.assume(value, name, self.now)
                self.mirror.finish_binding(value.uid, self.now)
                return f"on {name}"
            case Rejected(reason=reason) | Unfinished(reason=reason):
                return reason
            case _:
                return "ordinary"

    def bind(self, pod: PodBuilder) -> None:
        """Let the watch show a pod on the node that was decided for it."""
        self.see(pod.on(self.place_of(pod)))

    def status(self, unit: str = "default/train") -> UnitStatus:
        """Return the status of the only unit of a name."""
        (found,) = (each for each in self.gangs.unit_statuses(self.now) if each.unit == unit)
        return found

    def unit(self, name: str) -> Unit:
        """Return the state of the only unit of a name, to change what takes long to come about."""
        (found,) = (each for group, each in self.gangs._units.items() if group.key == name)  # noqa: SLF001
        return found

    def assumed(self) -> set[str]:
        """Return the names of the pods that are assumed, by a reservation or for good."""
        return {each.pod.name for each in self.mirror.assumed.values()}
