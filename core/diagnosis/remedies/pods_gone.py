"""Pods whose deletion would let the pod fit, found by the counts of each plugin.

The counts only exclude candidates. The plugins decide whether the pod fits without a candidate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.diagnosis.amounts.ports import port_holders
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.counted_terms import Direction, Effect, Rule
from core.diagnosis.pod_names import BudgetName, name_of, uid_of
from core.diagnosis.remedies.obstacles import Obstacles
from core.diagnosis.remedies.proposal import Proposal
from core.diagnosis.remedies.proposals import missing_shares
from core.diagnosis.remedies.remedy import Kind, RemovePod
from core.objects.kinds import PodDisruptionBudget
from core.objects.pod import Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.columns import PODS
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.volumerestrictions import Restrictions, VolumeRestrictions

MAX_NODES: Final = 6
"""How many nodes are searched for pods."""
MAX_ON_NODE: Final = 4
"""How many pods are proposed for one node, smallest first."""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """A pod that may be removed, and its node."""

    pod: Pod
    node: str


Candidates: TypeAlias = Mapping[str, Gone]
"""UID -> the pod."""


def pods_gone(obstacles: Obstacles) -> Iterator[Sequence[Proposal]]:
    """Yield for some nodes the pods without which the pod may fit there, smallest first.

    Nodes that the fewest plugins reject come first, then nodes with the smallest shortage. The size of a pod is its
    largest share of the node.
    """
    for position in _nearest(obstacles):
        found = [_CANDIDATES[plugin](obstacles, position) for plugin in obstacles.of(position)]
        in_all = reduce(lambda some, others: {uid: some[uid] for uid in some if uid in others}, found)
        node = obstacles.decision.batch.names[position]
        smallest = sorted(in_all.values(), key=lambda each: _size(obstacles, each))[:MAX_ON_NODE]
        yield [Proposal(Kind.REMOVE_POD, node, (_removed(obstacles, each),)) for each in smallest]


def _removed(obstacles: Obstacles, gone: Gone) -> RemovePod:
    return RemovePod(name_of(gone.pod), uid_of(gone.pod), gone.node, _forbidding(obstacles, gone.pod))


def _forbidding(obstacles: Obstacles, pod: Pod) -> tuple[str, ...]:
    """Return the budgets that forbid a pod's eviction: one that allows no disruption, or several at once.

    Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go (Create, checkAndDecrement). Its rules for pods
    that are not ready are ignored.
    """
    budgets = obstacles.decision.mirror.objects(PodDisruptionBudget).values()
    covering = [each for each in budgets if each.namespace == pod.namespace and each.covers(pod.labels)]
    forbidding = [
        each
        for each in covering
        if len(covering) > 1
        or (each.disruptions_allowed <= 0 and pod.name not in each.disrupted_pods)  # else already being evicted
    ]
    return tuple(sorted(BudgetName(each.full_name) for each in forbidding))


def _nearest(obstacles: Obstacles) -> Sequence[int]:
    """Return up to MAX_NODES nodes. Among many equally near nodes, some at equal distances, which differ more."""
    positions = obstacles.only(_CANDIDATES)
    if not len(positions):
        return ()
    number = obstacles.number[positions]
    missing = np.zeros(len(positions), np.int64)
    if NodeResourcesFit.name in obstacles.refused:
        missing = missing_shares(obstacles.rooms(positions))
    order = np.lexsort((missing, number))
    alike = int(np.count_nonzero((number == number[order[0]]) & (missing == missing[order[0]])))
    places = np.linspace(0, alike - 1, MAX_NODES).astype(np.intp) if alike > MAX_NODES else np.arange(MAX_NODES)
    nearest: list[int] = positions[order[places[places < len(order)]]].tolist()
    return nearest


def _on_node(obstacles: Obstacles, position: int) -> Candidates:
    mirror, name = obstacles.decision.mirror, obstacles.decision.batch.names[position]
    pods = (mirror.pods.pods[row] for row in sorted(mirror.nodes.infos[name].rows))
    return {pod.uid: Gone(pod, name) for pod in pods if pod.uid != obstacles.decision.pod.uid}


def _with_enough(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that request at least the missing amount."""
    missing = {
        each.resource: each.asked - int(each.free[0]) for each in obstacles.rooms(np.array([position])) if each.short[0]
    }
    return {
        uid: each
        for uid, each in _on_node(obstacles, position).items()
        if all({**each.pod.requests, PODS: 1}.get(resource, 0) >= amount for resource, amount in missing.items())
    }


def _only_holder(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that holds all conflicting ports, or none if several pods do."""
    name = obstacles.decision.batch.names[position]
    holders = [pod for pod, _ in port_holders(obstacles.decision, position)]
    return {pod.uid: Gone(pod, name) for pod in holders} if len(holders) == 1 else {}


def _only_blocker(obstacles: Obstacles, position: int) -> Candidates:
    """Return the only pod, on any node, that makes each inter-pod affinity term reject the node."""
    decision = obstacles.decision
    found: dict[str, Gone] = {}
    for term in decision.terms:
        value_id = term.value_id(decision.batch, position)
        pods = term.count(value_id)
        if term.effect(value_id, pods) is not Effect.BLOCKS:
            continue
        wants = term.rule is Rule.REQUIRED_AFFINITY and term.direction is Direction.INCOMING
        named = () if wants or pods != 1 else term.named(value_id, 1, decision.search)
        if not named or (found and named[0].uid not in found):
            return {}
        pod = decision.mirror.get_pod(named[0].uid)
        if pod is not None:
            found = {pod.uid: Gone(pod, named[0].node)}
    return found


def _spread(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pods of a node that are counted by any constraint that the node fails."""
    decision, candidates = obstacles.decision, _on_node(obstacles, position)
    selectors = [
        each.constraint.selector
        for each in measured_constraints(decision, decision.batch.part(np.array([position])))
        if each.column is not None and each.skews[int(each.column.topology_ids()[0])] > each.constraint.max_skew
    ]
    return {
        uid: each
        for uid, each in candidates.items()
        if each.pod.namespace == decision.pod.namespace
        and any(selector.matches(each.pod.labels) for selector in selectors)
    }


def _volume_users(obstacles: Obstacles, position: int) -> Candidates:
    """Return the pod that uses a ReadWriteOncePod claim of the pod, or the pods of the node with volumes."""
    decision = obstacles.decision
    state = decision.state_of(VolumeRestrictions.name)
    if isinstance(state, Restrictions) and state.exclusive_claim_in_use:
        users = {pod.uid: pod for pods in obstacles.claim_users.values() for pod in pods}
        return {uid: Gone(pod, pod.node_name) for uid, pod in users.items()} if len(users) == 1 else {}
    return _with_volumes(obstacles, position)


def _with_volumes(obstacles: Obstacles, position: int) -> Candidates:
    return {uid: each for uid, each in _on_node(obstacles, position).items() if each.pod.volumes}


_CANDIDATES: Final[Mapping[str, Callable[[Obstacles, int], Candidates]]] = {
    NodeResourcesFit.name: _with_enough,
    NodePorts.name: _only_holder,
    InterPodAffinity.name: _only_blocker,
    PodTopologySpread.name: _spread,
    VolumeRestrictions.name: _volume_users,
    NodeVolumeLimits.name: _with_volumes,
}
"""Plugin -> candidates: the deletion of one may let the plugin pass a node."""


def _size(obstacles: Obstacles, gone: Gone) -> tuple[float, int, str]:
    """Return the largest share of its node that a pod requests, its priority and its name."""
    info = obstacles.decision.mirror.nodes.infos.get(gone.node)
    offered = {} if info is None or info.node is None else info.node.allocatable
    return share(gone.pod, offered), gone.pod.priority, gone.pod.full_name


def share(pod: Pod, allocatable: Mapping[str, int]) -> float:
    """Return the largest share of a node's allocatable resources that a pod requests, 1 if a resource is missing."""
    return max(
        (
            amount / allocatable[name] if allocatable.get(name) else 1.0
            for name, amount in pod.requests.items()
            if amount
        ),
        default=0.0,
    )
