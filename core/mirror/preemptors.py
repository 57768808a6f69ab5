"""The pods that wait for the end of preempted victims, and since when."""

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from core.mirror.node_info import NodeTable
from core.mirror.pending_pods import PendingPods
from core.mirror.pod_columns import PodColumns
from core.objects.pod import Pod

UNSEEN: Final = 30.0
"""Seconds after an eviction. If the watch does not show the victim terminating by then, the wait ends."""


class VictimWait(NamedTuple):
    """One pod waits for the end of another."""

    preemptor: Pod
    victim: Pod
    node: str
    since: float
    """When the wait was first seen, by the caller's clock."""


class _Eviction(NamedTuple):
    node: str
    victims: frozenset[str]
    at: float


class Preemptors:
    """(preemptor, victim) -> since when the preemptor waits for the victim.

    A pending pod waits for the pods that Kindred evicted for it. On the node for which it is nominated, it also waits
    for terminating pods of lower priority. It does not matter which client deleted them: the preemptor gets their
    resources in any case. The rule applies to the pods of every scheduler. Source of the rule: k8s.io/kubernetes v1.37
    pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (PodEligibleToPreemptOthers).

    A wait ends when the victim is deleted or on another node. It also ends when the preemptor is assumed, bound,
    deleted, or nominated for another node. Reads never return an ended wait. They return a new wait after the next
    `follow`.
    """

    def __init__(self, nodes: NodeTable, pods: PodColumns, pending: PendingPods) -> None:
        self._nodes = nodes
        self._pods = pods
        self._pending = pending
        self._evictions: dict[str, _Eviction] = {}  # uid of the preemptor -> its eviction
        self._since: dict[tuple[str, str], float] = {}  # uids of (preemptor, victim)

    def evicted(self, preemptor: str, node: str, victims: Collection[str], now: float) -> None:
        """Record the victims on a node, by UID, that were evicted for a pod. They replace the pod's earlier victims."""
        self._evictions[preemptor] = _Eviction(node, frozenset(victims), now)
        self.follow(now)

    def forget(self, preemptor: str) -> None:
        """Remove the eviction for a pod that no longer gets that node."""
        self._evictions.pop(preemptor, None)

    def follow(self, now: float) -> None:
        """Record the waits that have begun, and drop those that have ended. Visits only pods of nominated nodes."""
        self._evictions = {uid: each for uid, each in self._evictions.items() if self._lasts(uid, each, now)}
        self._since = {pair: self._since.get(pair, now) for pair in self._pairs()}

    def waits(self) -> Iterator[VictimWait]:
        """Yield all waits, ordered by the names of victims, then of preemptors (upstream GetPreemptorsByVictim)."""
        waits = (self._wait(*pair) for pair in self._pairs() if pair in self._since)
        yield from sorted(waits, key=_order)

    def of_preemptor(self, uid: str) -> Iterator[VictimWait]:
        """Yield the waits of a pod, ordered by the names of the victims."""
        return (each for each in self.waits() if each.preemptor.uid == uid)

    def _wait(self, preemptor: str, victim: str) -> VictimWait:
        pod, waiting = self._pods.get(victim), self._pending.get(preemptor)
        if pod is None or waiting is None:
            raise KeyError(f"{preemptor} does not wait for {victim}")
        return VictimWait(waiting, pod, pod.node_name, self._since[preemptor, victim])

    def _pairs(self) -> set[tuple[str, str]]:
        """Return (preemptor, victim) of all present waits."""
        found = set()
        for node, pods in self._pending.nominated.items():
            info = self._nodes.infos.get(node)
            held = [] if info is None else [self._pods.pods[row] for row in info.rows]
            terminating = [pod for pod in held if pod.terminating]
            for uid, pod in pods.items():
                if uid not in self._pods.rows:
                    found |= {(uid, each.uid) for each in terminating if each.priority < pod.priority}
        for uid, eviction in self._evictions.items():
            if self._is_pending_for(uid, eviction.node):
                found |= {(uid, victim) for victim in eviction.victims if self._is_on(victim, eviction.node)}
        return found

    def _lasts(self, uid: str, eviction: _Eviction, now: float) -> bool:
        """Return whether a victim exists and terminates, or the watch may not show its termination yet."""
        held = [pod for victim in eviction.victims if (pod := self._pods.get(victim)) is not None]
        return self._is_pending_for(uid, eviction.node) and any(
            pod.terminating or now - eviction.at < UNSEEN for pod in held
        )

    def _is_pending_for(self, uid: str, node: str) -> bool:
        pod = self._pending.get(uid)
        # Without a nomination, the watch may be late, or the pod will be nominated again (app/eviction/evictor.py).
        return pod is not None and uid not in self._pods.rows and pod.nominated_node_name in {"", node}

    def _is_on(self, uid: str, node: str) -> bool:
        pod = self._pods.get(uid)
        return pod is not None and pod.node_name == node


def _order(wait: VictimWait) -> tuple[str, str, str]:
    return wait.victim.full_name, wait.victim.uid, wait.preemptor.full_name
