"""What happens if all nodes of a domain are gone at once: a zone, a rack, or each node by itself.

Budgets do not matter to nodes that fail. Each domain is lost in two states, see core/simulation/lost_nodes.py: its
nodes do not answer, as in the first minutes or hours, and they are removed. Left out: pods stay on a node that does not
answer for the 300 s that they tolerate it, the eviction rates of zones, and replicas of StatefulSets, which wait until
the node's object is deleted.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.pod import DO_NOT_SCHEDULE, Pod
from core.simulation.facts import Leaving, leave
from core.simulation.lost_nodes import UNREACHABLE, NodeState, dead, lose
from core.simulation.moves import Basis, Move, Workload, is_sure, move_of, replicas_of, run_orders, workloads
from core.simulation.placing import Steps


class StateLoss(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the pods of a domain, with its nodes in one state."""

    state: NodeState
    moves: Sequence[Move]
    """One for each pod of the domain, those without a place first."""

    @property
    def unplaced(self) -> Sequence[Move]:
        """The pods that come again and find no other place, in some order."""
        return [each for each in self.moves if not each.stays_away and not is_sure(each)]


class DomainLoss(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of one domain."""

    value: str
    """The value of the topology key."""
    nodes: Sequence[str]
    worse: StateLoss
    other: StateLoss | None
    """The other state. None: no rule that the pods have tells the two apart."""
    workloads: Sequence[Workload]
    """The owners of its pods, in the worse state, those that keep the smallest share of their replicas first."""

    @property
    def is_survived(self) -> bool:
        """Whether every pod that comes again finds another place, in every order and in both states."""
        return not self.worse.unplaced


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


def lose_each(basis: Basis, topology_key: str, only: Iterable[str] = (), *, keeps_other: bool = True) -> Steps[Loss]:
    """Lose each domain of a key, or only some of them. Nothing is left of it. Unknown values have no domain.

    Without `keeps_other`, the moves in the better state are forgotten at once: they take as much memory as the others.
    """
    mirror, chosen = basis.mirror, frozenset(only)
    replicas, domains, images = replicas_of(mirror), domains_of(mirror, topology_key), any_images(mirror)
    found = []
    for value, names in domains.items():
        if not chosen or value in chosen:
            domain = yield from _lost(basis, value, names, replicas, images=images)
            found.append(domain if keeps_other else replace(domain, other=None))
    in_domains = sum(map(len, domains.values()))
    return Loss(
        topology_key=topology_key,
        domains=sorted(found, key=lambda each: (-len(each.worse.unplaced), -_lost_share(each), each.value)),
        nodes_without_key=len(mirror.nodes.slots) - in_domains,
        orders=basis.orders,
    )


def _lost_share(domain: DomainLoss) -> float:
    return max((1 - each.remaining / max(each.replicas, 1) for each in domain.workloads), default=0.0)


def _lost(
    basis: Basis, value: str, names: Sequence[str], replicas: Mapping[str, int], *, images: bool
) -> Steps[DomainLoss]:
    found = []
    with basis.mirror.fork(cache_follows=True) as fork:
        pods = [pod for name in names for pod in basis.mirror.pods_on(name)]
        leaving = leave(basis.mirror, fork, pods, basis.facts)
        states = states_of(leaving, images=images)
        savepoint = fork.savepoint()
        for state in states:
            found.append((yield from _in_state(basis, fork, names, state, leaving)))
            fork.revert_to(savepoint)
    found.sort(key=lambda each: -len(each.unplaced))  # stable: out comes first
    return DomainLoss(
        value=value,
        nodes=names,
        worse=found[0],
        other=found[1] if len(found) > 1 else None,
        workloads=workloads(replicas, found[0].moves),
    )


def _in_state(
    basis: Basis, fork: Fork, names: Sequence[str], state: NodeState, leaving: Sequence[Leaving]
) -> Steps[StateLoss]:
    lose(basis.mirror, fork, names, state, dead)
    over = yield from run_orders(basis, fork, leaving)
    out = frozenset(names)
    moves = [move_of(basis.mirror, each, over, out) for each in leaving]
    moves.sort(key=lambda each: (bool(each.stays_away), is_sure(each), each.pod))
    return StateLoss(state=state, moves=moves)


def any_images(mirror: ClusterMirror) -> bool:
    """Return whether any node has an image. Then scores of images depend on the number of nodes."""
    return any(node.images for _, node in mirror.nodes)


def states_of(leaving: Sequence[Leaving], *, images: bool) -> list[NodeState]:
    """Return the states of nodes to be tried: one if no rule tells the two apart, for the pods that come again.

    Scores of images (`images`: see `any_images`) have the number of all nodes in them, hard topology spread counts the
    domains of nodes that are out, and a pod that tolerates the taints fits there.
    """
    differ = images or any(_has_own_rules(each.again.pod) for each in leaving if each.again is not None)
    return [*NodeState] if differ else [NodeState.OUT]


def _has_own_rules(pod: Pod) -> bool:
    if any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in pod.spread):
        return True
    return any(each.tolerates(UNREACHABLE) for each in pod.tolerations)
