"""The filter side of InterPodAffinity: hard rules of the incoming pod, and of existing pods against it.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np

from core.framework.interface import MOST_TRAITS, SUCCESS, Code, Status, Verdicts, Versions
from core.mirror.affinity_counts import MatchTerms, Role
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, DomainCounts, Int64Array, TopologyColumn, of_the_same_counters
from core.objects.pod import Pod

NAME: Final = "InterPodAffinity"

_FEW: Final = 3
"""Up to this number of nodes, sums are of numbers: an array of all domains takes 4 us."""


class DomainSums:
    """Sums weighted counts per topology key and domain, so that each key is looked up once per batch."""

    __slots__ = ("_by_column", "_shared")

    def __init__(self, weighted: Iterable[tuple[DomainCounts, int]]) -> None:
        # By column, not by key. A pod with more terms than the limit of counters can evict a column that it reads
        # itself. Then two columns have the same key, with different value ids.
        self._by_column: dict[TopologyColumn, list[tuple[DomainCounts, int]]] = {}
        self._shared: dict[TopologyColumn, Int64Array] = {}  # the sums by domain of some keys, see `of_all`
        for domains, weight in weighted:
            if domains.counts.nonzero:
                self._by_column.setdefault(domains.column, []).append((domains, weight))

    @property
    def empty(self) -> bool:
        """Whether no domain has a counted pod. Weights that cancel out, or are 0, still count as counted."""
        return not self._by_column

    @property
    def size(self) -> int:
        """How many counters are summed."""
        return sum(map(len, self._by_column.values()))

    def versions(self) -> tuple[int, ...]:
        """Return the versions of the counters. Counters without pods add nothing to a sum, and are left out."""
        return tuple([domains.version for weighted in self._by_column.values() for domains, _ in weighted])

    def presences(self) -> tuple[int, ...]:
        """Return the versions since which the same domains of each counter have pods."""
        return tuple([domains.presence for weighted in self._by_column.values() for domains, _ in weighted])

    def alike(self, before: Any, slots: Collection[int]) -> bool:  # noqa: ANN401  # a result of `versions` or `presences`
        """Return whether other nodes have the same sums as at earlier versions, if pods changed on these slots alone.

        They have if the counters are the same, and no node of the slots shares a domain with another one.
        """
        if not of_the_same_counters(before, self.versions()):
            return False
        return not any(column.shares(slot) for column in self._by_column for slot in slots)

    def per_node(self, batch: NodeBatch) -> Int64Array:
        """Return for each node of the batch the sum of its domains' counts over the keys."""
        if len(batch.slots) <= _FEW and not batch.unmirrored:
            return np.array([*map(self.at, batch.slots.tolist())], np.int64)
        total: Int64Array | None = None
        for column in self._by_column:
            by_node = self._by_domain(column).take(batch.value_ids(column))
            if total is None:
                total = by_node
            else:
                total += by_node
        return np.zeros(len(batch), np.int64) if total is None else total

    # See Traits. The number of a node is its domain, or the domain's sum for a key by which no two nodes share one.

    def of_all(self, batch: NodeBatch) -> list[Int64Array] | None:
        """Return the numbers of each node by topology key, and keep the sums of shared domains."""
        if len(self._by_column) > MOST_TRAITS:
            return None
        self._shared = {column: self._by_domain(column) for column in self._by_column if column.any_shared}
        found = []
        for column in self._by_column:
            ids = batch.value_ids(column)
            found.append(ids if column in self._shared else self._by_domain(column).take(ids))
        return found

    def on(self, _position: int, slot: int) -> list[int]:
        """Return the numbers of the node of a slot."""
        shared = self._shared
        return [column.of_slot.item(slot) if column in shared else self._at(column, slot) for column in self._by_column]

    def follows(self, earlier: "DomainSums", slots: Collection[int]) -> bool:
        """Take over the kept sums of an earlier state, if the counters are the same. Pods changed on these slots."""
        if [*earlier._by_column.items()] != [*self._by_column.items()]:  # noqa: SLF001  # of the same class
            return False
        self._shared = earlier._shared  # noqa: SLF001
        for column, sums in self._shared.items():
            for slot in slots:
                sums[column.of_slot.item(slot)] = self._at(column, slot)
        return True

    def scores(self, traits: Sequence[Int64Array], _nodes: Int64Array) -> Int64Array:
        """Return the sum over the keys for each group with these numbers."""
        total = np.zeros(len(traits[0]), np.int64)
        for column, numbers in zip(self._by_column, traits, strict=True):
            sums = self._shared.get(column)
            total += numbers if sums is None else sums.take(numbers)
        return total

    def _by_domain(self, column: TopologyColumn) -> Int64Array:
        """Return the sums of a topology key by value id."""
        sums = column.sums()
        for domains, weight in self._by_column[column]:
            domains.counts.add_into(sums, weight)
        return sums

    def at(self, slot: int) -> int:
        """Return the sum of the node of a slot."""
        return sum([self._at(column, slot) for column in self._by_column])

    def _at(self, column: TopologyColumn, slot: int) -> int:
        value_id, total = column.of_slot.item(slot), 0
        for domains, weight in self._by_column[column]:
            total += weight * domains.counts.get(value_id)
        return total


NO_SUMS: Final = DomainSums(())
AFFINITY_RULES: Final = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
ANTI_AFFINITY_RULES: Final = Status(Code.UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
EXISTING_ANTI_AFFINITY_RULES: Final = Status(
    Code.UNSCHEDULABLE, ("node(s) didn't satisfy existing pods anti-affinity rules",)
)
# In the order of evaluation: the first failure is a node's verdict.
_STATUSES: Final = (SUCCESS, AFFINITY_RULES, ANTI_AFFINITY_RULES, EXISTING_ANTI_AFFINITY_RULES)


class PreFilterState:
    """The hard rules of one incoming pod, resolved to counters. Stale after the next event."""

    __slots__ = ("affinity", "anti_affinity", "existing_anti_affinity", "first_of_its_kind")

    def __init__(self, mirror: ClusterMirror, pod: Pod) -> None:
        counts, affinity = mirror.affinity, pod.affinity
        self.affinity: list[DomainCounts] = []
        self.anti_affinity = self.existing_anti_affinity = NO_SUMS
        self.first_of_its_kind = False
        if affinity.required_affinity or affinity.required_anti_affinity:
            # One pod must match all terms, so together they are one counter per topology key.
            matchers = tuple([term.matcher for term in affinity.required_affinity])
            keys = dict.fromkeys([term.topology_key for term in affinity.required_affinity])
            counters = [MatchTerms(matchers, key) for key in keys]
            counters += [MatchTerms((term.matcher,), term.topology_key) for term in affinity.required_anti_affinity]
            counted = counts.matches.of(counters, "spec.affinity")
            self.affinity = counted[: len(keys)]
            self.anti_affinity = DomainSums([(each, 1) for each in counted[len(keys) :]])
            # Without this rule, a series of pods that require each other would stay pending: the first may go to any
            # node with the keys.
            self.first_of_its_kind = bool(keys) and (
                not any(domains.counts.nonzero for domains in self.affinity)
                and counts.matches.selects_all(matchers, pod)
            )
        owners = counts.owners(pod.namespace, pod.labels)
        if owners:
            self.existing_anti_affinity = DomainSums(
                [(owner, 1) for owner in owners if owner.owner_term.role is Role.REQUIRED_ANTI_AFFINITY]
            )

    def versions(self) -> Versions:
        """Return since when all counters that the verdicts depend on have pods in the same domains.

        With `first_of_its_kind`. How many pods a domain has, counts for no verdict.
        """
        return (
            self.first_of_its_kind,
            tuple([domains.presence for domains in self.affinity]),
            self.anti_affinity.presences(),
            self.existing_anti_affinity.presences(),
        )

    def alike(self, before: Versions, slots: Collection[int]) -> bool:
        """Return whether other nodes have the same verdicts as before, if pods changed on these slots alone."""
        first, affinity, own, of_existing = before
        return (
            first is self.first_of_its_kind
            and affinity == tuple([domains.presence for domains in self.affinity])
            and self.anti_affinity.alike(own, slots)
            and self.existing_anti_affinity.alike(of_existing, slots)
        )

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Return the verdict on each node."""
        if len(batch.slots) <= _FEW and not batch.unmirrored:
            return Verdicts(np.array([*map(self._code_on, batch.slots.tolist())], np.uint8), _STATUSES)
        codes = np.zeros(len(batch), np.uint8)
        if not self.existing_anti_affinity.empty:
            codes[self.existing_anti_affinity.per_node(batch) > 0] = _STATUSES.index(EXISTING_ANTI_AFFINITY_RULES)
        if not self.anti_affinity.empty:
            codes[self.anti_affinity.per_node(batch) > 0] = _STATUSES.index(ANTI_AFFINITY_RULES)
        if self.affinity:
            codes[~self._attracted(batch)] = _STATUSES.index(AFFINITY_RULES)
        return Verdicts(codes, _STATUSES)

    def status_on(self, slot: int) -> Status:
        """Return the verdict on the node of a slot."""
        return _STATUSES[self._code_on(slot)]

    def _code_on(self, slot: int) -> int:
        for domains in self.affinity:
            value_id = domains.column.of_slot.item(slot)
            if value_id == ABSENT if self.first_of_its_kind else domains.counts.get(value_id) <= 0:
                return _STATUSES.index(AFFINITY_RULES)
        if self.anti_affinity.at(slot) > 0:
            return _STATUSES.index(ANTI_AFFINITY_RULES)
        return _STATUSES.index(EXISTING_ANTI_AFFINITY_RULES) if self.existing_anti_affinity.at(slot) > 0 else 0

    def _attracted(self, batch: NodeBatch) -> BoolArray:
        """Return for each node whether it has all topology keys, and matching pods in each of its domains."""
        attracted = np.ones(len(batch), np.bool_)
        for domains in self.affinity:
            if not attracted.any():
                break
            value_ids = batch.value_ids(domains.column)
            if self.first_of_its_kind:
                attracted &= value_ids != ABSENT
            else:
                sums = domains.column.sums()
                domains.counts.add_into(sums)
                attracted &= sums[value_ids] > 0  # ABSENT reads 0
        return attracted
