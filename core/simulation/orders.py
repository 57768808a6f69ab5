"""Orders in which pods arrive and ties are broken: chance, of which a question tries several.

kube-scheduler takes the pods with the highest priority first, and of these the one that came first (queuesort
PrioritySort). Which of several equally good nodes it takes is random (schedule_one.go, selectHost). Order 0 has the
pods of an owner together, as a controller makes them, and of equally good nodes the first by name. Of the other orders,
the odd ones mix owners, and the even ones mix all pods of a priority.

Pods that come while the scheduler has nothing else to do are not sorted by priority. One that may preempt gets its
place all the same. So in the even orders, pods that never preempt come last.

Replicas that are alike keep their order in all of them, as nothing but the name depends on which one comes first. Those
of a StatefulSet have their own volumes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from math import inf
from operator import itemgetter
from random import Random
from typing import Final, NamedTuple, TypeVar

import numpy as np

from core.explaining.owners import ordinal
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, IntpArray
from core.objects.pod import Pod
from core.preemption import NEVER
from core.simulation.facts import STATEFUL
from core.simulation.one_pod import Choose
from core.simulation.placing import Outcome

T = TypeVar("T")
FIRST: Final = 0
"""The order that is the same in each run, and the cheapest one."""


class ByName:
    """Chooses the first of equally good nodes by name."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._nodes = mirror.nodes
        self._ranks: tuple[int, Int64Array] = (-1, np.zeros(0, np.int64))  # NodeTable.epoch, and slot -> rank

    def __call__(self, batch: NodeBatch, best: IntpArray) -> int:
        """Choose one of the best positions."""
        epoch, ranks = self._ranks
        if epoch != self._nodes.epoch:
            ranks = np.zeros(self._nodes.capacity, np.int64)
            for rank, name in enumerate(sorted(self._nodes.slots)):
                ranks[self._nodes.slots[name]] = rank
            self._ranks = self._nodes.epoch, ranks
        return int(best[ranks[batch.slots[best]].argmin()])


def ties(mirror: ClusterMirror, order: int) -> Choose:
    """Return what chooses one of equally good nodes in an order."""
    if order == FIRST:
        return ByName(mirror)
    random = Random(order)  # noqa: S311  # no secret; the same in each run
    return lambda _, best: int(best[random.randrange(len(best))])


def arrival(pods: Iterable[Pod], order: int) -> list[Pod]:
    """Return pods in the order in which a scheduler takes them."""
    return arrival_of(pods, order, lambda pod: pod)


def arrival_of(items: Iterable[T], order: int, pod_of: Callable[[T], Pod]) -> list[T]:
    """Return what pods are made of in the order of these pods. No pod is kept."""
    by_owner = sorted(items, key=lambda each: _owner_first(pod_of(each)))
    if order == FIRST:
        return sorted(by_owner, key=lambda each: -pod_of(each).priority)
    random = Random(order)  # noqa: S311  # no secret; the same in each run
    if order % 2:
        owners = [*dict.fromkeys(_owner(pod_of(each)) for each in by_owner)]
        random.shuffle(owners)
        turn = {owner: number for number, owner in enumerate(owners)}
        return sorted(by_owner, key=lambda each: _by_turn(pod_of(each), turn))
    keys = [(_rank(pod), _alike(pod)) for pod in map(pod_of, by_owner)]
    of_key: dict[tuple[float, tuple[str, str, str]], list[T]] = {}
    for key, each in zip(keys, by_owner, strict=True):
        of_key.setdefault(key, []).append(each)
    random.shuffle(keys)
    turns = {key: iter(of_owner) for key, of_owner in of_key.items()}
    return [next(turns[key]) for key in sorted(keys, key=itemgetter(0))]


def _by_turn(pod: Pod, turn: Mapping[tuple[str, str, str], int]) -> tuple[int, int]:
    return -pod.priority, turn[_owner(pod)]


def _rank(pod: Pod) -> float:
    return inf if pod.preemption_policy == NEVER else -pod.priority


def _owner(pod: Pod) -> tuple[str, str, str]:
    controller = pod.controller
    return (pod.namespace, "", pod.name) if controller is None else (pod.namespace, controller.kind, controller.name)


def _alike(pod: Pod) -> tuple[str, str, str]:
    """Return what is the same for pods that only names tell apart."""
    owner = _owner(pod)
    return (pod.namespace, "", pod.name) if owner[1] == STATEFUL else owner


def _owner_first(pod: Pod) -> tuple[object, ...]:
    labels = sorted(pod.labels.items()) if pod.controller is None else ()
    return pod.namespace, *(_owner(pod)[1:] if pod.controller is not None else ("", "")), labels, ordinal(pod), pod.name


class Chance(Enum):
    """In how many of the orders something happens."""

    ALWAYS = "always"
    SOMETIMES = "sometimes"
    NEVER = "never"


def chance_of(number: int, orders: int) -> Chance:
    """Return the chance of what happens in a number of the orders."""
    if number == orders:
        return Chance.ALWAYS
    return Chance.SOMETIMES if number else Chance.NEVER


class Over(NamedTuple):
    """What becomes of one pod over some orders."""

    placed: Chance
    nodes: Mapping[str, int]
    """Node -> in how many orders the pod is placed there, the most frequent first."""
    node: str
    """Where it is placed in the first order, empty for nowhere."""
    rejected: Outcome | None
    """The outcome in the first order in which it is not placed. None: there is none."""


class OverOrders:
    """What becomes of pods over some orders, at least one. It is summed up for one pod when asked about it.

    Pods are named by UID: in the place of one that leaves, by the UID of that one.
    """

    def __init__(self) -> None:
        self._runs: list[dict[str, str | Outcome]] = []
        """uid -> the node, or the outcome without one."""

    def add(self, found: Iterable[tuple[str, str | Outcome]]) -> None:
        """Take what becomes of each UID in one more order. A pod may be missing in some, but not in all of them."""
        self._runs.append(dict(found))

    def of(self, uid: str) -> Over:
        """Return what becomes of a pod."""
        found = [run[uid] for run in self._runs if uid in run]
        placed = [each for each in found if isinstance(each, str)]
        nodes = dict(sorted(Counter(placed).items(), key=lambda each: (-each[1], each[0])))
        first = found[0] if isinstance(found[0], str) else ""
        return Over(
            chance_of(len(placed), len(self._runs)),
            nodes,
            first,
            next((each for each in found if isinstance(each, Outcome)), None),
        )

    def is_always_elsewhere(self, uid: str, out: Collection[str]) -> bool:
        """Return whether a pod is placed in every order, and never on a node of `out`."""
        nodes = (run.get(uid) for run in self._runs)
        return all(isinstance(node, str) and node not in out for node in nodes)
