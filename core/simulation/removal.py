"""Nodes that could go: each by itself, and the largest set that a greedy search finds.

A node may go if every pod on it that must stay in the cluster is placed elsewhere, in every order of arrival and of
ties, while the node is out and after it is removed (core/simulation/lost_nodes.py), and if no budget, annotation or
bare pod keeps it. No pod comes back to it.

Most nodes need no simulation. A pod without rules about other nodes surely has a place, in every order, if it fits more
nodes than there are pods that move, as each of these takes room on one node. Of a node that is simulated, orders are
tried until one has places for all its pods and another has not, or until a pod is found that no order can help.

A pod that must not be disrupted keeps its node even if it needs no other place, such as a DaemonSet's. Nothing keeps
one that is being deleted, but a replica of a StatefulSet comes again and needs a place.

Source: kubernetes/autoscaler cluster-autoscaler/simulator/drainability/rules (bare pods, local storage, safe-to-evict,
budgets) and --expendable-pods-priority-cutoff; sigs.k8s.io/karpenter pkg/controllers/state/statenode.go
(ValidatePodsDisruptable: do-not-disrupt).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np

from core.explaining.owners import belongs_to_node
from core.explaining.remedy import known
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.mirror.work import WorkLimitError
from core.objects.node import HOSTNAME
from core.objects.pod import Pod
from core.scheduling_cycle import filter_nodes
from core.simulation.drain import TWO_BUDGETS, covering_budgets, goes_unready, spare_of
from core.simulation.facts import Facts, Leaving, PodFacts, bring_claims, is_replaced, leave, new_uid
from core.simulation.kinds import alike
from core.simulation.loss import any_images, states_of
from core.simulation.lost_nodes import NodeState, cordoned, lose
from core.simulation.moves import Basis, Rejected, rejected, run_orders
from core.simulation.orders import FIRST, Chance, arrival
from core.simulation.placing import Outcome, Steps, finished, is_spread, may_be_helped, scheduler_of, why_unknown

EXPENDABLE: Final = -10
"""Pods of a lower priority need no other place (Cluster Autoscaler's default)."""
NOT_SAFE: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict is false"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt is true"
NODE_DATA: Final = "it has an emptyDir or hostPath volume"
BUDGET: Final = "its PodDisruptionBudget allows no more disruptions"
_RESOURCES: Final = ("cpu", "memory")


class NodeRemoval(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a node could go, with all others as they are."""

    node: str
    goes: Chance
    """In how many of the orders all its pods find other places, with the node in either state."""
    pods: int = 0
    """Its pods that must find another place."""
    pod: str = ""
    """NAMESPACE/NAME of the pod in the way, in the first order in which one is."""
    why: str = ""
    """The rule about that pod, if one keeps it where it is."""
    rejected: Rejected | None = None
    """Why that pod finds no other place."""
    state: NodeState = NodeState.OUT
    """The state of the node in which it finds none."""

    @property
    def can_go(self) -> bool:
        """Whether all its pods find other places in every order."""
        return self.goes is Chance.ALWAYS


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes could go."""

    nodes: Sequence[NodeRemoval]
    """In the order of the names."""
    together: Sequence[str]
    """Nodes that could all go at once, in the order in which the search took them. Another set may be larger.

    All their pods find other places in every order, while all these nodes are out, and after all are removed.
    """
    saved: Mapping[str, int]
    """cpu in millicores and memory in bytes, which these nodes offer."""


class _Fits(NamedTuple):
    pod: Pod
    nodes: int
    """How many nodes it fits now."""


class _InTheWay(NamedTuple):
    """A pod without another place, in one order."""

    outcome: Outcome
    state: NodeState
    is_certain: bool
    """It has none in any order."""


class _Movers(NamedTuple):
    """The pods of a node that must go elsewhere."""

    pods: list[Pod]
    in_the_way: Pod | None = None
    why: str = ""


def remove_each(basis: Basis, names: Iterable[str] = (), *, tries: int = 0, failures: int = 20) -> Steps[Removal]:
    """Remove each node by itself, of all nodes or of some. Then take up to `tries` of those that can go together.

    The search ends after `failures` nodes in a row that cannot go beside those before them. Nothing is left of it.
    Each node that is judged is one step, and each try. Raises ForkError for an unknown node.
    """
    chosen = sorted({*names}) or sorted(basis.mirror.nodes.slots)
    each = _Each(basis)
    found = []
    for name in chosen:
        found.append(each.judged(name))
        yield
    may_go = [found_of.node for found_of in found if found_of.can_go]
    together = yield from _surely_together(basis, (yield from _together(basis, may_go, tries, failures)))
    saved: Counter[str] = Counter()
    for name in together:
        allocatable = known(basis.mirror, name).allocatable
        saved.update({resource: allocatable.get(resource, 0) for resource in _RESOURCES})
    return Removal(nodes=found, together=together, saved=dict(saved))


class _Each:
    """Judges nodes one at a time. What pods fit now is read once for all alike pods."""

    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._mirror = basis.mirror
        self._fits: dict[object, list[_Fits]] = {}
        self._images = any_images(self._mirror)
        hostnames = [node.labels[HOSTNAME] for _, node in self._mirror.nodes if HOSTNAME in node.labels]
        self._hosts_are_nodes = len(set(hostnames)) == len(hostnames)

    def judged(self, name: str) -> NodeRemoval:
        """Return whether a node can go."""
        known(self._mirror, name)
        movers = movers_of(self._basis, self._mirror.pods_on(name), Counter())
        if movers.in_the_way is not None:
            return NodeRemoval(node=name, goes=Chance.NEVER, pod=movers.in_the_way.full_name, why=movers.why)
        number = len(movers.pods)
        if not number or self._surely_fit(name, movers.pods):
            return NodeRemoval(node=name, goes=Chance.ALWAYS, pods=number)
        return self._simulated(name, movers.pods)

    def _surely_fit(self, name: str, pods: Sequence[Pod]) -> bool:
        """Return whether each pod fits more nodes than pods move, so that others cannot take all of them."""
        comes = self._basis.facts.comes_again
        coming = [again.instead_of(pod) for pod in pods if not isinstance(again := comes(pod), str)]
        if not all(map(self._takes_room_alone, coming)):
            return False
        attracted = [pod for pod in coming if pod.affinity.required_affinity]
        if any(self._fitting(pod) <= len(pods) + 1 for pod in coming if not pod.affinity.required_affinity):
            return False
        if not attracted:
            return True
        with self._mirror.fork(cache_follows=True) as fork:
            leave(self._mirror, fork, self._mirror.pods_on(name), self._basis.facts)
            return all(self._count(pod) > len(pods) + 1 for pod in attracted)

    def _takes_room_alone(self, pod: Pod) -> bool:
        """Return whether pods that are placed elsewhere can take no node from this one but their own."""
        affinity, scheduler = pod.affinity, scheduler_of(self._basis.schedulers, pod)
        if scheduler is None or pod.volumes or is_spread(pod, scheduler.profile):
            return False
        if why_unknown(self._mirror, pod, scheduler, self._mirror.all_nodes()):
            return False
        if any(term.topology_key != HOSTNAME for term in affinity.required_anti_affinity):
            return False
        if affinity.required_anti_affinity and not self._hosts_are_nodes:
            return False
        matchers = tuple(term.matcher for term in affinity.required_affinity)
        # The first of pods that are attracted to each other goes anywhere, and the others only to it.
        return not matchers or not self._mirror.affinity.matches.selects_all(matchers, pod)

    def _fitting(self, pod: Pod) -> int:
        """Return how many nodes a pod fits now."""
        key = pod.namespace, pod.controller, frozenset(pod.labels.items())
        for known_one in self._fits.setdefault(key, []):
            if alike(known_one.pod, pod):
                return known_one.nodes
        number = self._count(pod)
        self._fits[key].append(_Fits(pod, number))
        return number

    def _count(self, pod: Pod) -> int:
        scheduler = scheduler_of(self._basis.schedulers, pod)
        if scheduler is None or pod.waiting.gates:
            return 0
        try:
            verdicts = filter_nodes(scheduler.profile, scheduler.evaluate(pod), self._mirror.all_nodes())
        except WorkLimitError:
            return 0
        return int(np.count_nonzero(verdicts.codes == 0))

    def _may_be_helped(self, pod: Pod) -> bool:
        scheduler = scheduler_of(self._basis.schedulers, pod)
        return scheduler is not None and may_be_helped(pod, scheduler.profile)

    def _simulated(self, name: str, pods: Sequence[Pod]) -> NodeRemoval:
        stays: _InTheWay | None = None
        fits = False
        with self._mirror.fork(cache_follows=True) as fork:
            leaving = leave_nodes(self._basis, fork, [name], pods)
            for order in range(self._basis.orders):
                found = self._in_the_way(fork, name, leaving, order)
                fits |= found is None
                stays = stays or found
                if stays is not None and (fits or stays.is_certain):
                    break
        if stays is None:
            return NodeRemoval(node=name, goes=Chance.ALWAYS, pods=len(pods))
        over = stays.outcome
        return NodeRemoval(
            node=name,
            goes=Chance.SOMETIMES if fits else Chance.NEVER,
            pods=len(pods),
            pod=next(each.pod.full_name for each in leaving if new_uid(each.uid) == over.pod.uid),
            rejected=rejected(over),
            state=stays.state,
        )

    def _in_the_way(self, fork: Fork, name: str, leaving: Sequence[Leaving], order: int) -> _InTheWay | None:
        """Return the pod that finds no other place in an order, in the first state in which one finds none.

        Of the pods that leave together, each that is placed leaves the others less room. So one that fits nowhere
        before any of them is placed never fits, unless it needs others beside it.
        """
        savepoint = fork.savepoint()
        for state in states_of(self._basis, leaving, images=self._images):
            lose(self._mirror, fork, [name], state, cordoned)
            emptied = fork.savepoint()
            over = placed_elsewhere(self._basis, fork, leaving, [name], order)
            fork.revert_to(emptied)
            is_certain = over is not None and not self._may_be_helped(over.pod) and not self._count(over.pod)
            fork.revert_to(savepoint)
            if over is not None:
                return _InTheWay(over, state, is_certain)
        return None


def movers_of(basis: Basis, pods: Sequence[Pod], charged: Counter[str]) -> _Movers:
    """Return the pods of a node that must go elsewhere, or the pod that may not.

    `charged` has how many pods each budget has lost to other nodes, and those of this node are added.
    """
    movers: list[Pod] = []
    basis.facts.prepare(pods)
    for pod in pods:
        needs_no_place = belongs_to_node(pod) or pod.priority < EXPENDABLE
        may_go = pod.terminating or not basis.facts.of_pod(pod).do_not_disrupt
        if is_replaced(pod) or (needs_no_place and may_go):
            continue
        why = _why_it_stays(basis.facts, pod) or _budget_in_the_way(basis, pod, charged)
        if why:
            return _Movers(movers, pod, why)
        movers.append(pod)
    return _Movers(movers)


def _why_it_stays(facts: Facts, pod: Pod) -> str:
    about = PodFacts() if pod.terminating else facts.of_pod(pod)
    if about.do_not_disrupt:
        return DO_NOT_DISRUPT
    if about.safe_to_evict is False:
        return NOT_SAFE
    if about.node_data and not about.safe_to_evict:
        return NODE_DATA
    again = facts.comes_again(pod)
    if isinstance(again, str):
        return "" if about.safe_to_evict else again
    return again.denied


def _budget_in_the_way(basis: Basis, pod: Pod, charged: Counter[str]) -> str:
    facts, about = basis.facts, basis.facts.of_pod(pod)
    covering = covering_budgets(basis.mirror, pod) if about.has_started and not pod.terminating else []
    if len(covering) > 1:
        return TWO_BUDGETS
    for budget in covering:
        if goes_unready(about, facts.of_budget(budget), spare_of(facts, budget)):
            continue
        charged[budget.full_name] += 1
        if charged[budget.full_name] > budget.disruptions_allowed:
            return f"{BUDGET}: {budget.full_name}"
    return ""


def leave_nodes(basis: Basis, fork: Fork, names: Sequence[str], pods: Sequence[Pod]) -> list[Leaving]:
    """Suppose that all pods have left some nodes. Return `pods`, those that must go elsewhere."""
    moving = {pod.uid for pod in pods}
    gone = [pod for name in names for pod in basis.mirror.pods_on(name)]
    basis.facts.prepare(gone)
    found = [each for each in leave(basis.mirror, fork, gone, basis.facts) if each.uid in moving]
    bring_claims(basis.mirror, fork, found)
    return found


def placed_elsewhere(
    basis: Basis, fork: Fork, leaving: Sequence[Leaving], barred: Sequence[str], order: int
) -> Outcome | None:
    """Place pods on other nodes. Return the first that finds no place, or None: all are placed."""
    queue = arrival((pod for each in leaving if (pod := each.coming) is not None), order)
    outcomes = finished(basis.placing(fork, order, barred=barred).place(queue))
    return next((each for each in outcomes if not each.is_placed), None)


def _together(basis: Basis, names: Sequence[str], tries: int, failures: int) -> Steps[list[str]]:
    """Take nodes one after the other, those whose pods request least first, while their pods find other places.

    They are placed in the first order. A node to which pods have moved stays. Budgets count over all nodes, as if they
    went at once.
    """
    mirror, left, taken = basis.mirror, failures, list[str]()
    charged: Counter[str] = Counter()
    filled: frozenset[str] = frozenset()
    with mirror.fork(cache_follows=True) as fork:
        for name in sorted(names, key=lambda each: (_requested(mirror, each), each))[:tries]:
            if left <= 0:
                break
            if name in filled:
                continue
            charged_here = charged.copy()
            movers = movers_of(basis, mirror.pods_on(name), charged_here)
            savepoint = fork.savepoint()
            over: object = movers.in_the_way
            if over is None:
                leaving = leave_nodes(basis, fork, [name], movers.pods)
                lose(mirror, fork, [name], NodeState.OUT, cordoned)
                over = placed_elsewhere(basis, fork, leaving, [*taken, name], FIRST)
            if over is None:
                taken.append(name)
                charged, filled, left = charged_here, fork.filled, failures
            else:
                fork.revert_to(savepoint)
                left -= 1
            yield
    return taken


def _surely_together(basis: Basis, names: list[str]) -> Steps[list[str]]:
    """Leave out nodes until all pods of the others have other places in every order, when these go at once.

    Where pods find none, the later half of their nodes is left out: one alone may make room enough.
    """
    while names:
        over = yield from _without_places(basis, names)
        if not over:
            break
        failing = [name for name in names if name in over]
        left_out = {*failing[len(failing) // 2 :]}
        names = [name for name in names if name not in left_out]
    return names


def _without_places(basis: Basis, names: Sequence[str]) -> Steps[set[str]]:
    """Return the nodes with pods that find no other place in some order, in the first state with such pods."""
    mirror, over = basis.mirror, set[str]()
    with mirror.fork(cache_follows=True) as fork:
        pods = [pod for name in names for pod in movers_of(basis, mirror.pods_on(name), Counter()).pods]
        leaving = leave_nodes(basis, fork, names, pods)
        savepoint = fork.savepoint()
        for state in states_of(basis, leaving, images=any_images(mirror)):
            lose(mirror, fork, names, state, cordoned)
            found = yield from run_orders(basis, fork, leaving, barred=names)
            fork.revert_to(savepoint)
            for each in leaving:
                has_none = each.coming and found.of(each.uid).placed is not Chance.ALWAYS
                # Without a pod that comes again, others leave with it, such as those of its Job.
                if has_none or (each.again is None and not basis.facts.of_pod(each.pod).safe_to_evict):
                    over.add(each.pod.node_name)
            if over:
                break
    return over


def _requested(mirror: ClusterMirror, name: str) -> float:
    """Return the larger share of cpu or memory that the pods of a node request."""
    info = mirror.nodes.infos[name]
    offered = {} if info.node is None else info.node.allocatable
    requested = info.requested.guaranteed
    return max(requested.get(each, 0) / max(offered.get(each, 0), 1) for each in _RESOURCES)
