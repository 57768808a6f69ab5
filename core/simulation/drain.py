"""What `kubectl drain` does to some nodes: what it evicts and in which rounds, what it refuses, and where the pods go.

All nodes are cordoned first, and then emptied one after the other, as kubectl does. A round evicts every pod that its
budget lets go. Their successors are placed before the next round, and each that has a place counts as healthy for its
budget. Then those without a place are tried again, as pods that were in their way may be gone. A pod leaves at once,
though it really has its grace period.

Source: k8s.io/kubectl v1.36 pkg/drain/filters.go and drain.go (which pods, and in which order), k8s.io/kubernetes v1.36
pkg/registry/core/pod/storage/eviction.go (Create, checkAndDecrement), pkg/controller/disruption/disruption.go
(countHealthyPods, updatePdbStatus).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from core.explaining.owners import belongs_to_node
from core.mirror.cluster import ClusterMirror
from core.mirror.fork import Fork
from core.objects.kinds import ControllerRef, PodDisruptionBudget
from core.objects.pod import Pod
from core.simulation.facts import BudgetFacts, Facts, Leaving, PodFacts, bring_claims, is_replaced, leave, new_uid
from core.simulation.lost_nodes import NodeState, cordoned, lose
from core.simulation.moves import Basis, LeftCounts, Move, Workload, is_sure, move_of, owner_text
from core.simulation.orders import FIRST, Chance, OverOrders, arrival, chance_of
from core.simulation.placing import Outcome, Steps

IGNORE_DAEMON_SETS: Final = "--ignore-daemonsets"
DELETE_LOCAL_DATA: Final = "--delete-emptydir-data"
FORCE: Final = "--force"
_APPS: Final = ("apps/v1", "")
TWO_BUDGETS: Final = "it has more than one PodDisruptionBudget, and its eviction ends with an error"
NO_BUDGET_LEFT: Final = "its PodDisruptionBudget allows no disruption, and no other pod makes up for one"


class DrainedPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node that is drained."""

    move: Move
    round: int = 0
    """The round of its node in which it is evicted, in the first order. 0: it is not evicted."""
    stays: bool = False
    """kubectl leaves it where it is: a pod of a DaemonSet, or the mirror of a static pod."""
    needs: Sequence[str] = ()
    """The flags without which kubectl refuses to drain its node."""
    budgets: Sequence[str] = ()
    """NAMESPACE/NAME of its PodDisruptionBudgets."""
    evicted: Chance = Chance.ALWAYS
    """In how many orders it is evicted. `never` for a pod that stays."""
    blocked: str = ""
    """Why it is not evicted, in the first order in which it is not."""

    @property
    def comes_again(self) -> bool:
        """Whether it is evicted in every order, and a pod comes instead."""
        return not (self.stays or self.blocked or self.move.stays_away)

    @property
    def is_unplaced(self) -> bool:
        """Whether the pod that comes instead finds no place on a node that is not out, in some order."""
        return self.comes_again and not is_sure(self.move)


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """What a drain does."""

    nodes: Sequence[str]
    ends: Chance
    """In how many orders every pod is evicted."""
    pods: Sequence[DrainedPod]
    """By node, then those that are blocked, those without a place, the others, and at last those that stay."""
    rounds: int
    """The most rounds of any node, in the first order."""
    workloads: Sequence[Workload]
    together: Sequence[str]
    """Controllers (KIND NAMESPACE/NAME) with several replicas that all end on one node, in the first order."""
    orders: int

    @property
    def blocked(self) -> Sequence[DrainedPod]:
        """The pods that are not evicted, in some order. With any, the drain does not end in that order."""
        return [each for each in self.pods if each.blocked]

    @property
    def unplaced(self) -> Sequence[DrainedPod]:
        """The evicted pods that come again and find no other place, in some order."""
        return [each for each in self.pods if each.is_unplaced]

    @property
    def needs(self) -> Sequence[str]:
        """The flags that kubectl needs for it."""
        return sorted({flag for each in self.pods for flag in each.needs})


class _Run(NamedTuple):
    """A drain in one order."""

    leaving: dict[str, Leaving]
    """uid -> the evicted pod."""
    outcomes: dict[str, Outcome]
    """uid -> what becomes of a pod that comes again."""
    rounds: dict[str, int]
    blocked: dict[str, str]


def drain(basis: Basis, names: Sequence[str]) -> Steps[Drain]:
    """Drain nodes in this order. Nothing is left of it. Raises ForkError for an unknown node."""
    mirror, names = basis.mirror, [*dict.fromkeys(names)]
    with mirror.fork(cache_follows=True) as fork:
        lose(mirror, fork, names, NodeState.OUT, cordoned)
        pods = {name: mirror.pods_on(name) for name in names}
        leaving = [pod for of_node in pods.values() for pod in of_node]
        basis.facts.prepare(leaving)
        siblings = _siblings(mirror, leaving)
        savepoint, runs = fork.savepoint(), []
        for order in range(basis.orders):
            runs.append((yield from _Draining(basis, fork, order).run(pods)))
            fork.revert_to(savepoint)
        over, out = OverOrders(), frozenset(names)
        for run in runs:
            comes = ((uid, run.outcomes.get(new_uid(uid))) for uid in run.leaving)
            over.add((uid, each.node if each.is_placed else each) for uid, each in comes if each is not None)
        drained = [each for name in names for each in _of_node(basis, pods[name], runs, over, out)]
    left = LeftCounts()
    for each in drained:
        if not each.stays and not each.blocked:
            left.count(each.move)
    return Drain(
        nodes=names,
        ends=chance_of(sum(not run.blocked for run in runs), len(runs)),
        pods=drained,
        rounds=max(runs[0].rounds.values(), default=0),
        workloads=left.workloads({owner: len(of_owner) for owner, of_owner in siblings.items()}),
        together=_together(siblings, runs[0]),
        orders=basis.orders,
    )


class _Draining:
    """A drain in one order, in a fork in which the nodes are cordoned."""

    def __init__(self, basis: Basis, fork: Fork, order: int) -> None:
        self._basis = basis
        self._fork = fork
        self._order = order
        self._placing = basis.placing(fork, order)
        # Budget -> how many healthy pods it has more than it desires.
        self._spare = {each.full_name: spare_of(basis.facts, each) for each in budgets_of(basis.mirror)}
        self._run = _Run({}, {}, {}, {})
        self._rejected: dict[str, Outcome] = {}  # of the outcomes: uid -> the pod without a place

    def run(self, pods: dict[str, list[Pod]]) -> Steps[_Run]:
        """Empty the nodes one after the other."""
        for of_node in pods.values():
            yield from self._empty([each for each in of_node if not stays(each)])
        return self._run

    def _empty(self, waiting: list[Pod]) -> Steps[None]:
        number = 0
        while waiting:
            number += 1
            evicted, waiting = self._evicted(waiting)
            if not evicted:
                return
            self._run.rounds.update(dict.fromkeys((each.uid for each in evicted), number))
            yield from self._replace(evicted)

    def _replace(self, evicted: Sequence[Pod]) -> Steps[None]:
        """Place the pods that come instead, and those that came before and found no place."""
        mirror, facts = self._basis.mirror, self._basis.facts
        for pod in evicted:
            if not belongs_to_node(pod):  # else it is made again there, though its node is cordoned
                self._count(pod, -int(_is_healthy(facts, pod)))
        leaving = leave(mirror, self._fork, evicted, facts)
        bring_claims(mirror, self._fork, leaving)
        self._run.leaving.update((each.uid, each) for each in leaving)
        waiting = self._waiting
        queue = arrival((new for each in leaving if (new := each.coming) is not None), self._order)
        self._take((yield from self._placing.place(queue)))
        while waiting:
            any_placed = self._take((yield from self._placing.again(waiting)))
            waiting = self._waiting if any_placed else []

    @property
    def _waiting(self) -> list[Outcome]:
        """The pods without a place, as they are tried again: all at once, so by priority (queuesort PrioritySort)."""
        return sorted(self._rejected.values(), key=lambda each: -each.pod.priority)

    def _take(self, outcomes: Sequence[Outcome]) -> bool:
        """Take outcomes, and return whether any pod is placed."""
        for each in outcomes:
            self._run.outcomes[each.pod.uid] = each
            if each.rejection is not None:
                self._rejected[each.pod.uid] = each
            else:
                self._rejected.pop(each.pod.uid, None)
        placed = [each.pod for each in outcomes if each.is_placed]
        for pod in placed:
            self._count(pod, 1)
        return bool(placed)

    def _evicted(self, waiting: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Return the pods of one round, and those that are left."""
        evicted, left = [], []
        charged: Counter[str] = Counter()
        for pod in waiting if self._order == FIRST else arrival(waiting, self._order):
            why = self._why_not(pod, charged)
            if why:
                left.append(pod)
                self._run.blocked[pod.uid] = why
            else:
                evicted.append(pod)
                self._run.blocked.pop(pod.uid, None)
        return evicted, left

    def _count(self, pod: Pod, number: int) -> None:
        for budget in covering_budgets(self._basis.mirror, pod) if number else ():
            self._spare[budget.full_name] += 0 if self._basis.facts.of_budget(budget).sync_failed else number

    def _why_not(self, pod: Pod, charged: Counter[str]) -> str:
        """Return why the API server refuses an eviction, or the empty text. `charged`: budget -> pods in this round."""
        facts = self._basis.facts
        about = facts.of_pod(pod)
        if pod.terminating or not about.has_started:
            return ""
        covering = covering_budgets(self._basis.mirror, pod)
        if not covering:
            return ""
        if len(covering) > 1:
            return TWO_BUDGETS
        name = covering[0].full_name
        if goes_unready(about, facts.of_budget(covering[0]), self._spare[name]):
            return ""
        if self._spare[name] <= charged[name]:
            return NO_BUDGET_LEFT
        charged[name] += 1
        return ""


def goes_unready(about: PodFacts, of_budget: BudgetFacts, spare: int) -> bool:
    """Return whether the eviction of a pod takes nothing from its budget: it is not ready, and the policy lets it go.

    `spare` is how many healthy pods the budget has more than it desires.
    """
    return not about.is_ready and (of_budget.always_allows_unhealthy or (of_budget.wants_any and spare >= 0))


def spare_of(facts: Facts, budget: PodDisruptionBudget) -> int:
    """Return how many healthy pods a budget has more than it desires."""
    return budget.disruptions_allowed or -facts.of_budget(budget).lacks


def _is_healthy(facts: Facts, pod: Pod) -> bool:
    about = facts.of_pod(pod)
    return about.is_ready and about.has_started and not pod.terminating


def budgets_of(mirror: ClusterMirror) -> Iterable[PodDisruptionBudget]:
    """Return all budgets."""
    return mirror.objects(PodDisruptionBudget).values()


def covering_budgets(mirror: ClusterMirror, pod: Pod) -> list[PodDisruptionBudget]:
    """Return the budgets that an eviction of a pod must respect.

    Unlike preemption (PodDisruptionBudget.covers), an eviction respects an empty selector, which is of all pods.
    Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go (getPodDisruptionBudgets).
    """
    return [
        each for each in budgets_of(mirror) if each.namespace == pod.namespace and each.selector.matches(pod.labels)
    ]


def _of_node(
    basis: Basis, pods: Sequence[Pod], runs: Sequence[_Run], over: OverOrders, out: frozenset[str]
) -> list[DrainedPod]:
    found = [_drained(basis, pod, runs, move_of(_leaving(basis, pod, runs), over, out)) for pod in pods]
    return sorted(found, key=lambda each: (each.stays, not each.blocked, not each.is_unplaced, each.move.pod))


def _leaving(basis: Basis, pod: Pod, runs: Sequence[_Run]) -> Leaving:
    found = (run.leaving[pod.uid] for run in runs if pod.uid in run.leaving)
    return next(found, Leaving(basis.mirror, pod.uid, None))


def _drained(basis: Basis, pod: Pod, runs: Sequence[_Run], move: Move) -> DrainedPod:
    is_left = stays(pod)
    needs = [IGNORE_DAEMON_SETS] if is_left and pod.of_daemon_set else []
    if not is_left:
        needs += [DELETE_LOCAL_DATA] if basis.facts.of_pod(pod).local_data else []
        needs += [FORCE] if pod.controller is None else []
    return DrainedPod(
        move=move,
        round=runs[0].rounds.get(pod.uid, 0),
        stays=is_left,
        needs=needs,
        budgets=[] if is_left else sorted(each.full_name for each in covering_budgets(basis.mirror, pod)),
        evicted=chance_of(0 if is_left else sum(pod.uid not in run.blocked for run in runs), len(runs)),
        blocked=next((run.blocked[pod.uid] for run in runs if pod.uid in run.blocked), ""),
    )


def stays(pod: Pod) -> bool:
    """Return whether kubectl leaves a pod where it is. It evicts those of DaemonSets of other API groups.

    Source: filters.go (isControllerRefDaemonSet). A dump by hand may lack the API version.
    """
    version = "" if pod.controller is None else pod.controller.api_version
    return belongs_to_node(pod) and not (pod.of_daemon_set and version not in _APPS)


def _siblings(mirror: ClusterMirror, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Return owner -> its pods on known nodes, for the owners of some pods."""
    owners = {owner for pod in pods if (owner := owner_text(pod))}
    found: dict[str, list[Pod]] = {owner: [] for owner in owners}
    of_controller: dict[ControllerRef, str] = {}
    for namespace in {pod.namespace for pod in pods if pod.controller is not None}:
        for pod in mirror.pods.in_namespace(namespace):
            controller = pod.controller
            if controller is None or is_replaced(pod) or pod.node_name not in mirror.nodes.slots:
                continue
            if controller not in of_controller:
                of_controller[controller] = owner_text(pod)
            if of_controller[controller] in owners:
                found[of_controller[controller]].append(pod)
    return found


def _together(siblings: Mapping[str, Sequence[Pod]], run: _Run) -> list[str]:
    """Return the owners with several replicas that all end on one node."""
    after: dict[str, list[str]] = {}
    for outcome in run.outcomes.values():
        if outcome.is_placed:
            after.setdefault(owner_text(outcome.pod), []).append(outcome.node)
    for owner, nodes in after.items():
        nodes += [each.node_name for each in siblings.get(owner, ()) if each.uid not in run.leaving]
    return sorted(owner for owner, nodes in after.items() if owner and len(nodes) > 1 and len({*nodes}) == 1)
