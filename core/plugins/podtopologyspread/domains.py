"""Topology domains of the nodes that a constraint counts, by its labels and its policies.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (matchNodeInclusionPolicies,
nodeLabelsMatchSpreadConstraints).
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from core.framework.node_matcher import NodeMatcher, label_keys
from core.mirror.changes import Change, NodeChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchLabels
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.mirror.topology import ABSENT, BoolArray, Int64Array, IntpArray, TopologyColumn
from core.objects.affinity import NodeAffinity
from core.objects.node import Node
from core.objects.pod import HONOR, Pod, SpreadConstraint, Taint, ToleratedTaints, Toleration
from core.plugins.podtopologyspread.pod_counts import PodCounter

MAX_COUNTED: Final = 64
"""How many sets of counted nodes are kept while no node changes. One costs 40 KB at 5,000 nodes."""
MAX_DOMAINS: Final = 128
"""How many domains (topology key and counted nodes) are kept. At 5,000 nodes, one costs 20 to 60 KB and 0.1 ms."""
_MAX_SIZE: Final = 256
"""Up to this many labels, requirements, values and tolerations, a constraint's node rules are kept.

The rules of a large pod would take megabytes.
"""

_KEEP_PODS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})


class CountedNodes(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Selects the counted nodes: those with all the labels, that meet the affinity and are tolerated (None: any)."""

    labels: tuple[str, ...]
    affinity: NodeAffinity | None
    tolerations: frozenset[Toleration] | None

    @classmethod
    def of(cls, constraint: SpreadConstraint, pod: Pod, labels: tuple[str, ...]) -> "CountedNodes":
        """Apply the policies of a pod's constraint. An affinity without requirements counts as none."""
        required = pod.node_affinity.required is not None or not pod.node_affinity.selector.everything
        honored = required and constraint.node_affinity_policy == HONOR
        return cls(
            labels,
            pod.node_affinity if honored else None,
            pod.tolerations if constraint.node_taints_policy == HONOR else None,
        )

    @property
    def size(self) -> int:
        """Size of the value: the number of labels, requirements, values and tolerations."""
        affinity = 0 if self.affinity is None else self.affinity.size
        return len(self.labels) + affinity + len(self.tolerations or ())


class Domains:
    """The domains of one topology key. `ids` are the value ids of the domains with a counted node.

    Stale after the next change of a node.
    """

    __slots__ = ("_value_ids", "column", "ids")

    def __init__(self, column: TopologyColumn, slots: IntpArray, value_ids: IntpArray) -> None:
        self.column = column
        self.ids = np.flatnonzero(np.bincount(value_ids))
        self._value_ids = np.full(len(column.of_slot), ABSENT, np.int32)  # by slot, of the counted nodes
        self._value_ids[slots] = value_ids

    def sums(self, counter: PodCounter) -> Int64Array:
        """Return the number of pods on the counted nodes by value id. UNSEEN and ABSENT read 0."""
        sums = self.column.sums()
        if counter.counts_any:
            slots, pods = counter.by_slot()
            # The first number, of ABSENT, is of pods on nodes that do not count. Floats are exact up to 2**53.
            numbers = np.bincount(self._value_ids.take(slots) + 1, weights=pods)[1:]
            sums[: len(numbers)] = numbers
        return sums


class Counted:
    """The counted nodes of a constraint, by slot. Compared by identity."""

    __slots__ = ("slots",)

    def __init__(self, slots: IntpArray) -> None:
        self.slots = slots


class NodeDomains:
    """The recently requested domains, and the fields of every node that domains are made from."""

    hears: Final = (NodeChange, RulesChange)

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        self._taints = NodeValues(mirror, _taints_that_keep_pods_off)
        self._counted: OrderedDict[CountedNodes, Counted] = OrderedDict()
        self._domains: OrderedDict[tuple[Counted, TopologyColumn], Domains] = OrderedDict()
        self._everyone: NodeBatch | None = None

    def counted(self, which: CountedNodes) -> Counted:
        """Return the counted nodes. Stale after the next event."""
        found = self._counted.get(which)
        if found is not None:
            self._counted.move_to_end(which)
            return found
        everyone = self._all_nodes()
        found = Counted(everyone.slots[self._chosen(which, everyone)])
        if which.size <= _MAX_SIZE:
            self._counted[which] = found
            if len(self._counted) > MAX_COUNTED:
                self._counted.popitem(last=False)
        return found

    def of(self, column: TopologyColumn, counted: Counted) -> Domains:
        """Return the domains of the topology key of a column, with its value ids. Stale after the next event.

        If the counted nodes need not have the label, a node without it is in the domain of the empty value, as in a Go
        map.
        """
        found = self._domains.get((counted, column))
        if found is not None:
            self._domains.move_to_end((counted, column))
            return found
        slots, ids = counted.slots, column.of_slot.take(counted.slots).astype(np.intp)
        ids[ids < 0] = column.id_of({column.key: ""})
        if len(ids) and ids.min() < 0:
            slots, ids = slots[ids >= 0], ids[ids >= 0]
        found = self._domains[counted, column] = Domains(column, slots, ids)
        if len(self._domains) > MAX_DOMAINS:
            self._domains.popitem(last=False)
        return found

    def changed(self, change: Change) -> None:
        """Read a changed node again if one of these fields changed."""
        if isinstance(change, NodeChange) and domains_differ(change.before, change.after):
            self._taints.changed(change)
        elif not isinstance(change, RulesChange):  # the rules decide which taints are tolerated
            return
        self._counted.clear()
        self._domains.clear()
        self._everyone = None

    def _all_nodes(self) -> NodeBatch:
        if self._everyone is None:
            self._everyone = self._mirror.batch(list(self._mirror.nodes.slots))
        return self._everyone

    def _chosen(self, counted: CountedNodes, nodes: NodeBatch) -> BoolArray:
        chosen = having_all(BatchLabels(self._mirror, nodes, counted.labels), counted.labels, nodes)
        if counted.affinity is not None and chosen.any():
            chosen &= NodeMatcher(self._mirror, nodes, label_keys(counted.affinity)).required(counted.affinity)
        if counted.tolerations is not None and chosen.any():
            chosen &= self._tolerated(counted.tolerations, nodes)
        return chosen

    def _tolerated(self, tolerations: frozenset[Toleration], nodes: NodeBatch) -> BoolArray:
        tolerated = ToleratedTaints(tolerations, numeric=self._mirror.rules.numeric_tolerations)

        def judge(taints: tuple[Taint, ...] | None) -> int:
            return all(map(tolerated.__contains__, taints or ()))

        found: BoolArray = self._taints.judged(nodes, judge) > 0
        return found


class ConstrainedDomains:
    """The domains of the constraints of one pod. Each set of counted nodes is looked up once. Stale after an event."""

    __slots__ = ("_counted", "_domains", "_labels", "_pod")

    def __init__(self, mirror: ClusterMirror, pod: Pod, labels: tuple[str, ...]) -> None:
        """`labels` are the labels that counted nodes must have."""
        self._domains = mirror.derived(NodeDomains)
        self._pod = pod
        self._labels = labels
        self._counted: dict[tuple[bool, bool], Counted] = {}  # (affinity honored, taints honored) -> nodes

    def of(self, constraint: SpreadConstraint, column: TopologyColumn) -> Domains:
        """Return the domains of a constraint, with the value ids of a column of its topology key."""
        policies = constraint.node_affinity_policy == HONOR, constraint.node_taints_policy == HONOR
        counted = self._counted.get(policies)
        if counted is None:
            counted = self._domains.counted(CountedNodes.of(constraint, self._pod, self._labels))
            self._counted[policies] = counted
        return self._domains.of(column, counted)


def having_all(labels: BatchLabels, keys: Iterable[str], batch: NodeBatch) -> BoolArray:
    """Return which nodes of a batch have all of these labels. An unknown node has none."""
    having = np.ones(len(batch), np.bool_)
    for key in keys:
        column = labels.of(key)
        if column is None:
            return np.zeros(len(batch), np.bool_)
        having &= column.present()
    return having


def domains_differ(before: Node | None, after: Node | None) -> bool:
    """Return whether a node's change can move it to another domain, or change whether it is counted."""
    if before is None or after is None:
        return True
    return before.labels != after.labels or before.taints != after.taints


def _taints_that_keep_pods_off(node: Node) -> tuple[Taint, ...] | None:
    """Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/helper/taint.go (DoNotScheduleTaintsFilterFunc)."""
    return tuple(taint for taint in node.taints if taint.effect in _KEEP_PODS_OFF) or None
