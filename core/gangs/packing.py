"""Places the members of a gang in few domains: nodes (`pack`), or the domains of a topology key (`near`).

The domains of members that have a node already are used, and cost nothing. Of the others, the search wants the fewest:

1. One domain for all, the one with the least room first.
2. Domain by domain: the least room that suffices for all that are left, else the most room.
3. Each member on its best node, as without packing. What does not fit so either is refused, for the same reason.
4. Every set of domains that is smaller than the best so far and has room enough, the smallest sets first.

It ends as soon as no smaller set has room. Room is a bound from above, by the resources, the filters before the first
member is placed, host ports, and anti-affinity of a class to itself. So 1 and 2 need no proof by 4 mostly. Steps 1, 2
and 4 share a number of steps; when they are used up, the best placement so far holds. It never has more domains than
that of step 3.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from core.gangs.attempts import Attempts, Shortfall
from core.gangs.search import MemberClass, Trial
from core.mirror.node_group import NodeGroup
from core.mirror.topology import Int64Array
from core.objects.pod import Pod
from core.plugins.noderesources.fit import NodeResourcesFit


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
        slots = attempts.mirror.nodes.slots
        self._attempts = attempts
        self._trial = trial
        self._classes = classes
        self._group = group
        self._used = group.domains_of([slots[name] for name in beside if name in slots])
        self._max_steps = max_steps
        self._left = max_steps
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
            best = self._taken_back() if self._domain_by_domain() else None
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
        """Return how many new domains are needed at least; None: the members have no room in all of them."""
        needed = self._needed()
        if needed <= 0:
            return 0
        sums = np.cumsum(self._room[self._by_room()])
        enough = np.flatnonzero(sums >= needed)
        return int(enough[0]) + 1 if len(enough) else None

    def _by_room(self) -> list[int]:
        """Return the domains that are not used and have room, the most room first."""
        order = np.argsort(-self._room, kind="stable").tolist()
        return [domain for domain in order if domain not in self._used and self._room[domain]]

    # The ways to place them.

    def _in_one(self) -> bool:
        """Try the used domains alone, then each one that has room for the rest, without a search back."""
        needed = self._needed()
        alone = [domain for domain in reversed(self._by_room()) if self._room[domain] >= needed]
        for domains in [frozenset[int]()] if needed <= 0 else [frozenset({domain}) for domain in alone]:
            if self._left <= self._max_steps // 2:
                return False
            if self._try(domains, 0):
                return True
        return False

    def _domain_by_domain(self) -> bool:
        """Fill one domain after another; false: some members are left, or too many steps were taken."""
        left = [[*each.pods] for each in self._classes]
        full: set[int] = set()
        while any(left):
            room = self._rooms.of(left)
            room[[*full]] = 0
            domain = self._next(room, sum(map(len, left)))
            if domain is None or self._left <= 0:
                self._trial.undo_all()
                return False
            full.add(domain)
            self._fill(domain, left)
        return True

    def _next(self, room: Int64Array, wanted: int) -> int | None:
        used = [domain for domain in self._used if room[domain]]
        if used:
            return max(used, key=room.__getitem__)
        enough = np.flatnonzero(room >= wanted)
        if len(enough):
            return int(enough[room[enough].argmin()])
        domain = int(room.argmax())
        return domain if room[domain] else None

    def _fill(self, domain: int, left: Sequence[list[Pod]]) -> None:
        """Place what fits in a domain, again and again, as members can make room for those of another class."""
        classes = self._within({domain})
        placed = -1
        while placed != len(self._trial.nodes):
            placed = len(self._trial.nodes)
            for each, pods in zip(classes, left, strict=True):
                while pods:
                    self._left -= 1
                    node = self._attempts.node_for(each, pods[0])
                    if not isinstance(node, str):
                        break
                    self._trial.assume(pods.pop(0), node)

    def _in_fewer(self, least: int, found: int) -> bool:
        """Try every set of domains that has fewer than were found; false: there is none, or too many steps."""
        for size in range(least, found):
            for domains in self._sets(size):
                if self._left <= 0:
                    return False
                if self._try(domains, self._left // 2 + 1):
                    return True
        return False

    def _sets(self, size: int) -> Iterator[frozenset[int]]:
        """Yield the sets of so many new domains that have room, those with the most room first."""
        domains = self._by_room()
        room = self._room[domains].tolist()

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

    # What they are made of.

    def _within(self, domains: Collection[int]) -> list[MemberClass]:
        """Return the classes, which may go to used domains and to some others."""
        nodes = self._group.within({*domains, *self._used})
        return [each.within(nodes) for each in self._classes]

    def _needed(self) -> int:
        """Return for how many members the used domains have no room."""
        return self._wanted - int(self._room[[*self._used]].sum())

    def _new_domains(self, placement: Mapping[str, str]) -> int:
        slots = self._attempts.mirror.nodes.slots
        names = set(placement.values())
        known = [slots[name] for name in names if name in slots]
        # What is not in the group has a domain of its own: a node that came as an object with the request.
        return len(self._group.domains_of(known) - self._used) + len(names) - len(known)

    def _taken_back(self) -> Mapping[str, str]:
        placement = dict(self._trial.nodes)
        self._trial.undo_all()
        return placement

    def _again(self, placement: Mapping[str, str]) -> None:
        pods = {pod.uid: pod for each in self._classes for pod in each.pods}
        for uid, node in placement.items():
            self._trial.assume(pods[uid], node)


class _Rooms:
    """How many members each domain can hold, at most."""

    def __init__(self, attempts: Attempts, classes: Sequence[MemberClass], group: NodeGroup) -> None:
        self._mirror = attempts.mirror
        self._group = group
        self._fit: Final = next((each for each in attempts.profile.filters if isinstance(each, NodeResourcesFit)), None)
        self._most = [self._of_class(attempts, each) for each in classes]

    def of(self, left: Sequence[Sequence[Pod]]) -> Int64Array:
        """Return for each domain how many of these members, by class, no placement exceeds there."""
        nodes = self._group.nodes
        by_node = np.zeros(len(nodes), np.int64)
        for most, pods in zip(self._most, left, strict=True):
            by_node += np.minimum(most, len(pods))
        members = [pod for pods in left for pod in pods]
        if self._fit is not None:
            by_node = np.minimum(by_node, self._fit.most_pods(self._mirror, members, nodes))
        return np.minimum(self._group.sums(by_node), len(members))

    def _of_class(self, attempts: Attempts, each: MemberClass) -> Int64Array:
        nodes, pod = self._group.nodes, each.pods[0]
        most = np.full(len(nodes), len(each.pods), np.int64)
        if not each.may_need_others:
            most[~attempts.fits(pod, nodes)] = 0
        if each.nodes is not None:
            most[~np.isin(nodes.slots, each.nodes.slots)] = 0
        return np.minimum(most, 1) if pod.host_ports or _is_alone_on_its_node(pod, attempts) else most


def _is_alone_on_its_node(pod: Pod, attempts: Attempts) -> bool:
    """Tell whether pods like this one repel each other by a label that every node has."""
    nodes = attempts.mirror.nodes
    return any(
        pod.namespace in term.matcher.namespaces
        and term.matcher.selector.matches(pod.labels)
        and nodes.label_keys[term.topology_key] == len(nodes.slots)
        for term in pod.affinity.required_anti_affinity
    )
