"""Sums over topology domains, looked up for the nodes of a batch, for filtering and scoring."""

from collections.abc import Iterable

import numpy as np

from core.framework.interface import Versions
from core.mirror.domain_counts import DomainCounts
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array, TopologyColumn


class DomainSums:
    """Weighted counts, added up per topology key and domain, so that each key is looked up once per batch."""

    __slots__ = ("_by_column",)

    def __init__(self, weighted: Iterable[tuple[DomainCounts, int]]) -> None:
        # By column, not by key: a pod with more terms than counters are kept can evict a column that it reads itself,
        # and then has two of the same key, with other value ids.
        self._by_column: dict[TopologyColumn, list[tuple[DomainCounts, int]]] = {}
        for domains, weight in weighted:
            if domains.counts.nonzero:
                self._by_column.setdefault(domains.column, []).append((domains, weight))

    @property
    def empty(self) -> bool:
        """Whether no pod was counted in any domain. Weights that cancel out, or are 0, were still counted."""
        return not self._by_column

    def versions(self) -> Versions:
        """Return the versions of the counters; those that count nothing have no part in any sum, and are left out."""
        return tuple(domains.version for weighted in self._by_column.values() for domains, _ in weighted)

    def per_node(self, batch: NodeBatch) -> Int64Array:
        """Return the sum over the keys of the node's domain, for each node of the batch."""
        total = np.zeros(len(batch), np.int64)
        for column, weighted in self._by_column.items():
            sums = column.sums()
            for domains, weight in weighted:
                domains.counts.add_into(sums, weight)
            total += sums[batch.value_ids(column)]
        return total
