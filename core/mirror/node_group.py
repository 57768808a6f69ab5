"""The known nodes of the partition by domain of a topology key, for placing pods in few domains."""

from collections.abc import Collection
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import LabelColumns
from core.mirror.node_info import NodeBatch
from core.mirror.topology import ABSENT, BoolArray, Int64Array, IntpArray

Float64Array: TypeAlias = NDArray[np.float64]

NO_DOMAIN: Final = -1


class NodeGroup(NamedTuple):
    """The known nodes of the partition by domain, at one generation (upstream MakeBasicNodeGroup).

    The nodes with the same value of the topology key are a domain. A node without the label is a domain of its own,
    because no other node is known to be near it. The group is stale when a node is added, removed or changes its
    labels. Changes of pods do not matter.
    """

    topology_key: str
    """Empty means that each node is a domain."""
    generation: int
    """The mirror's generation when the group was made."""
    nodes: NodeBatch
    domain_of: IntpArray
    """Position in `nodes` -> domain, 0..`domains` - 1."""
    domains: int

    def sums(self, by_node: Int64Array | Float64Array) -> Float64Array:
        """Return the sum of an amount by domain."""
        return np.bincount(self.domain_of, by_node, self.domains).astype(np.float64)

    def by_slot(self, capacity: int) -> IntpArray:
        """Return slot -> domain for all slots of a NodeTable; NO_DOMAIN where the node is not in the group."""
        found = np.full(capacity, NO_DOMAIN, np.intp)
        found[self.nodes.slots] = self.domain_of
        return found

    def within(self, domains: Collection[int]) -> NodeBatch:
        """Return the nodes of some domains."""
        return self.nodes.part(np.flatnonzero(np.isin(self.domain_of, [*domains])))

    def has_any(self, slots: IntpArray) -> BoolArray:
        """Return for each domain whether one of its nodes has one of these slots."""
        present: BoolArray = np.zeros(self.domains, np.bool_)
        present[self.domain_of[np.isin(self.nodes.slots, slots)]] = True
        return present


def make_node_group(mirror: ClusterMirror, topology_key: str = "") -> NodeGroup:
    """Return the nodes by domain of a topology key. Without a key, each node is a domain."""
    batch = mirror.all_nodes()
    outside = batch.out_of_partition
    if outside is not None:
        batch = batch.part(np.flatnonzero(~outside))
    column = mirror.derived(LabelColumns).of([topology_key]).get(topology_key) if topology_key else None
    ids = np.full(len(batch), ABSENT, np.intp) if column is None else batch.value_ids(column)
    alone: BoolArray = ids == ABSENT
    domain_of = np.empty(len(batch), np.intp)
    values, domain_of[~alone] = np.unique(ids[~alone], return_inverse=True)
    domains = len(values) + int(np.count_nonzero(alone))
    domain_of[alone] = np.arange(len(values), domains)
    return NodeGroup(topology_key, mirror.generation, batch, domain_of, domains)
