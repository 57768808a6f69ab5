"""Topology domains, made of the nodes that a constraint counts: with the labels it needs, and by its policies.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (matchNodeInclusionPolicies,
nodeLabelsMatchSpreadConstraints).
"""

from collections import OrderedDict
from typing import Final

import msgspec
import numpy as np

from core.mirror.changes import Change, NodeChange
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import LabelProjections, LabelValues, NodeValues, labels_of
from core.mirror.topology import BoolArray, Int64Array, IntpArray, TopologyColumn
from core.objects.node import Node
from core.objects.node_affinity import NodeAffinity
from core.objects.node_selector import NodeSelectorTerm
from core.objects.pod import Pod
from core.objects.toleration import Taint, Toleration
from core.objects.topology_spread import HONOR, SpreadConstraint
from core.plugins.podtopologyspread.pod_counts import PodCounter

MAX_COLUMNS: Final = 64
"""Topology keys whose values are kept by node. One costs 20 KB at 5,000 nodes, and a pass over the nodes to make."""
MAX_DOMAINS: Final = 128
"""Domains that are kept while no node changes, 80 KB each at 5,000 nodes."""

_KEEP_PODS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})
_NAME_OF_NO_NODE: Final = "*"


class CountedNodes(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Which nodes are counted: those with all the labels that meet the affinity and are tolerated (None: any)."""

    labels: tuple[str, ...]
    affinity: NodeAffinity | None
    tolerations: frozenset[Toleration] | None

    @classmethod
    def of(cls, constraint: SpreadConstraint, pod: Pod, labels: tuple[str, ...]) -> "CountedNodes":
        """Apply the policies of a constraint of a pod; affinity that requires nothing is none."""
        required = pod.node_affinity.required is not None or not pod.node_affinity.selector.everything
        honored = required and constraint.node_affinity_policy == HONOR
        return cls(
            labels,
            pod.node_affinity if honored else None,
            pod.tolerations if constraint.node_taints_policy == HONOR else None,
        )


class Domains:
    """The domains of one topology key; `ids` are the value ids of those that have a counted node.

    Stale after the next change of a node.
    """

    __slots__ = ("_slots", "_value_ids", "column", "ids")

    def __init__(self, column: TopologyColumn, slots: IntpArray, value_ids: IntpArray) -> None:
        self.column = column
        self.ids = np.unique(value_ids)
        self._slots = slots
        self._value_ids = value_ids

    def sums(self, counter: PodCounter) -> Int64Array:
        """Return the number of pods on the counted nodes by value id; UNSEEN and ABSENT look up 0."""
        sums = self.column.sums()
        on_nodes = counter.per_slot(len(self.column.of_slot))[self._slots]
        numbers = np.bincount(self._value_ids, weights=on_nodes)  # floats, exact up to 2**53
        sums[: len(numbers)] = numbers
        return sums


class NodeDomains:
    """The domains that were asked for last, and what of every node they are made from."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._columns: OrderedDict[str, TopologyColumn] = OrderedDict()
        self._projections = mirror.derived(LabelProjections)
        self._taints = NodeValues(mirror, _taints_that_keep_pods_off)
        self._domains: OrderedDict[tuple[str, CountedNodes], Domains] = OrderedDict()
        self._everyone: NodeBatch | None = None

    def column(self, key: str) -> TopologyColumn:
        """Return the values of a topology key on every node; stale after the next event."""
        column = self._columns.get(key)
        if column is not None:
            self._columns.move_to_end(key)
            return column
        column = self._columns[key] = TopologyColumn(key, self._mirror.nodes.capacity)
        for slot, node in self._mirror.nodes:
            column.assign(slot, node.labels.get(key))
        if len(self._columns) > MAX_COLUMNS:
            self._columns.popitem(last=False)
        return column

    def of(self, key: str, counted: CountedNodes) -> Domains:
        """Return the domains of a topology key; stale after the next event.

        A node without the label, where the counted nodes need not have it, is in the domain of the empty value, as a
        Go map has it.
        """
        found = self._domains.get((key, counted))
        if found is not None:
            self._domains.move_to_end((key, counted))
            return found
        everyone, column = self._all_nodes(), self.column(key)
        ids = everyone.value_ids(column)
        ids[ids < 0] = column.id_of({key: ""})
        chosen = self._counted(counted, everyone) & (ids >= 0)
        found = self._domains[key, counted] = Domains(column, everyone.slots[chosen], ids[chosen])
        if len(self._domains) > MAX_DOMAINS:
            self._domains.popitem(last=False)
        return found

    def changed(self, change: Change) -> None:
        """Read a node again of which something has changed that domains are made from."""
        if not isinstance(change, NodeChange) or not domains_differ(change.before, change.after):
            return
        self._taints.changed(change)
        for column in self._columns.values():
            column.grow(self._mirror.nodes.capacity)
            column.assign(change.slot, None if change.after is None else change.after.labels.get(column.key))
        self._domains.clear()
        self._everyone = None

    def _all_nodes(self) -> NodeBatch:
        if self._everyone is None:
            self._everyone = self._mirror.batch(list(self._mirror.nodes.slots))
        return self._everyone

    def _counted(self, counted: CountedNodes, nodes: NodeBatch) -> BoolArray:
        chosen = np.ones(len(nodes), np.bool_)
        for key in counted.labels:
            chosen &= nodes.value_ids(self.column(key)) >= 0
        if counted.affinity is not None:
            chosen &= self._meeting(counted.affinity, nodes)
        if counted.tolerations is not None:
            chosen &= self._tolerated(counted.tolerations, nodes)
        return chosen

    def _meeting(self, affinity: NodeAffinity, nodes: NodeBatch) -> BoolArray:
        keys = _label_keys(affinity)

        def judge(values: LabelValues | None) -> int:
            return affinity.matches(labels_of(keys, values), _NAME_OF_NO_NODE)

        meeting = self._projections.of(keys).judged(nodes, judge) > 0
        # Only the names that a field mentions can make a difference between nodes whose labels are alike.
        mentioned = {field.value for term in _terms(affinity) for field in term.fields}
        for position in np.flatnonzero(np.isin(nodes.slots, self._slots_of(mentioned))).tolist():
            name = nodes.names[position]
            node = self._mirror.nodes.infos[name].node
            meeting[position] = node is not None and affinity.matches(node.labels, name)
        return meeting

    def _slots_of(self, names: set[str]) -> list[int]:
        slots = self._mirror.nodes.slots
        return [slots[name] for name in names if name in slots]

    def _tolerated(self, tolerations: frozenset[Toleration], nodes: NodeBatch) -> BoolArray:
        def judge(taints: tuple[Taint, ...] | None) -> int:
            return all(any(each.tolerates(taint) for each in tolerations) for taint in taints or ())

        tolerated: BoolArray = self._taints.judged(nodes, judge) > 0
        return tolerated


def domains_differ(before: Node | None, after: Node | None) -> bool:
    """Tell whether a node's change can move it to another domain, or let it be counted or not."""
    if before is None or after is None:
        return True
    return before.labels != after.labels or before.taints != after.taints


def _taints_that_keep_pods_off(node: Node) -> tuple[Taint, ...] | None:
    """Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/taint.go (DoNotScheduleTaintsFilterFunc)."""
    return tuple(taint for taint in node.taints if taint.effect in _KEEP_PODS_OFF) or None


def _terms(affinity: NodeAffinity) -> tuple[NodeSelectorTerm, ...]:
    return () if affinity.required is None else affinity.required.terms


def _label_keys(affinity: NodeAffinity) -> tuple[str, ...]:
    keys = {requirement.key for requirement in affinity.selector.requirements}
    for term in _terms(affinity):
        keys.update(requirement.key for requirement in term.requirements)
        keys.update(comparison.key for comparison in term.comparisons)
    return tuple(sorted(keys))
