"""Match counters: how many placed pods the terms of incoming pods select, per topology domain.

The first request for a counter makes it from the pod columns. Every event then updates it, and the least recently used
counter is dropped first. The terms of a required affinity must all match the same pod, so they share one counter with
several matchers.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from core.mirror.domain_counts import DomainCounts
from core.mirror.node_info import NodeTable
from core.mirror.pod_columns import PodColumns, namespace_is_selected
from core.mirror.term_index import TermIndex
from core.mirror.topology import Int32Array, IntpArray, TopologyColumn, TopologyColumns, TopologyCounts
from core.mirror.work import Work
from core.objects.affinity import PodMatcher
from core.objects.pod import Pod

MAX_MATCH_COUNTERS = 8192
"""How many match counters are kept. One costs about 5 KB if it counts 50 pods, and at most 33 KB over 5,000 domains."""
MAX_KEPT_MATCHERS = 256
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

    def __iter__(self) -> Iterator[tuple[MatchTerms, DomainCounts]]:
        """Yield the counters that are kept."""
        return iter(self._counters.items())

    def of(self, wanted: Sequence[MatchTerms], field: str) -> list[DomainCounts]:
        """Return a counter for each of the terms in a field of an incoming pod. Stale after the next event.

        Raises WorkLimitError before it counts any pod.
        """
        known = self._known(wanted)
        if known is not None:
            return known
        if sum(len(terms.matchers) for terms in wanted) > MAX_KEPT_MATCHERS:
            self._charge(wanted, field)
            return self._counted_once(wanted)
        self._charge([terms for terms in wanted if terms not in self._counters], field)
        return [self._kept(terms) for terms in wanted]

    def selects_all(self, matchers: Sequence[PodMatcher], pod: Pod) -> bool:
        """Return whether every matcher of an incoming pod selects `pod`, which may be the incoming pod."""
        return all(
            self._selects_namespace(matcher, pod.namespace) and matcher.selector.matches(pod.labels)
            for matcher in matchers
        )

    def rows_of(self, matchers: Sequence[PodMatcher]) -> IntpArray:
        """Return the rows of the placed pods that all matchers of an incoming pod select."""
        return self._pods.rows_on_nodes(matchers, self._selects_namespace)

    def count(self, pod: Pod, slot: int, delta: int) -> None:
        """Add a pod to the counts of its node's slot (delta 1), or remove it (delta -1)."""
        for terms in self._index.candidates(pod.namespace, pod.labels):
            if self.selects_all(terms.matchers, pod):
                self._counters[terms].add(slot, delta)

    def namespace_changed(self, name: str, before: Mapping[str, str] | None) -> None:
        """Recount the matchers for which a changed namespace is newly selected, or no longer selected.

        `before` are the namespace's labels before the change, or None if it did not exist. The mirror already has the
        new labels.
        """
        if not self._pods.groups.any_in(name):
            return  # most namespaces outlive their pods; a recount takes 0.3 ms at 30,000 pods
        after = self._namespaces.get(name)
        for terms, counter in self._counters.items():
            if any(
                namespace_is_selected(matcher, name, before) != namespace_is_selected(matcher, name, after)
                for matcher in terms.matchers
            ):
                counter.recount(self._recounted(terms.matchers, counter.column))

    def _known(self, wanted: Sequence[MatchTerms]) -> list[DomainCounts] | None:
        """Return the counters if all are kept, as for a known class: 0.3 us each."""
        counters = self._counters
        known = []
        for terms in wanted:
            counter = counters.get(terms)
            if counter is None:
                return None
            known.append(counter)
        for terms in wanted:
            counters.move_to_end(terms)
        return known

    def _charge(self, wanted: Sequence[MatchTerms], field: str) -> None:
        # Terms of one list that differ only in the key share their matchers, and are counted together.
        counted = {id(each.matchers): each.matchers for each in wanted if each.topology_key in self._nodes.label_keys}
        units = len(wanted) * (_PER_COUNTER + _PER_NODE * len(self._nodes.slots))
        self._work.spend(units + self._pods.work([*counted.values()]), field, len(wanted))

    def _kept(self, terms: MatchTerms) -> DomainCounts:
        counter = self._counters.get(terms)
        if counter is not None:
            self._counters.move_to_end(terms)
            return counter
        column = self._columns.acquire(terms.topology_key, self._nodes)
        counter = self._counters[terms] = DomainCounts(column, self._recounted(terms.matchers, column))
        self._index.add(terms, terms.matchers[0])
        if len(self._counters) > MAX_MATCH_COUNTERS:
            self._evict_oldest()
        return counter

    def _counted_once(self, wanted: Sequence[MatchTerms]) -> list[DomainCounts]:
        """Return counters that are not kept, so no event updates them."""
        columns = [self._columns.acquire(terms.topology_key, self._nodes) for terms in wanted]
        counters = []
        matchers: tuple[PodMatcher, ...] = ()
        slots: Int32Array | None = None
        for terms, column in zip(wanted, columns, strict=True):
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

    def _evict_oldest(self) -> None:
        terms, counter = self._counters.popitem(last=False)
        self._index.remove(terms)
        self._columns.release(counter.column)
