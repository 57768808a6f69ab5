"""Sums over topology domains, looked up for the nodes of a batch: what filtering and scoring have in common."""

from collections.abc import Iterable

import numpy as np

from core.mirror.affinity_counts import DomainCounts
from core.mirror.node_info import NodeBatch
from core.mirror.topology import Int64Array


class DomainSums:
    """Weighted counts, added up per topology key and domain, so that each key is looked up once per batch."""

    __slots__ = ("_by_key",)

    def __init__(self, weighted: Iterable[tuple[DomainCounts, int]]) -> None:
        self._by_key: dict[str, list[tuple[DomainCounts, int]]] = {}
        for domains, weight in weighted:
            if domains.counts.nonzero:
                self._by_key.setdefault(domains.column.key, []).append((domains, weight))

    @property
    def empty(self) -> bool:
        """Whether no pod was counted in any domain. Weights that cancel out, or are 0, were still counted."""
        return not self._by_key

    def per_node(self, batch: NodeBatch) -> Int64Array:
        """Return the sum over the keys of the node's domain, for each node of the batch."""
        total = np.zeros(len(batch), np.int64)
        for weighted in self._by_key.values():
            column = weighted[0][0].column
            sums = column.sums()
            for domains, weight in weighted:
                domains.counts.add_into(sums, weight)
            total += sums[batch.value_ids(column)]
        return total
