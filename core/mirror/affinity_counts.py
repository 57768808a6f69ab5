"""Term counters of inter-pod affinity. Every event updates them, so no request loops over pods.

There are counters for two directions. Terms are interned: equal terms of different pods share a counter.

- An *owner counter* counts, per topology domain, the placed pods that have a term. An index finds the owner counters
  for an incoming pod. An owner counter exists while some pod of the mirror has the term.
- A *match counter* counts, per topology domain, the placed pods that a term of an incoming pod selects. The first
  request for a counter makes it from the pod columns. Every event then updates it, and the least recently used counter
  is dropped first. The terms of a required affinity must all match the same pod, so they share one counter with several
  matchers.

At any time a counter equals a recount over the pods (tests/core/mirror/audit.py).
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

import msgspec

from core.mirror.node_info import NodeTable
from core.mirror.pod_columns import NO_TERMS, PodColumns, namespace_is_selected
from core.mirror.term_index import TermIndex
from core.mirror.topology import DomainCounts, Int32Array, IntpArray, TopologyColumn, TopologyColumns, TopologyCounts
from core.mirror.work import Work
from core.objects.affinity import NO_AFFINITY, AffinityTerm, PodAffinity, PodMatcher
from core.objects.pod import Pod

MAX_MATCH_COUNTERS = 8192
"""How many match counters are kept. One costs about 5 KB if it counts 50 pods, and at most 33 KB over 5,000 domains."""
MAX_MATCHERS = 256
"""How many matchers of kept counters one request may add.

Every event of a pod visits the kept counters. A request with more matchers gets counters that are not kept.
"""

# Units of work, see core/mirror/work.py.
_PER_COUNTER: Final = 10_000
_PER_NODE: Final = 3


class MatchTerms(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """The key of a match counter: it counts pods that *all* matchers select, by the value of the topology key."""

    matchers: tuple[PodMatcher, ...]
    topology_key: str


class MatchCounters:
    """The match counters of a mirror. The mirror reports every pod that gains or loses a node."""

    def __init__(
        self,
        columns: TopologyColumns,
        nodes: NodeTable,
        pods: PodColumns,
        namespaces: Mapping[str, Mapping[str, str]],
        work: Work,
    ) -> None:
        self._columns = columns
        self._nodes = nodes
        self._pods = pods
        self._namespaces = namespaces  # name -> labels
        self._work = work
        self._counters: OrderedDict[MatchTerms, DomainCounts] = OrderedDict()  # least recently used first
        self._index: TermIndex[MatchTerms] = TermIndex()
        self.epoch = 0
        """See AffinityCounts.epoch."""

    def of(self, match_terms: Sequence[MatchTerms], field: str) -> list[DomainCounts]:
        """Return a counter for each of the terms in a field of an incoming pod. Stale after the next event.

        Raises WorkLimitError before it counts any pod.
        """
        known = self._known(match_terms)
        if known is not None:
            return known
        if sum(len(terms.matchers) for terms in match_terms) > MAX_MATCHERS:
            self._charge(match_terms, field)
            return self._counted_once(match_terms)
        self._charge([terms for terms in match_terms if terms not in self._counters], field)
        return [self._stored(terms) for terms in match_terms]

    def selects_all(self, matchers: Sequence[PodMatcher], pod: Pod) -> bool:
        """Return whether every matcher of an incoming pod selects `pod`, which may be the incoming pod."""
        for matcher in matchers:  # one mostly
            if not (matcher.selector.matches(pod.labels) and self._selects_namespace(matcher, pod.namespace)):
                return False
        return True

    def rows_of(self, matchers: Sequence[PodMatcher]) -> IntpArray:
        """Return the rows of the placed pods that all matchers of an incoming pod select."""
        return self._pods.rows_on_nodes(matchers, self._selects_namespace)

    def count(self, pod: Pod, slot: int, delta: int) -> None:
        """Add a pod to the counts of its node's slot (delta 1), or remove it (delta -1)."""
        if not self._counters:
            return
        for terms in self._index.selected(
            pod.namespace, pod.labels, lambda terms: self.selects_all(terms.matchers, pod)
        ):
            if self._counters[terms].add(slot, delta):
                self.epoch += 1

    def namespace_changed(self, name: str, before: Mapping[str, str] | None) -> None:
        """Recount the matchers for which a changed namespace is newly selected, or no longer selected.

        `before` are the namespace's labels before the change, or None if it did not exist. The mirror already has the
        new labels.
        """
        self._index.forget()
        self.epoch += 1
        if not self._pods.groups.any_in(name):
            return  # most namespaces outlive their pods; a recount takes 0.3 ms at 30,000 pods
        after = self._namespaces.get(name)
        for terms, counter in self._counters.items():
            if any(
                namespace_is_selected(matcher, name, before) != namespace_is_selected(matcher, name, after)
                for matcher in terms.matchers
            ):
                counter.recount(self._recounted(terms.matchers, counter.column))

    def _known(self, match_terms: Sequence[MatchTerms]) -> list[DomainCounts] | None:
        """Return the counters if all are kept, as for a known class: 0.3 us each."""
        counters = self._counters
        known = []
        for terms in match_terms:
            counter = counters.get(terms)
            if counter is None:
                return None
            known.append(counter)
        for terms in match_terms:
            counters.move_to_end(terms)
        return known

    def _charge(self, match_terms: Sequence[MatchTerms], field: str) -> None:
        # Terms of one list that differ only in the key share their matchers, and are counted together.
        counted = {id(one.matchers): one.matchers for one in match_terms if one.topology_key in self._nodes.label_keys}
        units = len(match_terms) * (_PER_COUNTER + _PER_NODE * len(self._nodes.slots))
        self._work.spend(units + self._pods.work([*counted.values()]), field, len(match_terms))

    def _stored(self, terms: MatchTerms) -> DomainCounts:
        counter = self._counters.get(terms)
        if counter is not None:
            self._counters.move_to_end(terms)
            return counter
        column = self._columns.acquire(terms.topology_key, self._nodes)
        counter = self._counters[terms] = DomainCounts(column, self._recounted(terms.matchers, column))
        self._index.add(terms, terms.matchers[0])
        if len(self._counters) > MAX_MATCH_COUNTERS:
            oldest, evicted = self._counters.popitem(last=False)
            self._index.remove(oldest)
            self._columns.release(evicted.column)
            self.epoch += 1
        return counter

    def _counted_once(self, match_terms: Sequence[MatchTerms]) -> list[DomainCounts]:
        """Return counters that are not kept, so no event updates them."""
        self.epoch += 1
        columns = [self._columns.acquire(terms.topology_key, self._nodes) for terms in match_terms]
        counters = []
        matchers: tuple[PodMatcher, ...] = ()
        slots: Int32Array | None = None
        for terms, column in zip(match_terms, columns, strict=True):
            counts = TopologyCounts()
            if column.ids:
                if slots is None or terms.matchers is not matchers:
                    matchers, slots = terms.matchers, self._pods.slots_of(terms.matchers, self._selects_namespace)
                counts = TopologyCounts.of(column.of_slot[slots])
            counters.append(DomainCounts(column, counts))
        for column in columns:
            self._columns.release(column)
        return counters

    def _recounted(self, matchers: tuple[PodMatcher, ...], column: TopologyColumn) -> TopologyCounts:
        if not column.ids:  # no node has the key, so there are no domains
            return TopologyCounts()
        return TopologyCounts.of(column.of_slot[self._pods.slots_of(matchers, self._selects_namespace)])

    def _selects_namespace(self, matcher: PodMatcher, name: str) -> bool:
        return namespace_is_selected(matcher, name, self._namespaces.get(name))


class Role(IntEnum):
    """The effect of an existing pod's term on an incoming pod that the term selects."""

    REQUIRED_ANTI_AFFINITY = 0
    """Keeps the incoming pod out of the domain."""
    REQUIRED_AFFINITY = 1
    """Attracts the incoming pod with the weight hardPodAffinityWeight."""
    PREFERRED = 2
    """Attracts the incoming pod with the term's weight, or repels it if the weight is negative."""


class OwnerTerm(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """A term with its role. `weight` is negative for preferred anti-affinity and 0 for required terms."""

    role: Role
    term: AffinityTerm
    weight: int = 0


class OwnerCounter(DomainCounts):
    """Number of placed pods with a term, per domain."""

    __slots__ = ("owner_term", "term_sets")

    def __init__(self, owner_term: OwnerTerm, column: TopologyColumn) -> None:
        super().__init__(column, TopologyCounts())
        self.owner_term = owner_term
        self.term_sets: set[int] = set()
        """The numbers of the TermSets with this term."""


class TermSet:
    """The counters of all terms of one PodAffinity, repetitions included. All pods with this PodAffinity share it."""

    __slots__ = ("counters", "number", "pods")

    def __init__(self, number: int, counters: list[OwnerCounter]) -> None:
        """Take a number that no other set has. The number is free again when the last pod is removed."""
        self.number = number
        self.counters = counters
        self.pods = 0


class AffinityCounts:
    """All term counters of a mirror. The mirror reports every pod that gains or loses a node. Plugins only read."""

    def __init__(
        self, nodes: NodeTable, pods: PodColumns, namespaces: Mapping[str, Mapping[str, str]], work: Work
    ) -> None:
        self.columns = TopologyColumns()
        self._nodes = nodes
        self._pods = pods
        self._namespaces = namespaces  # name -> labels
        self._term_sets: dict[PodAffinity, TermSet] = {}
        self._free_numbers: list[int] = []  # numbers of term sets that were removed
        self._owners: dict[OwnerTerm, OwnerCounter] = {}
        self._owner_index: TermIndex[OwnerTerm] = TermIndex()
        self.matches = MatchCounters(self.columns, nodes, pods, namespaces, work)
        self._changes = 0

    # Read by plugins.

    @property
    def epoch(self) -> int:
        """While it is the same, the counters that concern a pod and count any pod are the same.

        So what was made of them is right, as far as it reads their numbers when it is used. Read it before the
        counters: those that no event updates advance it. Terms that come or go count no pod at that moment.
        """
        return self._changes + self.matches.epoch

    def owners(self, namespace: str, labels: Mapping[str, str]) -> list[OwnerCounter]:
        """Return the counters of the existing pods' terms that select a pod. Stale after the next event."""
        found = self._owner_index.selected(namespace, labels, partial(self._selects, namespace, labels))
        return [self._owners[owner_term] for owner_term in found]

    def by_namespace(self, namespace: str, labels: Mapping[str, str]) -> Iterator[AffinityTerm]:
        """Yield the existing pods' terms that select a pod if they select its namespace, which they do not name."""
        for owner_term in self._owner_index.candidates(namespace, labels):
            matcher = owner_term.term.matcher
            if namespace not in matcher.namespaces and matcher.selector.matches(labels):
                yield owner_term.term

    # Called by the mirror.

    def namespace_changed(self, name: str, before: Mapping[str, str] | None) -> None:
        """Follow a change of the labels of a namespace. See MatchCounters.namespace_changed."""
        self._owner_index.forget()
        self.matches.namespace_changed(name, before)

    def hold(self, pod: Pod) -> int:
        """Create counters for the terms of a pod that enters the mirror, placed or not. Return the number of their set.

        Returns NO_TERMS for a pod without terms.
        """
        if pod.affinity is NO_AFFINITY or not _has_terms(pod.affinity):
            return NO_TERMS
        term_set = self._term_sets.get(pod.affinity)
        if term_set is None:
            number = self._free_numbers.pop() if self._free_numbers else len(self._term_sets)
            counters = [self._acquire_owner(each, number) for each in owner_terms(pod.affinity)]
            term_set = self._term_sets[pod.affinity] = TermSet(number, counters)
        term_set.pods += 1
        return term_set.number

    def drop(self, pod: Pod) -> None:
        """Release the terms of a pod that leaves the mirror and is no longer placed."""
        if pod.affinity is NO_AFFINITY or not _has_terms(pod.affinity):
            return
        term_set = self._term_sets[pod.affinity]
        term_set.pods -= 1
        if not term_set.pods:
            del self._term_sets[pod.affinity]
            self._free_numbers.append(term_set.number)
            for counter in term_set.counters:
                self._release_owner(counter, term_set.number)

    def count(self, pod: Pod, slot: int, delta: int) -> None:
        """Add a pod to the counts of its node's slot (delta 1), or remove it (delta -1)."""
        if pod.affinity is not NO_AFFINITY and _has_terms(pod.affinity):
            for counter in self._term_sets[pod.affinity].counters:
                if counter.add(slot, delta):
                    self._changes += 1
        self.matches.count(pod, slot, delta)

    def _selects(self, namespace: str, labels: Mapping[str, str], owner_term: OwnerTerm) -> bool:
        """Return whether the term of an existing pod selects a pod.

        The namespaceSelector is matched with the labels of the pod's namespace. They are empty if there is no such
        Namespace object (upstream GetNamespaceLabelsSnapshot).
        """
        matcher = owner_term.term.matcher
        selects_namespace = namespace in matcher.namespaces or matcher.namespace_selector.matches(
            self._namespaces.get(namespace, {})
        )
        return selects_namespace and matcher.selector.matches(labels)

    def _acquire_owner(self, owner_term: OwnerTerm, term_set: int) -> OwnerCounter:
        counter = self._owners.get(owner_term)
        if counter is None:
            column = self.columns.acquire(owner_term.term.topology_key, self._nodes)
            counter = self._owners[owner_term] = OwnerCounter(owner_term, column)
            self._owner_index.add(owner_term, owner_term.term.matcher)
        counter.term_sets.add(term_set)
        return counter

    def _release_owner(self, counter: OwnerCounter, term_set: int) -> None:
        if term_set not in counter.term_sets:  # a term that occurs twice in one set
            return
        counter.term_sets.remove(term_set)
        if not counter.term_sets:
            del self._owners[counter.owner_term]
            self._owner_index.remove(counter.owner_term)
            self.columns.release(counter.column)


def _has_terms(affinity: PodAffinity) -> bool:
    return bool(
        affinity.required_anti_affinity
        or affinity.required_affinity
        or affinity.preferred_affinity
        or affinity.preferred_anti_affinity
    )


def owner_terms(affinity: PodAffinity) -> list[OwnerTerm]:
    """Return the terms of a pod with their roles."""
    return [
        *(OwnerTerm(Role.REQUIRED_ANTI_AFFINITY, term) for term in affinity.required_anti_affinity),
        *(OwnerTerm(Role.REQUIRED_AFFINITY, term) for term in affinity.required_affinity),
        *(OwnerTerm(Role.PREFERRED, each.term, each.weight) for each in affinity.preferred_affinity),
        *(OwnerTerm(Role.PREFERRED, each.term, -each.weight) for each in affinity.preferred_anti_affinity),
    ]
