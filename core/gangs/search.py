"""The members of a gang by class, and a search for their placement.

- Members of one class are interchangeable. So the search tries each set of places once, in whichever order.
- Members that only take capacity from each other are tried in one order. With required affinity or hard topology
  spread, a member can make a node fit another member, so all orders are tried.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from core.mirror.node_info import NodeBatch
from core.mirror.topology import BoolArray
from core.mirror.what_if import Supposition
from core.objects.pod import DO_NOT_SCHEDULE, NOT_WAITING, Pod

NOT_JUDGED: Final[BoolArray] = np.zeros(0, np.bool_)


class MemberClass(NamedTuple):
    """Members with the same values of all fields that decide where they can go."""

    pods: list[Pod]
    nodes: NodeBatch | None
    """The nodes that may be chosen; None: all."""
    fitting: BoolArray = NOT_JUDGED
    """Slot -> whether its node may be chosen and fits while no member has a node; from `Attempts.ordered`."""

    @property
    def may_need_others(self) -> bool:
        """Whether another member can make a node fit this one."""
        return bool(self.pods[0].affinity.required_affinity) or _has_hard_spread(self.pods[0])

    def within(self, nodes: NodeBatch) -> "MemberClass":
        """Return the class with the nodes that are in both batches. `nodes` are nodes of the mirror."""
        if self.nodes is None:
            return self._replace(nodes=nodes)
        return self._replace(nodes=nodes.part(np.flatnonzero(np.isin(nodes.slots, self.nodes.slots))))


class Search:
    """Depth-first search over the places of members, with backtracking."""

    def __init__(
        self, supposed: Supposition, classes: Sequence[MemberClass], candidates: Callable[[MemberClass, Pod], list[str]]
    ) -> None:
        """Place the members in a supposition that the cache follows; none of them has a node."""
        self._supposed = supposed
        self._classes = classes
        self._candidates = candidates
        self._in_any_order = any(each.may_need_others for each in classes)
        self._members = sum(len(each.pods) for each in classes)
        self._taken = [0] * len(classes)  # members of each class that have a node
        self._path: list[tuple[int, str]] = []  # (class, node) of each member that has one
        self._marks: list[int] = []  # of the supposition, before each member of the path
        self._seen: set[frozenset[tuple[tuple[int, str], int]]] = set()
        self._moves = [self._possible()]

    @property
    def is_done(self) -> bool:
        """Whether all members have a node."""
        return len(self._path) == self._members

    def step(self) -> bool:
        """Place one more member, after backtracking as far as needed. False: no placement is left to try."""
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
            self._marks.append(self._supposed.mark())
            self._supposed.place(self._classes[place].pods[self._taken[place]], node)
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
            self._supposed.undo_to(self._marks.pop())

    def _possible(self) -> Iterator[tuple[int, str]]:
        """Yield the possible next moves. The caller must restore the mirror before it takes the next move."""
        left = [place for place, each in enumerate(self._classes) if self._taken[place] < len(each.pods)]
        for place in left if self._in_any_order else left[:1]:
            each = self._classes[place]
            for node in self._candidates(each, each.pods[self._taken[place]]):
                yield place, node


def classes_of(members: Sequence[Pod], of_first: NodeBatch | None) -> list[MemberClass]:
    """Sort members into classes. If the first member has nodes of its own, it is a class of its own."""
    found: dict[Hashable, MemberClass] = {}
    for number, pod in enumerate(members):
        nodes = of_first if number == 0 else None
        key = (nodes is None, _class_key(pod))
        if key not in found:
            found[key] = MemberClass([], nodes)
        found[key].pods.append(pod)
    return [*found.values()]


def _class_key(pod: Pod) -> Hashable:
    """Return the fields that decide where a pod can go, and how the pod affects others."""
    labels, requests = tuple(sorted(pod.labels.items())), tuple(sorted(pod.requests.items()))  # hashable
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


def take_room_alone(classes: Sequence[MemberClass]) -> bool:
    """Return whether no member has a rule about pods that keeps another one from a node, except its own node."""
    return not any(
        each.may_need_others or each.pods[0].affinity.required_anti_affinity or each.pods[0].volumes for each in classes
    )


def greedy_is_exact(classes: Sequence[MemberClass]) -> bool:
    """Return whether a greedy attempt finds nodes for as many members as any other placement.

    This holds for alike members that only take capacity from each other, node by node or domain by domain of one
    topology key. The order of such members does not change how many of them get a node.
    """
    if len(classes) > 1 or classes[0].may_need_others:
        return False
    return len({term.topology_key for term in classes[0].pods[0].affinity.required_anti_affinity}) <= 1


def _has_hard_spread(pod: Pod) -> bool:
    return any(each.when_unsatisfiable == DO_NOT_SCHEDULE for each in pod.spread)
