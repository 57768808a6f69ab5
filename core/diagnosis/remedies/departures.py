"""Pods whose departure would let the pod fit: those that may be removed, and those that terminate.

The counts of each plugin only exclude candidates. The plugins decide whether the pod fits without a candidate.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

import numpy as np

from core.explaining.explained import Explained
from core.explaining.obstacles import MAX_STEPS, Gone, Obstacles, Proposal
from core.explaining.owners import Way, owner_of
from core.explaining.pod_names import BudgetName, name_of, uid_of
from core.explaining.remedy import RemovePod, is_leaving, is_trouble
from core.framework.interface import AnyFilter
from core.objects.pod import Pod
from core.preemption import NEVER, least_harm
from core.simulation.drain import covering_budgets

MAX_NODES: Final = 6
"""How many nodes are searched for pods."""
MAX_ON_NODE: Final = 4
"""How many pods are proposed for one node, smallest first."""
_MAX_POTENTIAL: Final = 96
"""How many pods are put back one by one, to find those that kube-scheduler would preempt."""


class Departures:
    """The pods that may leave, by the plugins that know which of them are in the way."""

    def __init__(self, obstacles: Obstacles, plugins: Sequence[Explained]) -> None:
        self._obstacles = obstacles
        self._plugins = plugins
        self._removable: Final = {each.name: each.remedies.removable for each in plugins if each.remedies.removable}

    def gone(self) -> Iterator[Sequence[Proposal]]:
        """Yield for some nodes the pods without which the pod may fit there, smallest first.

        Nodes that the fewest plugins reject come first, then nodes with the smallest shortage. The size of a pod is its
        largest share of the node. Pods that would come back, or that terminate, are left out.
        """
        obstacles = self._obstacles
        for position in self._nearest():
            found = [self._removable[plugin](obstacles, position) for plugin in obstacles.of(position)]
            in_all = reduce(lambda some, others: {uid: some[uid] for uid in some if uid in others}, found)
            leaving = [(each, obstacles.leaving.way(each.pod)) for each in in_all.values()]
            may_go = [(each, way) for each, way in leaving if way is not None and way is not Way.TERMINATES]
            node = obstacles.decision.batch.names[position]
            smallest = sorted(may_go, key=lambda each: _size(obstacles, each[0]))[:MAX_ON_NODE]
            yield [Proposal(node, (_removed(obstacles, *each),)) for each in smallest]

    def ending(self) -> Iterator[Proposal]:
        """Propose to wait for the pods of a node that terminate, then for those of all nodes if they are few.

        A pod whose node is in trouble, or is about to be removed, does not end by itself.
        """
        obstacles = self._obstacles
        batch, positions = obstacles.decision.batch, obstacles.only(self._removable)
        of_node: dict[str, list[Gone]] = {}
        for each in self._ending() if len(positions) else ():
            of_node.setdefault(each.node, []).append(each)
        if not of_node:
            return
        slots = [obstacles.decision.mirror.nodes.slots[name] for name in of_node]
        near = [batch.names[at] for at in positions[np.isin(batch.slots[positions], slots)][:MAX_NODES].tolist()]
        everywhere = [each for pods in of_node.values() for each in pods]
        for node, pods in [*((node, of_node[node]) for node in near), *((name, everywhere) for name in self._some())]:
            if 0 < len(pods) <= MAX_STEPS:
                yield Proposal(node, [_removed(obstacles, each, Way.TERMINATES) for each in pods])

    def preempted(self, filters: Sequence[AnyFilter]) -> Iterator[Proposal]:
        """Propose to let kube-scheduler preempt, where it does the least harm of the nearest nodes.

        None for a pod that it has tried before, which has preempted nothing. The source is in core/preemption.py.
        """
        decision, left, names = self._obstacles.decision, _MAX_POTENTIAL, []
        mirror, pod = decision.mirror, decision.pod
        if pod.waiting.reason or pod.preemption_policy == NEVER or pod.in_scheduling_group:
            return
        for name in (decision.batch.names[position] for position in self._nearest()):
            potential = sum(each.priority < pod.priority for each in mirror.pods_on(name))
            if 0 < potential <= left:
                left -= potential
                names.append(name)
        node, victims = least_harm(mirror, filters, pod, names)
        if 0 < len(victims) <= MAX_STEPS and not any(each.terminating for each in victims):
            yield Proposal(node, [_removed(self._obstacles, Gone(each, node), Way.PREEMPTED) for each in victims])

    def _ending(self) -> Iterator[Gone]:
        """Yield the pods that end soon, as far as a plugin knows which pods terminate."""
        obstacles = self._obstacles
        decision, mirror = obstacles.decision, obstacles.decision.mirror
        for uid in dict.fromkeys(uid for plugin in self._plugins for uid in plugin.ending(mirror)):
            pod = mirror.get_pod(uid)
            info = None if pod is None or uid == decision.pod.uid else mirror.nodes.infos.get(pod.node_name)
            if pod is None or info is None or info.node is None or obstacles.leaving.way(pod) is not Way.TERMINATES:
                continue
            if not any(is_trouble(each) or is_leaving(each) for each in info.node.taints):
                yield Gone(pod, pod.node_name)

    def _some(self) -> Sequence[str]:
        """Return some of the nodes that only pods elsewhere may keep the pod from."""
        obstacles = self._obstacles
        elsewhere = [each.name for each in self._plugins if each.remedies.counts_elsewhere]
        positions = obstacles.some_of(obstacles.only(elsewhere), MAX_ON_NODE) if len(obstacles.decision.known) else ()
        return [obstacles.decision.batch.names[position] for position in positions]

    def _nearest(self) -> Sequence[int]:
        """Return up to MAX_NODES nodes. Among many equally near nodes, some at equal distances, which differ more."""
        obstacles = self._obstacles
        positions = obstacles.only(self._removable)
        if not len(positions):
            return ()
        number = obstacles.number[positions]
        missing = np.zeros(len(positions), np.int64)
        for plugin in self._plugins:
            shortage = plugin.shortage(obstacles, positions) if plugin.name in obstacles.rejected else None
            missing = missing if shortage is None else missing + shortage
        order = np.lexsort((missing, number))
        alike = int(np.count_nonzero((number == number[order[0]]) & (missing == missing[order[0]])))
        places = np.linspace(0, alike - 1, MAX_NODES).astype(np.intp) if alike > MAX_NODES else np.arange(MAX_NODES)
        nearest: list[int] = positions[order[places[places < len(order)]]].tolist()
        return nearest


def _removed(obstacles: Obstacles, gone: Gone, way: Way) -> RemovePod:
    owner, budgets = owner_of(gone.pod), _forbidding(obstacles, gone.pod) if way is Way.DELETED else ()
    name, kind = ("", "") if owner is None else (owner.name, owner.kind)
    leaving, of_node, rolled = obstacles.leaving, gone.pod.of_daemon_set, way is Way.ROLLED_OVER
    others = max(leaving.siblings(gone.pod).number - 1, 0) if way is Way.SCALED_DOWN or (rolled and not of_node) else 0
    most = (1 if of_node else leaving.max_unavailable()) if rolled else 0
    return RemovePod(name_of(gone.pod), uid_of(gone.pod), gone.node, budgets, way, name, kind, others, most)


def _forbidding(obstacles: Obstacles, pod: Pod) -> tuple[str, ...]:
    """Return the budgets that forbid a pod's eviction: one that allows no disruption, or several at once.

    Source: k8s.io/kubernetes pkg/registry/core/pod/storage/eviction.go (Create, checkAndDecrement). Its rules for pods
    that are not ready are ignored.
    """
    covering = covering_budgets(obstacles.decision.mirror, pod)
    forbidding = [
        each
        for each in covering
        if len(covering) > 1
        or (each.disruptions_allowed <= 0 and pod.name not in each.disrupted_pods)  # else already being evicted
    ]
    return tuple(sorted(BudgetName(each.full_name) for each in forbidding))


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
