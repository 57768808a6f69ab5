"""Places the members of a gang in few domains: nodes (`pack`), or the domains of a topology key (`near`).

A domain is used if a member has a node in it. Used domains cost nothing. The search looks for the fewest new domains:

1. One domain for all, the one with the least capacity first.
2. Each member on the best node of the used domains. Where none fits, one more domain is used: the one with the least
   capacity that suffices for all members that are left, else the one with the most capacity.
3. Each member on its best node, as without packing. A gang that does not fit so either is refused, for the same reason.
4. Every set of domains that is smaller than the best so far and has enough capacity, the smallest sets first.

It ends as soon as no smaller set has enough capacity. The capacity is an upper bound. It follows from the resources,
the filters before the first member is placed, host ports, and anti-affinity of a class to itself.

The bound: 1 ends after half of the steps of a search back and four times the members. 4 ends after half of the steps,
and one set takes half of those that are left. Where 4 is not cut short, no placement has fewer domains. In any case the
result has no more than the placement of 3.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from core.gangs.attempts import Attempts, Shortfall
from core.gangs.search import MemberClass, Trial
from core.mirror.node_group import Float64Array, NodeGroup
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.noderesources.fit import NodeResourcesFit

_ALONE: Final = 4
"""Domains that are tried for all members together, at the least."""


class FewestDomains:
    """Places one gang once, in few domains of a node group."""

    def __init__(  # noqa: PLR0913  # the gang, and what bounds it
        self,
        attempts: Attempts,
        trial: Trial,
        classes: Sequence[MemberClass],
        group: NodeGroup,
        *,
        beside: Collection[str],
        max_steps: int,
    ) -> None:
        """Place the members of `classes`; `beside` names the nodes whose domains are used."""
        self._attempts = attempts
        self._trial = trial
        self._classes = classes
        self._group = group
        self._used = self._domains_of(beside)
        self._max_steps = max_steps
        self._left = 0  # steps left for the current stage
        self._rooms = _Rooms(attempts, classes, group)
        self._room = self._rooms.of([each.pods for each in classes])
        self._wanted = sum(len(each.pods) for each in classes)

    def place(self) -> Shortfall | None:
        """Place all members in the trial; or none, and return why."""
        least = self._least()
        best: Mapping[str, str] | None = None
        if least is not None:
            if least <= 1 and self._in_one():
                return None
            best = self._taken_back() if self._in_used_ones() else None
            if best is not None and self._new_domains(best) == least:
                self._again(best)
                return None
        shortfall = self._attempts.place(self._trial, self._classes, self._max_steps)
        if shortfall is None:
            best = min((each for each in (best, self._taken_back()) if each is not None), key=self._new_domains)
        if best is None:
            return shortfall
        if least is None or not self._in_fewer(least, self._new_domains(best)):
            self._again(best)
        return None

    def _least(self) -> int | None:
        """Return how many new domains are needed at least; None: all domains together have too little capacity."""
        needed = self._needed()
        if needed <= 0:
            return 0
        sums = np.cumsum(self._room.most[self._by_room()])
        enough = np.flatnonzero(sums >= needed)
        return int(enough[0]) + 1 if len(enough) else None

    def _by_room(self) -> list[int]:
        """Return the domains that are not used and can hold a member, the most capacity first."""
        order = np.lexsort((-self._room.times, -self._room.most)).tolist()
        return [domain for domain in order if domain not in self._used and self._room.most[domain]]

    # The ways to place them.

    def _in_one(self) -> bool:
        """Try the used domains alone, then each one with enough capacity for the rest, without a search back."""
        self._left = _ALONE * self._wanted + self._max_steps // 2
        needed = self._needed()
        times = self._room.times.__getitem__
        alone = sorted((domain for domain in self._by_room() if self._room.most[domain] >= needed), key=times)
        for domains in [frozenset[int]()] if needed <= 0 else [frozenset({domain}) for domain in alone]:
            if self._left <= 0:
                return False
            if self._try(domains, 0):
                return True
        return False

    def _in_used_ones(self) -> bool:
        """Give each member the best node of the used domains; where none fits, use one more."""
        left = [[*each.pods] for each in self._classes]
        used = set(self._used)
        for number, pods in enumerate(left):
            each = self._within(used)[number]
            while pods:
                node = self._attempts.node_for(each, pods[0])
                if isinstance(node, str):
                    self._trial.assume(pods.pop(0), node)
                    continue
                domain = self._one_more(self._classes[number], left, pods[0], used)
                if domain is None:
                    self._trial.undo_all()
                    return False
                used.add(domain)
                each = self._within(used)[number]
        return True

    def _one_more(
        self, each: MemberClass, left: Sequence[Sequence[Pod]], pod: Pod, used: Collection[int]
    ) -> int | None:
        """Return the domain to use next for a member and for the members left; None: it fits in no other one."""
        nodes = each.within(self._group.nodes).nodes or self._group.nodes
        fitting = self._group.has_any(nodes.slots[self._attempts.fits(pod, nodes)])
        fitting[[*used]] = False
        if not fitting.any():
            return None
        room = self._rooms.of(left)
        enough = fitting & (room.most >= sum(map(len, left)))
        if enough.any():
            return int(np.where(enough, room.times, np.inf).argmin())
        return int(np.where(fitting, room.most, 0).argmax())

    def _in_fewer(self, least: int, found: int) -> bool:
        """Try every set of domains that has fewer than were found; false: there is none, or too many steps."""
        self._left = self._max_steps // 2
        for size in range(least, found):
            for domains in self._sets(size):
                if self._left <= 0:
                    return False
                if self._try(domains, self._left // 2 + 1):
                    return True
        return False

    def _sets(self, size: int) -> Iterator[frozenset[int]]:
        """Yield the sets of so many new domains with enough capacity, the sets with the most capacity first."""
        domains = self._by_room()
        room = self._room.most[domains].tolist()

        def more(begin: int, size: int, needed: int) -> Iterator[tuple[int, ...]]:
            if not size:
                yield ()
                return
            for at in range(begin, len(domains) - size + 1):
                if sum(room[at : at + size]) < needed:
                    return
                for rest in more(at + 1, size - 1, needed - room[at]):
                    yield (domains[at], *rest)

        return map(frozenset, more(0, size, self._needed()))

    def _try(self, domains: Collection[int], max_steps: int) -> bool:
        before = self._trial.steps
        failed = self._attempts.place(self._trial, self._within(domains), max_steps) is not None
        self._left -= self._trial.steps - before + failed
        return not failed

    # Domains and placements.

    def _within(self, domains: Collection[int]) -> list[MemberClass]:
        """Return the classes, which may go to used domains and to some others."""
        nodes = self._group.within({*domains, *self._used})
        return [each.within(nodes) for each in self._classes]

    def _needed(self) -> int:
        """Return how many members do not fit in the used domains."""
        return self._wanted - int(self._room.most[[*self._used]].sum())

    def _new_domains(self, placement: Mapping[str, str]) -> int:
        slots = self._attempts.mirror.nodes.slots
        names = set(placement.values())
        # A node outside the group, which came as an object with the request, is a domain of its own.
        return len(self._domains_of(names) - self._used) + sum(name not in slots for name in names)

    def _domains_of(self, names: Collection[str]) -> frozenset[int]:
        slots = self._attempts.mirror.nodes.slots
        known = np.array([slots[name] for name in names if name in slots], np.intp)
        return frozenset(np.flatnonzero(self._group.has_any(known)).tolist())

    def _taken_back(self) -> Mapping[str, str]:
        placement = dict(self._trial.nodes)
        self._trial.undo_all()
        return placement

    def _again(self, placement: Mapping[str, str]) -> None:
        pods = {pod.uid: pod for each in self._classes for pod in each.pods}
        for uid, node in placement.items():
            self._trial.assume(pods[uid], node)


class _DomainRoom(NamedTuple):
    """How many of some members each domain can hold."""

    most: Int64Array
    """An upper bound of the members in any placement."""
    times: Float64Array
    """How many times over all of them fit, by the scarcest resource of each node."""


class _Rooms:
    """How many members each domain can hold, at most."""

    def __init__(self, attempts: Attempts, classes: Sequence[MemberClass], group: NodeGroup) -> None:
        self._mirror = attempts.mirror
        self._group = group
        self._fit: Final = next((each for each in attempts.profile.filters if isinstance(each, NodeResourcesFit)), None)
        self._most = [self._of_class(attempts, each) for each in classes]

    def of(self, left: Sequence[Sequence[Pod]]) -> _DomainRoom:
        """Return how many of these members, given by class, each domain can hold; there is at least one member."""
        nodes = self._group.nodes
        most = np.zeros(len(nodes), np.int64)
        for of_class, pods in zip(self._most, left, strict=True):
            most += np.minimum(of_class, len(pods))
        members = [pod for pods in left for pod in pods]
        times: Float64Array = most / len(members)
        if self._fit is not None:
            room = self._fit.room_for(self._mirror, members, nodes)
            most, times = np.minimum(most, room.most), np.where(most > 0, room.times, 0.0)
        return _DomainRoom(self._group.sums(most).astype(np.int64), self._group.sums(times))

    def _of_class(self, attempts: Attempts, each: MemberClass) -> Int64Array:
        nodes, pod = self._group.nodes, each.pods[0]
        most = np.full(len(nodes), len(each.pods), np.int64)
        if not each.may_need_others:
            most[~attempts.fits(pod, nodes)] = 0
        if each.nodes is not None:
            most[~np.isin(nodes.slots, each.nodes.slots)] = 0
        return np.minimum(most, 1) if pod.host_ports or _is_alone_on_its_node(pod, attempts) else most


def _is_alone_on_its_node(pod: Pod, attempts: Attempts) -> bool:
    """Return whether pods like this one repel each other by a label that every node has."""
    nodes = attempts.mirror.nodes
    return any(
        pod.namespace in term.matcher.namespaces
        and term.matcher.selector.matches(pod.labels)
        and nodes.label_keys[term.topology_key] == len(nodes.slots)
        for term in pod.affinity.required_anti_affinity
    )
