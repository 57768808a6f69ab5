"""The constraints that apply to a pod: its own, or the default ones with a selector derived for the pod.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread/common.go (filterTopologySpreadConstraints,
buildDefaultConstraints) and apis/config/validation/validation_pluginargs.go (ValidatePodTopologySpreadArgs).
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from core.framework.claims import Services
from core.framework.node_matcher import NodeMatcher, label_keys
from core.mirror.changes import Change, NodeChange, RulesChange
from core.mirror.cluster import ClusterMirror
from core.mirror.label_columns import BatchLabels
from core.mirror.node_info import NodeBatch
from core.mirror.node_values import NodeValues
from core.mirror.topology import ABSENT, BoolArray, Int64Array, IntpArray, TopologyColumn
from core.objects.affinity import NodeAffinity
from core.objects.kinds import ControllerRef, ReplicaSet, ReplicationController, StatefulSet
from core.objects.labels import EVERYTHING, NOTHING, Operator, Selector, label_key_errors, requirement
from core.objects.node import HOSTNAME, ZONE, Node
from core.objects.pod import (
    DO_NOT_SCHEDULE,
    HONOR,
    KEEP_PODS_OFF,
    SCHEDULE_ANYWAY,
    Pod,
    SpreadConstraint,
    Taint,
    ToleratedTaints,
    Toleration,
)
from core.plugins.podtopologyspread.pod_counts import PodCounter

SYSTEM_DEFAULTS: Final = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    SpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
_ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)


class BrokenConstraintError(ValueError):
    """The selector of a pod's constraint could not be parsed. The message is upstream's."""


def own_constraints(pod: Pod, action: str, *, match_label_keys: bool = True) -> tuple[SpreadConstraint, ...]:
    """Return the pod's constraints of an action. `match_label_keys`: those of a constraint are added to its selector.

    Raises BrokenConstraintError for the first constraint with an invalid selector.
    """
    chosen = [constraint for constraint in pod.spread if constraint.when_unsatisfiable == action]
    for constraint in chosen:
        if constraint.selector_error:
            raise BrokenConstraintError(constraint.selector_error)
    return tuple(
        _with_match_labels(constraint, pod.labels) if match_label_keys else constraint for constraint in chosen
    )


def default_constraints(
    constraints: Iterable[SpreadConstraint], action: str, selector: Selector
) -> tuple[SpreadConstraint, ...]:
    """Return the default constraints of an action with the selector, or none if the selector is empty."""
    if selector.everything:
        return ()
    return tuple(replace(each, selector=selector) for each in constraints if each.when_unsatisfiable == action)


def check_arguments(defaulting_type: str, constraints: Sequence[SpreadConstraint]) -> None:
    """Raise ValueError for arguments that upstream rejects, with upstream's field names."""
    if defaulting_type not in ("System", "List"):
        raise ValueError(f"defaultingType: must be System or List, got {defaulting_type}")
    if defaulting_type == "System" and constraints:
        raise ValueError("defaultingType: must be List where defaultConstraints are not empty, got System")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        for error in _errors(constraint):
            raise ValueError(f"defaultConstraints[{index}].{error}")
        if identity in seen:
            raise ValueError(f"defaultConstraints[{index}]: must not be there twice, got {', '.join(identity)}")
        seen.add(identity)


def _with_match_labels(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """Source: mergeLabelSetWithSelector. A null selector still selects no pods."""
    added = [requirement(key, Operator.IN, [labels[key]]) for key in constraint.match_label_keys if key in labels]
    if not added or constraint.selector.nothing:
        return constraint
    merged = Selector(tuple(sorted({*constraint.selector.requirements, *added})))
    return replace(constraint, selector=merged)


def _errors(constraint: SpreadConstraint) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield f"maxSkew: must be greater than 0, got {constraint.max_skew}"
    if not constraint.topology_key:
        yield "topologyKey: must not be empty"
    for error in label_key_errors(constraint.topology_key):
        yield f"topologyKey: {error}, got {constraint.topology_key}"
    if constraint.when_unsatisfiable not in _ACTIONS:
        yield f"whenUnsatisfiable: must be {' or '.join(_ACTIONS)}, got {constraint.when_unsatisfiable}"
    if constraint.selector != NOTHING or constraint.selector_error:
        yield "labelSelector: must be absent, as it is deduced for each pod"


Controller: TypeAlias = ReplicationController | ReplicaSet | StatefulSet

CONTROLLERS: Final[Mapping[tuple[str, str], type[Controller]]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}
"""(apiVersion, kind) in an owner reference -> the kind of the controller. Selectors of other owners do not count."""


def default_selector(mirror: ClusterMirror, pod: Pod) -> Selector:
    """Return the selector of the pods that belong with a pod, or the empty selector if there are none.

    It has the requirements of all Services that select the pod, and of its controller. A missing or invalid selector
    requires nothing. For the same keys, a ReplicationController's labels replace the Services' labels. The two can
    differ if the controller's selector was changed and no longer matches the pod. Source: k8s.io/kubernetes
    pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector, GetPodServices).
    """
    services = mirror.derived(Services).selecting(pod)
    controller = None if pod.controller is None else _controller(mirror, pod.controller, pod.namespace)
    if not services:
        return EVERYTHING if controller is None or controller.selector.nothing else controller.selector
    requirements = {each for service in services for each in service.selector.requirements}
    if isinstance(controller, ReplicationController):
        keys = {requirement.key for requirement in controller.selector.requirements}
        requirements = {requirement for requirement in requirements if requirement.key not in keys}
    if controller is not None:
        requirements.update(controller.selector.requirements)
    return Selector(tuple(sorted(requirements)))


def _controller(mirror: ClusterMirror, owner: ControllerRef, namespace: str) -> Controller | None:
    """Return the controller by name. Like upstream, this does not compare its UID with the owner reference."""
    kind = CONTROLLERS.get((owner.api_version, owner.kind))
    return None if kind is None else mirror.objects(kind).get(f"{namespace}/{owner.name}")


# Topology domains of the nodes that a constraint counts, by its labels and its policies (common.go:
# matchNodeInclusionPolicies, nodeLabelsMatchSpreadConstraints).

MAX_COUNTED: Final = 64
"""How many sets of counted nodes are kept while no node changes. One costs 40 KB at 5,000 nodes."""
MAX_DOMAINS: Final = 128
"""How many domains (topology key and counted nodes) are kept. At 5,000 nodes, one costs 20 to 60 KB and 0.1 ms."""
_MAX_SIZE: Final = 256
"""Up to this many labels, requirements, values and tolerations, a constraint's node rules are kept.

The rules of a large pod would take megabytes.
"""


class CountedNodes(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Selects the counted nodes: those with all the labels, that meet the affinity and are tolerated (None: any)."""

    labels: tuple[str, ...]
    affinity: NodeAffinity | None
    tolerations: frozenset[Toleration] | None

    @classmethod
    def of(cls, constraint: SpreadConstraint, pod: Pod, labels: tuple[str, ...]) -> "CountedNodes":
        """Apply the policies of a pod's constraint. An affinity without requirements counts as none."""
        honored = pod.node_affinity.requires and constraint.node_affinity_policy == HONOR
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
    """The domains of one topology key. `ids` are those with a counted node. Stale after a change of a node."""

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

    def add(self, sums: Int64Array, slot: int, delta: int) -> None:
        """Add `delta` pods on the node of a slot to sums, if the node counts."""
        value_id = self._value_ids.item(slot)
        if value_id != ABSENT:
            sums[value_id] += delta


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

    def counted(self, which: CountedNodes) -> Counted:
        """Return the counted nodes. Stale after the next event."""
        found = self._counted.get(which)
        if found is not None:
            self._counted.move_to_end(which)
            return found
        everyone = self._mirror.all_nodes()
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
        if isinstance(change, NodeChange) and read_of(change.before) != read_of(change.after):
            self._taints.changed(change)
        elif not isinstance(change, RulesChange):  # the rules decide which taints are tolerated
            return
        self._counted.clear()
        self._domains.clear()

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


def read_of(node: Node | None) -> object:
    """Return what decides in which domains a node is, and whether it is counted."""
    return None if node is None else (node.labels, node.taints)


def _taints_that_keep_pods_off(node: Node) -> tuple[Taint, ...] | None:
    return tuple(taint for taint in node.taints if taint.effect in KEEP_PODS_OFF) or None
