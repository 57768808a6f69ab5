"""Term counters of inter-pod affinity. Every event updates them, so no request loops over pods.

There are counters for two directions. Terms are interned: equal terms of different pods share a counter.

- An *owner counter* counts, per topology domain, the placed pods that have a term. An index finds the owner counters
  for an incoming pod. An owner counter exists while some pod of the mirror has the term.
- A *match counter* counts, per topology domain, the placed pods that a term of an incoming pod selects. See
  core/mirror/match_counters.py.

At any time a counter equals a recount over the pods (`audit`).
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum

import msgspec

from core.mirror.domain_counts import DomainCounts
from core.mirror.match_counters import MatchCounters
from core.mirror.node_info import NodeTable
from core.mirror.pod_columns import NO_TERMS, PodColumns
from core.mirror.term_index import TermIndex
from core.mirror.topology import IntpArray, TopologyColumn, TopologyColumns, TopologyCounts
from core.mirror.work import Work
from core.objects.affinity import AffinityTerm, PodAffinity
from core.objects.pod import Pod


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

    # Read by plugins.

    def owners(self, namespace: str, labels: Mapping[str, str]) -> list[OwnerCounter]:
        """Return the counters of the existing pods' terms that select a pod. Stale after the next event.

        This method matches the namespaceSelector with the labels of the pod's namespace. They are empty if there is no
        such Namespace object (upstream GetNamespaceLabelsSnapshot).
        """
        namespace_labels = self._namespaces.get(namespace, {})
        found = []
        for owner_term in self._owner_index.candidates(namespace, labels):
            matcher = owner_term.term.matcher
            if (
                namespace in matcher.namespaces or matcher.namespace_selector.matches(namespace_labels)
            ) and matcher.selector.matches(labels):
                found.append(self._owners[owner_term])
        return found

    def rows_carrying(self, counter: OwnerCounter) -> IntpArray:
        """Return the rows of the placed pods with a term, so that the caller can name the counted pods."""
        return self._pods.rows_with(counter.term_sets)

    # Called by the mirror.

    def hold(self, pod: Pod) -> int:
        """Create counters for the terms of a pod that enters the mirror, placed or not. Return the number of their set.

        Returns NO_TERMS for a pod without terms.
        """
        if not _has_terms(pod.affinity):
            return NO_TERMS
        term_set = self._term_sets.get(pod.affinity)
        if term_set is None:
            number = self._free_numbers.pop() if self._free_numbers else len(self._term_sets)
            counters = [self._acquire_owner(each, number) for each in _owner_terms(pod.affinity)]
            term_set = self._term_sets[pod.affinity] = TermSet(number, counters)
        term_set.pods += 1
        return term_set.number

    def drop(self, pod: Pod) -> None:
        """Release the terms of a pod that leaves the mirror and is no longer placed."""
        if not _has_terms(pod.affinity):
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
        if _has_terms(pod.affinity):
            for counter in self._term_sets[pod.affinity].counters:
                counter.add(slot, delta)
        self.matches.count(pod, slot, delta)

    # Checked by tests and operators.

    def owner_counts(self) -> dict[str, dict[str, int]]:
        """Return each owner counter as topology value -> pods, under a name that depends only on the term."""
        return {_shown(term): counter.by_value() for term, counter in self._owners.items()}

    def match_counts(self) -> dict[str, dict[str, int]]:
        """Return each match counter as topology value -> pods, under a name that depends only on the terms."""
        return {_shown(terms): counter.by_value() for terms, counter in self.matches}

    def audit(self) -> list[str]:
        """Recount by a plain loop over the pods, and return the differences. No difference is expected."""
        owners: dict[str, dict[str, int]] = {name: {} for name in self.owner_counts()}
        matches: dict[str, dict[str, int]] = {name: {} for name in self.match_counts()}
        for pod, labels in self._placed_pods():
            for owner_term in _owner_terms(pod.affinity):
                _count_value(owners.setdefault(_shown(owner_term), {}), labels, owner_term.term.topology_key)
            for terms, _ in self.matches:
                if self.matches.selects_all(terms.matchers, pod):
                    _count_value(matches[_shown(terms)], labels, terms.topology_key)
        return self._misnumbered() + [
            f"{name}: counted {kept.get(name)}, recounted {recounted}"
            for kept, recounts in ((self.owner_counts(), owners), (self.match_counts(), matches))
            for name, recounted in recounts.items()
            if kept.get(name) != recounted
        ]

    def _misnumbered(self) -> list[str]:
        """Return the pods and terms that are recorded under a wrong term set."""
        numbers = {affinity: term_set.number for affinity, term_set in self._term_sets.items()}
        kept_of_pod = {row: int(self._pods.term_set_of_row[row]) for row in self._pods.rows.values()}
        of_term: dict[OwnerTerm, set[int]] = {}
        for affinity, number in numbers.items():
            for owner_term in _owner_terms(affinity):
                of_term.setdefault(owner_term, set()).add(number)
        shared = len(numbers) - len(set(numbers.values()))
        return (
            [f"{shared} term sets have the number of another"] * bool(shared)
            + [
                f"{self._pods.pods[row].full_name}: term set {kept}"
                for row, kept in kept_of_pod.items()
                if kept != numbers.get(self._pods.pods[row].affinity, NO_TERMS)
            ]
            + [
                f"{_shown(owner_term)}: term sets {counter.term_sets}"
                for owner_term, counter in self._owners.items()
                if counter.term_sets != of_term.get(owner_term)
            ]
        )

    def _placed_pods(self) -> Iterator[tuple[Pod, Mapping[str, str]]]:
        for row in self._pods.rows.values():
            pod = self._pods.pods[row]
            info = self._nodes.infos[pod.node_name]
            if info.node is not None:
                yield pod, info.node.labels

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


def _owner_terms(affinity: PodAffinity) -> list[OwnerTerm]:
    return [
        *(OwnerTerm(Role.REQUIRED_ANTI_AFFINITY, term) for term in affinity.required_anti_affinity),
        *(OwnerTerm(Role.REQUIRED_AFFINITY, term) for term in affinity.required_affinity),
        *(OwnerTerm(Role.PREFERRED, each.term, each.weight) for each in affinity.preferred_affinity),
        *(OwnerTerm(Role.PREFERRED, each.term, -each.weight) for each in affinity.preferred_anti_affinity),
    ]


def _count_value(into: dict[str, int], labels: Mapping[str, str], key: str) -> None:
    if key in labels:
        into[labels[key]] = into.get(labels[key], 0) + 1


def _shown(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()
