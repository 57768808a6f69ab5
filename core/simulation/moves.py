"""Pods that leave their nodes and come again: what becomes of each, over some orders of arrival and of ties."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from core.explaining.owners import owner_of
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.pod import Pod
from core.simulation.facts import REPLACED, Facts, Leaving, bring_claims, is_replaced, zones_of_volumes
from core.simulation.orders import Chance, OverOrders, arrival_of, ties
from core.simulation.placing import Fate, Outcome, Placing, Schedulers, Steps


class Basis(NamedTuple):
    """What every question has: the state, the schedulers, what the caller knows, and how thorough the response is."""

    mirror: ClusterMirror
    schedulers: Schedulers
    facts: Facts
    orders: int = 1
    """In how many orders of arrival and of ties it is tried, at least 1."""

    def placing(self, fork: Fork, order: int, *, barred: Iterable[str] = ()) -> Placing:
        """Return what places pods in an order."""
        return Placing(
            self.mirror,
            fork,
            self.schedulers,
            ties(self.mirror, order),
            barred=barred,
            tries_preemption=not order,
        )


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod finds no place."""

    fate: Fate
    nodes: int = 0
    """How many nodes were judged."""
    reasons: Mapping[str, int] = {}
    """Reason -> number of nodes with it."""
    victims: Sequence[str] = ()
    """NAMESPACE/NAME of the pods that may be preempted for it on `node`."""
    node: str = ""
    why: str = ""
    """Why its fate is unknown, or it is denied."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that leaves its node, and what becomes of the pod that comes instead."""

    pod: str
    """NAMESPACE/NAME of the pod that leaves."""
    uid: str
    from_node: str
    owner: str = ""
    """KIND NAMESPACE/NAME, empty for none."""
    stays_away: str = ""
    """Why no pod comes instead. Then the rest is empty."""
    is_copy: bool = False
    """It is placed as a copy of the pod that leaves, because the owner's template is not known."""
    placed: Chance = Chance.NEVER
    node: str = ""
    """Where it is placed in the first order."""
    nodes: Mapping[str, int] = {}
    """Node -> in how many orders it is placed there."""
    returns: bool = False
    """It is placed on a node that is out, in some order: it tolerates the taints there."""
    rejected: Rejected | None = None
    """Why it finds no place, in the first order in which it finds none."""
    zones: Sequence[str] | None = None
    """The only zones from which its volumes can be reached. None: any."""


def is_sure(move: Move) -> bool:
    """Return whether the pod has another place in every order."""
    return move.placed is Chance.ALWAYS and not move.returns


def owner_text(pod: Pod) -> str:
    """Return KIND NAMESPACE/NAME of a pod's owner, of a ReplicaSet's pod its Deployment. Empty for none."""
    owner = owner_of(pod)
    return "" if owner is None else f"{owner.kind} {owner.name}"


def run_orders(
    basis: Basis, fork: Fork, leaving: Sequence[Leaving], *, barred: Iterable[str] = ()
) -> Steps[OverOrders]:
    """Place the pods that come again, in each order. Return what becomes of each, by the UID of the one that leaves.

    Afterwards none of them is placed. The claims that they bring stay in the fork.
    """
    bring_claims(basis.mirror, fork, leaving)
    pods, again = basis.mirror.pods, {each.uid: made for each in leaving if (made := each.again) and not made.denied}

    def coming(uid: str) -> Pod:
        """Return the pod that comes. It is made anew at each call: 50,000 of them take 17 MB."""
        return again[uid].instead_of(pods.pods[pods.rows[uid]])

    savepoint = fork.savepoint()
    over = OverOrders()
    for order in range(basis.orders):
        uids = arrival_of(again, order, coming)
        steps = basis.placing(fork, order, barred=barred).in_brief(map(coming, uids))
        over.add(zip(uids, (yield from steps), strict=True))
        fork.revert_to(savepoint)
    return over


def move_of(leaving: Leaving, over: OverOrders, out: frozenset[str]) -> Move:
    """Return a move with its result. `out` are the nodes that are out."""
    pod, again = leaving.pod, leaving.again
    move = Move(
        pod=pod.full_name,
        uid=pod.uid,
        from_node=pod.node_name,
        owner=owner_text(pod),
        stays_away=leaving.why_not,
    )
    if again is None:
        return move
    if again.denied:
        return replace(move, rejected=Rejected(fate=Fate.DENIED, why=again.denied))
    found = over.of(pod.uid)
    zones = zones_of_volumes(leaving.mirror, again.like(pod))
    return replace(
        move,
        is_copy=again.of_template is None,
        placed=found.placed,
        node=found.node,
        nodes=found.nodes,
        returns=any(node in out for node in found.nodes),
        rejected=None if found.rejected is None else rejected(found.rejected),
        zones=None if zones is None else sorted(zones),
    )


def rejected(outcome: Outcome) -> Rejected:
    """Return why a pod was not placed, without what is valid only in the fork."""
    rejection = outcome.rejection
    return Rejected(
        fate=outcome.fate,
        nodes=0 if rejection is None else rejection.nodes,
        reasons={} if rejection is None else rejection.reasons,
        victims=[each.full_name for each in outcome.victims],
        node=outcome.node,
        why=outcome.why,
    )


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """How many replicas an owner has on nodes, and how many of them remain."""

    owner: str
    """KIND NAMESPACE/NAME"""
    replicas: int
    """Its pods on known nodes before."""
    left: int
    """Those that leave."""
    again: int
    """How many of these are placed elsewhere in the first order."""
    surely_again: int
    """How many of these are placed elsewhere in every order."""

    @property
    def remaining(self) -> int:
        """How many replicas it has afterwards."""
        return self.replicas - self.left + self.again


class LeftCounts:
    """Counts the pods that leave by owner."""

    def __init__(self) -> None:
        self._left: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self._surely_again: Counter[str] = Counter()

    def count(self, move: Move) -> None:
        """Count a pod, if its owner makes another one elsewhere."""
        owner = move.owner
        if owner and not owner.startswith(("DaemonSet ", "Node ")) and move.stays_away != REPLACED:
            self._left[owner] += 1
            self._again[owner] += bool(move.node) and not move.returns
            self._surely_again[owner] += is_sure(move)

    def workloads(self, replicas: Mapping[str, int]) -> list[Workload]:
        """Return the owners with pods that leave, those that keep the smallest share of their replicas first."""
        found = [
            Workload(
                owner=owner,
                replicas=replicas.get(owner, left),
                left=left,
                again=self._again[owner],
                surely_again=self._surely_again[owner],
            )
            for owner, left in self._left.items()
        ]
        return sorted(found, key=lambda each: (each.remaining / max(each.replicas, 1), -each.left, each.owner))


def replicas_of(mirror: ClusterMirror) -> dict[str, int]:
    """Return owner -> number of its pods on known nodes. Loops over all pods."""
    counts: dict[str, int] = {}
    for _, pod in mirror.pods.placed_alike():
        owner = owner_text(pod)
        if owner and not is_replaced(pod):
            counts[owner] = counts.get(owner, 0) + 1
    return counts
