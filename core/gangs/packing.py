"""Gangs whose members must be close together: on few nodes, or in few domains of a topology key."""

from collections.abc import Collection, Iterator, Sequence
from operator import not_
from typing import Final, NamedTuple

import numpy as np

from core.framework.interface import Capacity
from core.gangs.attempts import Attempts, MemberClass, Shortfall
from core.mirror.fork import Fork
from core.mirror.node_values import NO_DOMAIN, NodeGroup
from core.mirror.topology import Float64Array, Int64Array
from core.objects.pod import Pod
from core.simulation.placing import Steps, in_turn

_ALONE: Final = 4
"""Domains that are tried for all members together, at the least."""
_ROUNDING: Final = 1e-9
"""Sums of shares may be too small by so much."""


class FewestDomains:
    """Places one gang, once, in few domains: single nodes (`pack`), or the domains of a topology key (`near`).

    A domain is used if a member has a node in it. Used domains cost nothing. The search looks for the fewest new
    domains, in four stages:

    1. One domain for all members, the domain with the least sufficient capacity first.
    2. Each member on the best node of the used domains. If no node fits, one more domain is used: the smallest one that
       has capacity for all remaining members, else the largest one.
    3. Each member on its best node, as without packing. If this stage fails, the gang is refused for the same reason.
    4. Every set of domains that is smaller than the best result and has enough capacity, the smallest sets first.

    It ends as soon as no smaller set has enough capacity. The capacity is an upper bound. It follows from the
    resources, the filters before the first member is placed, host ports, and anti-affinity of a class to itself.
    Members of different size need a second bound: the sum of their requests fits into the free amount of each resource.

    3 ends early where it has used as many new domains as 2 and cannot fail.

    The search is bounded in placed members ("steps"). Stage 1 ends after half the steps of a backtracking search plus
    four times the number of members. Stage 4 ends after half the steps, and one set of domains gets half of the
    remaining ones. If stage 4 is not cut short, no placement has fewer domains. The result never has more domains than
    the placement of stage 3.
    """

    def __init__(  # noqa: PLR0913  # the gang, and what bounds it
        self,
        attempts: Attempts,
        fork: Fork,
        classes: Sequence[MemberClass],
        group: NodeGroup,
        *,
        others_on: Collection[str],
        max_steps: int,
    ) -> None:
        """`others_on` names the nodes whose domains are used. The fork is empty, and the cache follows it."""
        self._attempts = attempts
        self._fork = fork
        self._classes = classes
        self._group = group
        self._domain_of_slot = group.by_slot(attempts.mirror.nodes.capacity)
        self._used = self._domains_of(others_on)
        self._max_steps = max_steps
        self._left = 0  # steps left for the current stage
        self._rooms = _Rooms(attempts, classes, group)
        self._room = self._rooms.of([each.pods for each in classes])
        self._required = sum(len(each.pods) for each in classes)

    def place(self) -> Steps[Shortfall | None]:
        """Suppose all members on nodes; or none, and return why."""
        least = self._least()
        best: Sequence[Pod] | None = None
        if least is not None:
            if least <= 1 and (yield from self._in_one()):
                return None
            if (yield from self._in_used_ones()):
                if self._new_domains(self._fork.placed) == least:
                    return None
                best = self._taken_back()
        if best is None:
            shortfall = yield from self._attempts.place(self._fork, self._classes, self._max_steps)
            if shortfall is not None:
                return shortfall
            best = self._taken_back()
        else:
            best = (yield from self._spread_in_fewer(self._new_domains(best))) or best
        if least is None or not (yield from self._in_fewer(least, self._new_domains(best))):
            for pod in best:
                self._attempts.place_on(self._fork, pod, pod.node_name)
        return None

    def _least(self) -> int | None:
        """Return how many new domains are needed at least; None: all domains together have too little capacity."""
        bounds = [_fewest(self._room.most, self._used, self._required)]
        bounds += [_fewest(shares, self._used, 1 - _ROUNDING) for shares in self._room.shares]
        return None if None in bounds else max(each for each in bounds if each is not None)

    def _by_room(self) -> list[int]:
        """Return the unused domains that can hold a member, most capacity first."""
        order = np.lexsort((-self._room.times, -self._room.most)).tolist()
        return [domain for domain in order if domain not in self._used and self._room.most[domain]]

    # The ways to place them.

    def _in_one(self) -> Steps[bool]:
        """Try the used domains alone, then each domain with enough capacity for the rest, without a search."""
        self._left = _ALONE * self._required + self._max_steps // 2
        needed = self._needed()
        times = self._room.times.__getitem__
        alone = sorted((domain for domain in self._by_room() if self._room.most[domain] >= needed), key=times)
        for domains in [frozenset[int]()] if needed <= 0 else [frozenset({domain}) for domain in alone]:
            if self._left <= 0:
                return False
            if (yield from self._try(domains, 0)):
                return True
        return False

    def _in_used_ones(self) -> Steps[bool]:
        """Give each member the best node of the used domains. If no node fits, use one more domain."""
        left = [[*each.pods] for each in self._classes]
        used = set(self._used)
        nodes = self._group.within(used)

        def place(at: int, _: object) -> bool:
            nonlocal nodes
            each, pods = self._classes[at], left[at]
            while not isinstance(self._attempts.place_best(self._fork, each.within(nodes), pods[0]), str):
                domain = self._one_more(each, left, pods[0], used)
                if domain is None:
                    self._fork.revert_to(0)
                    return False
                used.add(domain)
                nodes = self._group.within(used)
            pods.pop(0)
            return True

        classes = (at for at, each in enumerate(self._classes) for _ in each.pods)
        return all((yield from in_turn(classes, place, not_)))

    def _one_more(
        self, each: MemberClass, left: Sequence[Sequence[Pod]], pod: Pod, used: Collection[int]
    ) -> int | None:
        """Return the domain to use next, or None if the member fits in no unused domain."""
        nodes = each.within(self._group.nodes).nodes or self._group.nodes
        fitting = self._group.has_any(nodes.slots[self._attempts.fits(pod, nodes)])
        fitting[[*used]] = False
        if not fitting.any():
            return None
        capacity = self._rooms.of(left)
        enough = fitting & (capacity.most >= sum(map(len, left)))
        if enough.any():
            return int(np.where(enough, capacity.times, np.inf).argmin())
        return int(np.where(fitting, capacity.most, 0).argmax())

    def _spread_in_fewer(self, found: int) -> Steps[Sequence[Pod] | None]:
        """Place each member on its best node; return the placement if it has fewer new domains than were found."""
        if not self._attempts.greedy_cannot_fail(self._classes):
            shortfall = yield from self._attempts.place(self._fork, self._classes, self._max_steps)
            placement = None if shortfall is not None else self._taken_back()
            return placement if placement is not None and self._new_domains(placement) < found else None
        new: set[int] = set()

        def is_last(node: str) -> bool:
            new.update(self._domains_of([node]) - self._used)
            return len(new) == found

        yield from self._attempts.greedy(self._fork, self._classes, is_last)
        placement = self._taken_back()
        return placement if len(placement) == self._required and len(new) < found else None

    def _in_fewer(self, least: int, found: int) -> Steps[bool]:
        """Try every set of fewer than `found` domains. False: none holds the gang, or the steps ran out."""
        self._left = self._max_steps // 2
        for size in range(least, found):
            for domains in self._sets(size):
                if self._left <= 0:
                    return False
                if (yield from self._try(domains, self._left // 2 + 1)):
                    return True
        return False

    def _sets(self, size: int) -> Iterator[frozenset[int]]:
        """Yield the sets of `size` new domains with enough capacity, most capacity first."""
        domains = self._by_room()
        capacity = self._room.most[domains].tolist()

        def more(begin: int, size: int, needed: int) -> Iterator[tuple[int, ...]]:
            if not size:
                yield ()
                return
            for at in range(begin, len(domains) - size + 1):
                if sum(capacity[at : at + size]) < needed:
                    return
                for rest in more(at + 1, size - 1, needed - capacity[at]):
                    yield (domains[at], *rest)

        return map(frozenset, more(0, size, self._needed()))

    def _try(self, domains: Collection[int], max_steps: int) -> Steps[bool]:
        before, nodes = self._attempts.steps, self._group.within({*domains, *self._used})
        classes = [each.within(nodes) for each in self._classes]
        failed = (yield from self._attempts.place(self._fork, classes, max_steps)) is not None
        self._left -= self._attempts.steps - before + failed
        yield
        return not failed

    # Domains and placements.

    def _needed(self) -> int:
        """Return how many members do not fit in the used domains."""
        return self._required - int(self._room.most[[*self._used]].sum())

    def _new_domains(self, placement: Sequence[Pod]) -> int:
        return len(self._domains_of({pod.node_name for pod in placement}) - self._used)

    def _domains_of(self, names: Collection[str]) -> frozenset[int]:
        slots = self._attempts.mirror.nodes.slots
        domains = {int(self._domain_of_slot[slots[name]]) for name in names if name in slots}
        return frozenset(domains - {NO_DOMAIN})

    def _taken_back(self) -> Sequence[Pod]:
        placement = self._fork.placed
        self._fork.revert_to(0)
        return placement


def _fewest(capacities: Float64Array | Int64Array, used: Collection[int], needed: float) -> int | None:
    """Return how many domains it takes at least, besides the used ones, to have so much room; None: all have less."""
    rest = needed - float(capacities[[*used]].sum())
    if rest <= 0:
        return 0
    unused = np.delete(capacities, [*used])
    enough = np.flatnonzero(np.cumsum(np.sort(unused)[::-1]) >= rest)
    return int(enough[0]) + 1 if len(enough) else None


class _DomainRoom(NamedTuple):
    """Capacity of each domain for a given set of members."""

    most: Int64Array
    """Upper bound of the members that the domain can hold."""
    times: Float64Array
    """How many times over all of them fit, by the scarcest resource of each node."""
    shares: Float64Array
    """The free amount by resource and domain, as a share of their requests together. Only nodes that fit any count."""


class _Rooms:
    def __init__(self, attempts: Attempts, classes: Sequence[MemberClass], group: NodeGroup) -> None:
        self._mirror = attempts.mirror
        self._group = group
        self._filters: Final = attempts.profile.filters
        self._most = [self._of_class(attempts, each) for each in classes]

    def of(self, left: Sequence[Sequence[Pod]]) -> _DomainRoom:
        """Return how many of these members, given by class, each domain can hold. There must be at least one member."""
        nodes = self._group.nodes
        most = np.zeros(len(nodes), np.int64)
        for of_class, pods in zip(self._most, left, strict=True):
            most += np.minimum(of_class, len(pods))
        members = [pod for pods in left for pod in pods]
        capacities = (each.capacity_for(self._mirror, members, nodes) for each in self._filters)
        shares = (most / len(members))[np.newaxis]
        capacity = next((each for each in capacities if each is not None), Capacity(most, shares))
        shares = np.where(most > 0, capacity.shares, 0.0)
        by_domain = np.array([self._group.sums(each) for each in shares])
        most = np.minimum(most, capacity.most)
        return _DomainRoom(self._group.sums(most).astype(np.int64), self._group.sums(shares.min(axis=0)), by_domain)

    def _of_class(self, attempts: Attempts, each: MemberClass) -> Int64Array:
        nodes, pod = self._group.nodes, each.pods[0]
        most = np.full(len(nodes), len(each.pods), np.int64)
        if not each.may_need_others:
            most[~each.fitting.take(nodes.slots)] = 0
        elif each.nodes is not None:
            most[~np.isin(nodes.slots, each.nodes.slots)] = 0
        return np.minimum(most, 1) if pod.demand.host_ports or _is_alone_on_its_node(pod, attempts) else most


def _is_alone_on_its_node(pod: Pod, attempts: Attempts) -> bool:
    """Return whether a required anti-affinity term with a label of every node keeps two such pods apart."""
    nodes = attempts.mirror.nodes
    return any(
        pod.namespace in term.matcher.namespaces
        and term.matcher.selector.matches(pod.labels)
        and nodes.label_keys[term.topology_key] == len(nodes.slots)
        for term in pod.affinity.required_anti_affinity
    )
