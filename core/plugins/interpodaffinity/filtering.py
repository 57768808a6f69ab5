"""The filter side of InterPodAffinity: hard rules of the incoming pod, and of existing pods against it.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from core.framework.interface import SUCCESS, Code, Status, Verdicts, Versions
from core.mirror.affinity_counts import MatchTerms, Role
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, DomainCounts, Int64Array, TopologyColumn
from core.objects.pod import Pod

NAME: Final = "InterPodAffinity"


class DomainSums:
    """Sums weighted counts per topology key and domain, so that each key is looked up once per batch."""

    __slots__ = ("_by_column",)

    def __init__(self, weighted: Iterable[tuple[DomainCounts, int]]) -> None:
        # By column, not by key. A pod with more terms than the limit of counters can evict a column that it reads
        # itself. Then two columns have the same key, with different value ids.
        self._by_column: dict[TopologyColumn, list[tuple[DomainCounts, int]]] = {}
        for domains, weight in weighted:
            if domains.counts.nonzero:
                self._by_column.setdefault(domains.column, []).append((domains, weight))

    @property
    def empty(self) -> bool:
        """Whether no domain has a counted pod. Weights that cancel out, or are 0, still count as counted."""
        return not self._by_column

    def versions(self) -> Versions:
        """Return the versions of the counters. Counters without pods add nothing to a sum, and are left out."""
        return tuple(domains.version for weighted in self._by_column.values() for domains, _ in weighted)

    def per_node(self, batch: NodeBatch) -> Int64Array:
        """Return for each node of the batch the sum of its domains' counts over the keys."""
        total: Int64Array | None = None
        for column, weighted in self._by_column.items():
            sums = column.sums()
            for domains, weight in weighted:
                domains.counts.add_into(sums, weight)
            by_node = sums.take(batch.value_ids(column))
            if total is None:
                total = by_node
            else:
                total += by_node
        return np.zeros(len(batch), np.int64) if total is None else total


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
        terms = pod.affinity.required_affinity
        # One pod must match all terms, so together they are one counter per topology key.
        matchers = tuple(term.matcher for term in terms)
        keys = dict.fromkeys([term.topology_key for term in terms])
        counts = mirror.affinity
        counters = [MatchTerms(matchers, key) for key in keys]
        counters += [MatchTerms((term.matcher,), term.topology_key) for term in pod.affinity.required_anti_affinity]
        counted = counts.matches.of(counters, "spec.affinity")
        self.affinity = counted[: len(keys)]
        self.anti_affinity = DomainSums((each, 1) for each in counted[len(keys) :])
        self.existing_anti_affinity = DomainSums(
            (owner, 1)
            for owner in counts.owners(pod.namespace, pod.labels)
            if owner.owner_term.role is Role.REQUIRED_ANTI_AFFINITY
        )
        # Without this rule, a series of pods that require each other would stay pending: the first may go to any node
        # with the keys.
        self.first_of_its_kind = not any(
            domains.counts.nonzero for domains in self.affinity
        ) and counts.matches.selects_all(matchers, pod)

    def versions(self) -> Versions:
        """Return the versions of all counters that the verdicts depend on, and `first_of_its_kind`."""
        return (
            self.first_of_its_kind,
            tuple(domains.version for domains in self.affinity),
            self.anti_affinity.versions(),
            self.existing_anti_affinity.versions(),
        )

    def judge(self, batch: NodeBatch) -> Verdicts:
        """Return the verdict on each node."""
        codes = np.zeros(len(batch), np.uint8)
        if not self.existing_anti_affinity.empty:
            codes[self.existing_anti_affinity.per_node(batch) > 0] = _STATUSES.index(EXISTING_ANTI_AFFINITY_RULES)
        if not self.anti_affinity.empty:
            codes[self.anti_affinity.per_node(batch) > 0] = _STATUSES.index(ANTI_AFFINITY_RULES)
        if self.affinity:
            codes[~self._attracted(batch)] = _STATUSES.index(AFFINITY_RULES)
        return Verdicts(codes, _STATUSES)

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
