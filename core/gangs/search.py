"""The members of a gang by class, and a search over the places that they can take together.

- Members of one class are interchangeable, so each set of places is tried once, whichever member takes which.
- Members that only take capacity from each other are tried in one order. With required affinity or hard topology
  spread, a member can make a node fit another one, and all orders are tried.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.objects.pod import Pod
from core.objects.topology_spread import DO_NOT_SCHEDULE
from core.objects.waiting import NOT_WAITING


class MemberClass(NamedTuple):
    """Members that are alike in all that decides where they can go."""

    pods: list[Pod]
    nodes: NodeBatch | None
    """The nodes that may be chosen; None: all."""

    @property
    def may_need_others(self) -> bool:
        """Whether another member can make a node fit."""
        return bool(self.pods[0].affinity.required_affinity) or _has_hard_spread(self.pods[0])

    def within(self, nodes: NodeBatch) -> "MemberClass":
        """Return the class with fewer nodes to choose from: the nodes of the mirror that are in both batches."""
        if self.nodes is None:
            return self._replace(nodes=nodes)
        return self._replace(nodes=nodes.part(np.flatnonzero(np.isin(nodes.slots, self.nodes.slots))))


class Trial:
    """The members that have a node so far: they are assumed in the mirror."""

    def __init__(self, mirror: ClusterMirror, now: float) -> None:
        self.nodes: dict[str, str] = {}  # uid -> node, in the order of placing
        self.steps = 0
        """How many members were placed so far, those that were taken back among them."""
        self._mirror = mirror
        self._now = now

    def assume(self, pod: Pod, node: str) -> None:
        """Place one more member."""
        self.steps += 1
        self._mirror.assume(pod, node, self._now)
        self.nodes[pod.uid] = node

    def undo(self) -> None:
        """Take back the last one."""
        uid, _ = self.nodes.popitem()
        self._mirror.forget(uid)

    def undo_all(self) -> None:
        """Take back all of them."""
        while self.nodes:
            self.undo()


class Search:
    """A search in depth over the places of members, which goes back where a member has none."""

    def __init__(
        self, trial: Trial, classes: Sequence[MemberClass], candidates: Callable[[MemberClass, Pod], list[str]]
    ) -> None:
        self._trial = trial
        self._classes = classes
        self._candidates = candidates
        self._in_any_order = any(each.may_need_others for each in classes)
        self._members = sum(len(each.pods) for each in classes)
        self._taken = [0] * len(classes)  # members of each class that have a node
        self._path: list[tuple[int, str]] = []  # (class, node) of each member that has one
        self._seen: set[frozenset[tuple[tuple[int, str], int]]] = set()
        self._moves = [self._possible()]

    @property
    def is_done(self) -> bool:
        """Whether all members have a node."""
        return len(self._path) == self._members

    def step(self) -> bool:
        """Place one more member, after going back as far as need be; False: there is nothing left to try."""
        while self._moves:
            move = next(self._moves[-1], None)
            if move is None:
                self._go_back()
                continue
            state = frozenset(Counter([*self._path, move]).items())
            if state in self._seen:
                continue
            self._seen.add(state)
            place, node = move
            self._trial.assume(self._classes[place].pods[self._taken[place]], node)
            self._taken[place] += 1
            self._path.append(move)
            self._moves.append(self._possible())
            return True
        return False

    def _go_back(self) -> None:
        self._moves.pop()
        if self._path:
            place, _ = self._path.pop()
            self._taken[place] -= 1
            self._trial.undo()

    def _possible(self) -> Iterator[tuple[int, str]]:
        """Yield the possible next moves. Before it takes the next one, the caller restores the mirror."""
        left = [place for place, each in enumerate(self._classes) if self._taken[place] < len(each.pods)]
        for place in left if self._in_any_order else left[:1]:
            each = self._classes[place]
            for node in self._candidates(each, each.pods[self._taken[place]]):
                yield place, node


def classes_of(members: Sequence[Pod], of_first: NodeBatch | None) -> list[MemberClass]:
    """Sort members into classes; the first one is alone where it has nodes of its own."""
    found: dict[Hashable, MemberClass] = {}
    for number, pod in enumerate(members):
        nodes = of_first if number == 0 else None
        key = (nodes is None, _class_key(pod))
        if key not in found:
            found[key] = MemberClass([], nodes)
        found[key].pods.append(pod)
    return [*found.values()]


def _class_key(pod: Pod) -> Hashable:
    """Return the fields that decide where a pod can go, and how it affects other pods."""
    labels, requests = tuple(sorted(pod.labels.items())), tuple(sorted(pod.requests.items()))  # which have a hash
    return replace(
        pod,
        uid="",
        name="",
        labels=labels,
        requests=requests,
        resource_version="",
        start_time="",
        waiting=NOT_WAITING,
        resources=None,
        group=None,
    )


def greedy_is_exact(classes: Sequence[MemberClass]) -> bool:
    """Return whether a greedy attempt always finds nodes for as many members as any other placement.

    It does for alike members that only take capacity from each other, node by node or domain by domain of one topology
    key. Such members find as many nodes in any order.
    """
    if len(classes) > 1 or classes[0].may_need_others:
        return False
    return len({term.topology_key for term in classes[0].pods[0].affinity.required_anti_affinity}) <= 1


def _has_hard_spread(pod: Pod) -> bool:
    return any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in pod.spread)
