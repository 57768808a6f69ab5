"""Sums over topology domains for the nodes of a batch, for filtering and scoring."""

from collections.abc import Iterable

import numpy as np

from core.framework.interface import Versions
from core.mirror.domain_counts import DomainCounts
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, TopologyColumn


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
