"""What happens if all nodes of a domain are gone at once: a zone, a rack, or each node by itself.

Budgets do not matter to nodes that fail. Each domain is lost in two states, see core/simulation/lost_nodes.py: its
nodes do not answer, as in the first minutes or hours, and they are removed. Left out: pods stay on a node that does not
answer while they tolerate it (300 s, or for good), the eviction rates of zones, replicas of StatefulSets, which wait
until the node's object is deleted, and that until then each pod there only terminates, so that rules about pods count
it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.pod import Pod
from core.simulation.facts import Leaving, leave
from core.simulation.lost_nodes import UNREACHABLE, NodeState, dead, lose
from core.simulation.moves import Basis, LeftCounts, Move, Workload, is_sure, move_of, replicas_of, run_orders
from core.simulation.orders import OverOrders
from core.simulation.placing import Fate, Steps, is_spread, scheduler_of

Keep: TypeAlias = Callable[[Iterable[Move]], Collection[Move]]
"""Takes the moves of one state, each made when it is asked for, and returns them as they are kept."""


class StateLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the pods of a domain, with its nodes in one state."""

    state: NodeState
    moves: Collection[Move]
    """One for each pod of the domain, those without a place first, then those with one; each by name."""
    coming: int
    """Pods that come again."""
    without_place: int
    """Pods of these that find no other place, in some order."""
    unknown: int
    """Pods of these of which it cannot be said."""
    workloads: Sequence[Workload]
    """The owners of the pods, those that keep the smallest share of their replicas first."""

    @property
    def unplaced(self) -> Sequence[Move]:
        """The pods that come again and find no other place, in some order. Reads all moves."""
        return [each for each in self.moves if not each.stays_away and not is_sure(each)]


class DomainLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of one domain."""

    value: str
    """The value of the topology key."""
    nodes: Sequence[str]
    worse: StateLoss
    other: StateLoss | None
    """The other state. None: no rule that the pods have tells the two apart."""

    @property
    def is_survived(self) -> bool:
        """Whether every pod that comes again finds another place, in every order and in both states."""
        return not self.worse.without_place


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of each domain of a topology key by itself."""

    topology_key: str
    domains: Sequence[DomainLoss]
    """The worst first: the most pods without a place."""
    nodes_without_key: int
    """Nodes that are in no domain."""
    orders: int

    @property
    def is_survived(self) -> bool:
        """Whether the cluster survives the loss of any one domain."""
        return all(each.is_survived for each in self.domains)


def domains_of(mirror: ClusterMirror, topology_key: str) -> dict[str, list[str]]:
    """Return value -> the names of its nodes, in order."""
    found: dict[str, list[str]] = {}
    for _, node in mirror.nodes:
        if topology_key in node.labels:
            found.setdefault(node.labels[topology_key], []).append(node.name)
    return {value: sorted(found[value]) for value in sorted(found)}


def lose_each(
    basis: Basis, topology_key: str, only: Iterable[str] = (), *, keep: Keep = list, keeps_other: bool = True
) -> Steps[Loss]:
    """Lose each domain of a key, or only some of them. Nothing is left of it. Unknown values have no domain.

    Moves take 1 kB each as objects: `keep` may have them smaller. Without `keeps_other`, those in the better state are
    forgotten at once.
    """
    mirror, chosen = basis.mirror, frozenset(only)
    losing, domains = _Losing(basis, keep), domains_of(mirror, topology_key)
    found = []
    for value, names in domains.items():
        if not chosen or value in chosen:
            domain = yield from losing.domain(value, names)
            found.append(domain if keeps_other else replace(domain, other=None))
    in_domains = sum(map(len, domains.values()))
    return Loss(
        topology_key=topology_key,
        domains=sorted(found, key=lambda each: (-each.worse.without_place, -_lost_share(each), each.value)),
        nodes_without_key=len(mirror.nodes.slots) - in_domains,
        orders=basis.orders,
    )


def _lost_share(domain: DomainLoss) -> float:
    return max((1 - each.remaining / max(each.replicas, 1) for each in domain.worse.workloads), default=0.0)


class _Losing:
    """Loses domains. What is the same for all of them is read once."""

    def __init__(self, basis: Basis, keep: Keep) -> None:
        self._basis = basis
        self._keep = keep
        self._replicas = replicas_of(basis.mirror)
        self._images = any_images(basis.mirror)

    def domain(self, value: str, names: Sequence[str]) -> Steps[DomainLoss]:
        """Lose the nodes of one domain, in both states if a rule tells these apart."""
        mirror, found = self._basis.mirror, []
        with mirror.fork(cache_follows=True) as fork:
            pods = [pod for name in names for pod in mirror.pods_on(name)]
            self._basis.facts.prepare(pods)
            leaving = leave(mirror, fork, pods, self._basis.facts)
            del pods  # 300 bytes each, which 50,000 of them would take while others are placed
            states = states_of(self._basis, leaving, images=self._images)
            savepoint = fork.savepoint()
            for state in states:
                found.append((yield from self._in_state(fork, names, state, leaving)))
                fork.revert_to(savepoint)
        found.sort(key=lambda each: -each.without_place)  # stable: out comes first
        return DomainLoss(value=value, nodes=names, worse=found[0], other=found[1] if len(found) > 1 else None)

    def _in_state(
        self, fork: Fork, names: Sequence[str], state: NodeState, leaving: Sequence[Leaving]
    ) -> Steps[StateLoss]:
        basis, out = self._basis, frozenset(names)
        lose(basis.mirror, fork, names, state, dead)
        over = yield from run_orders(basis, fork, leaving)
        made = (move_of(each, over, out) for each in _in_order(leaving, over, out))
        return _summed(state, made, self._keep, self._replicas)


def _in_order(leaving: Iterable[Leaving], over: OverOrders, out: frozenset[str]) -> Iterator[Leaving]:
    """Yield pods in the order of their moves, before there are any."""
    unplaced, placed, staying = list[Leaving](), list[Leaving](), list[Leaving]()
    for each in leaving:
        if each.again is None:
            staying.append(each)
        else:
            is_elsewhere = not each.again.denied and over.is_always_elsewhere(each.uid, out)
            (placed if is_elsewhere else unplaced).append(each)
    for part in (unplaced, placed, staying):
        yield from sorted(part, key=lambda each: each.pod.full_name)


def _summed(state: NodeState, moves: Iterable[Move], keep: Keep, replicas: Mapping[str, int]) -> StateLoss:
    """Return what becomes of a state, with its moves as they are kept. They are counted on their way there."""
    counts, left = Counter[str](), LeftCounts()

    def counted() -> Iterator[Move]:
        for move in moves:
            left.count(move)
            if not move.stays_away:
                counts["coming"] += 1
                if not is_sure(move):
                    counts["without_place"] += 1
                    counts["unknown"] += move.rejected is not None and move.rejected.fate is Fate.UNKNOWN
            yield move

    stored = keep(counted())
    return StateLoss(
        state=state,
        moves=stored,
        coming=counts["coming"],
        without_place=counts["without_place"],
        unknown=counts["unknown"],
        workloads=left.workloads(replicas),
    )


def any_images(mirror: ClusterMirror) -> bool:
    """Return whether any node has an image. Then scores of images depend on the number of nodes."""
    return any(node.images for _, node in mirror.nodes)


def states_of(basis: Basis, leaving: Sequence[Leaving], *, images: bool) -> list[NodeState]:
    """Return the states of nodes to be tried: one if no rule tells the two apart, for the pods that come again.

    Scores of images (`images`: see `any_images`) have the number of all nodes in them, hard topology spread counts the
    domains of nodes that are out, and a pod that tolerates the taints fits there.
    """
    coming = (each.again.like(each.pod) for each in leaving if each.again is not None)
    differ = images or any(_has_own_rules(basis, pod) for pod in coming)
    return [*NodeState] if differ else [NodeState.OUT]


def _has_own_rules(basis: Basis, pod: Pod) -> bool:
    scheduler = scheduler_of(basis.schedulers, pod)
    if scheduler is None:
        return False
    return is_spread(pod, scheduler.profile) or any(each.tolerates(UNREACHABLE) for each in pod.tolerations)
