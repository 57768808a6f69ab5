"""The plugins that reject each node, and for each plugin the steps after which it passes one node."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import msgspec
import numpy as np

from core.diagnosis.amounts.requirements import (
    NODE_NAME,
    Asked,
    Source,
    best_alternatives,
    best_unmet,
    choices_of,
    is_cordoned,
    told_of,
    untolerated_taints,
)
from core.diagnosis.amounts.resources import measured_resources
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.amounts.volumes import claim_users
from core.diagnosis.diagnosis import Diagnosis
from core.diagnosis.remedies.owners import Leaving
from core.diagnosis.remedies.pod_steps import DropRequirement, LowerRequest, RaiseMaxSkew, RelaxSpread, TolerateTaint
from core.diagnosis.remedies.remedy import (
    RepairNode,
    RunPod,
    SetLabel,
    Step,
    Uncordon,
    is_leaving,
    is_trouble,
)
from core.mirror.node_info import NO_SLOT
from core.mirror.topology import ABSENT, BoolArray, Int64Array, IntpArray
from core.objects.affinity import Comparison, FieldRequirement, PodMatcher
from core.objects.labels import Operator, Requirement
from core.objects.node import HOSTNAME, Node
from core.objects.pod import DO_NOT_SCHEDULE, Pod
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.noderesources.columns import PODS
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import UNSCHEDULABLE, NodeUnschedulable
from core.plugins.podtopologyspread.plugin import MeasuredConstraint, PodTopologySpread
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumezone import TOPOLOGY_LABELS

_MAX_NAMESPACES: Final = 64
MAX_TERMS: Final = 16
MAX_SELECTED: Final = 256
"""Limit of requirements and values of all terms together. A selector written by hand is smaller."""
_LABELLED: Final = 256
_ANY_VALUE: Final = "true"


class Room(msgspec.Struct, frozen=True):
    """The free amount of a resource by node, less nominated pods, and whether it is too little for the pod."""

    resource: str
    asked: int
    free: Int64Array
    short: BoolArray


class Obstacles:
    """The plugins that reject each node, each judged independently, with and without the nominated pods."""

    def __init__(self, decision: Diagnosis) -> None:
        self.decision: Final = decision
        refused = {name: codes.copy() for name, codes in decision.refusing.items()}
        for position, refusal in decision.refused_beside.items():
            refused.setdefault(refusal.failure.plugin, np.zeros(len(decision.batch), np.bool_))[position] = True
        self.refused: Final[Mapping[str, BoolArray]] = refused
        self.number: Final[Int64Array] = sum(
            (each.astype(np.int64) for each in refused.values()), np.zeros(len(decision.batch), np.int64)
        )
        """Number of plugins that reject each node."""

    def only(self, plugins: Collection[str]) -> IntpArray:
        """Return the known nodes that only plugins among these reject."""
        these = sum(
            (each.astype(np.int64) for name, each in self.refused.items() if name in plugins),
            np.zeros(len(self.number), np.int64),
        )
        known = self.decision.known
        found: IntpArray = known[(these[known] > 0) & (these[known] == self.number[known])]
        return found

    def some_of(self, positions: IntpArray, number: int) -> Sequence[int]:
        """Return up to `number` of these nodes, at equal distances, because neighbours are often alike."""
        places = np.linspace(0, len(positions) - 1, min(len(positions), number)).astype(np.intp)
        chosen: list[int] = positions[places].tolist()
        return chosen

    def of(self, position: int) -> Sequence[str]:
        """Return the plugins that reject a node, in the order of the profile."""
        names = (plugin.name for plugin in self.decision.profile.filters)
        return [name for name in names if name in self.refused and self.refused[name][position]]

    def rooms(self, positions: IntpArray) -> Sequence[Room]:
        """Return the free amounts of `pods`, then of the pod's resources. Empty without nodes."""
        if not len(positions):
            return ()
        found = []
        for each in measured_resources(self.decision, self.decision.batch.part(positions)):
            free = each.allocatable - each.in_use
            left = (free < each.asked) & ~each.short  # NodeResourcesFit leaves these resources to devices
            for place in np.flatnonzero(np.isin(positions, [*self._nominated])).tolist():
                free[place] -= self._nominated[int(positions[place])].get(each.resource, 0)
            found.append(Room(each.resource, each.asked, free, (free < each.asked) & ~left))
        return found

    @cached_property
    def label_keys(self) -> Collection[str]:
        """The keys of the labels of up to 256 known nodes."""
        nodes = map(self.decision.node, self.some_of(self.decision.known, _LABELLED))
        return {key for node in nodes if node is not None for key in node.labels}

    @cached_property
    def leaving(self) -> Leaving:
        """The ways in which pods can leave their nodes."""
        return Leaving(self.decision.mirror, self.decision.pod)

    @cached_property
    def claim_users(self) -> Mapping[str, Sequence[Pod]]:
        """The pods that use each ReadWriteOncePod claim of the pod, see `claim_users`."""
        return claim_users(self.decision)

    @cached_property
    def _nominated(self) -> Mapping[int, Mapping[str, int]]:
        """Position -> the requests of the nominated pods that count on that node."""
        decision, mirror = self.decision, self.decision.mirror
        slots = [mirror.nodes.slots.get(name, NO_SLOT) for name in mirror.pending.nominated]
        found: dict[int, dict[str, int]] = {}
        for position in np.flatnonzero(np.isin(decision.batch.slots, [each for each in slots if each >= 0])).tolist():
            taken = found.setdefault(position, {})
            for pod in decision.nominated_beside(position):
                for resource, amount in {**mirror.counted(pod).requests, PODS: 1}.items():
                    taken[resource] = taken.get(resource, 0) + amount
        return found


Fix: TypeAlias = Callable[[Obstacles, int], Sequence[Step] | None]

_PLATFORM: Final = frozenset(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "os"))
"""Labels without which the pod's containers cannot run."""
_FACTS: Final = frozenset(
    {HOSTNAME, "kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/instance-type", *TOPOLOGY_LABELS}
)
"""Labels with facts about a node, such as its identity. A changed value would be wrong."""


def lower_requests(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Lower all requests that are too large for a node to the free amounts. None if the node has too many pods."""
    steps = []
    for each in obstacles.rooms(np.array([position])):
        if each.short[0]:
            if each.resource == PODS:
                return None
            steps.append(lowered(each.resource, each.asked, int(each.free[0])))
    return steps


def lowered(resource: str, asked: int, free: int) -> LowerRequest:
    """Return the step that lowers a request to the free amount, or to 0, which is never checked, if none is free."""
    to = max(free, 0)
    return LowerRequest(resource, asked - to, to)


def tolerate_taints(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Tolerate all taints of a node that keep the pod off, except for the one that uncordoning removes.

    A taint of a node's trouble is not tolerated: the node is to be repaired. None if the node is about to be removed.
    """
    decision = obstacles.decision
    cordoned = is_cordoned(decision, position)
    taints = [each for each in untolerated_taints(decision, position) if not (cordoned and each == UNSCHEDULABLE)]
    if any(map(is_leaving, taints)):
        return None
    troubles = tuple(dict.fromkeys(each.key for each in taints if is_trouble(each)))
    repaired = [RepairNode(decision.batch.names[position], troubles)] if troubles else []
    tolerated = [TolerateTaint(each.key, each.value, each.effect) for each in taints if not is_trouble(each)]
    return [*repaired, *tolerated]


def uncordon(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Uncordon the node."""
    return [Uncordon(obstacles.decision.batch.names[position])]


def drop_requirements(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Remove the requirements that a node does not meet. None if they are not the pod's, but the scheduler's.

    None also for the architecture and the operating system, because the containers would not run, and for the name of
    the node in a DaemonSet's pod: its controller asks for it in each pod that it makes (k8s.io/kubernetes
    pkg/controller/daemon/util/daemonset_util.go, ReplaceDaemonSetPodNodeNameNodeAffinity).
    """
    node, choices = obstacles.decision.node(position), choices_of(obstacles.decision)
    unmet = () if node is None else best_unmet(choices, node)
    if not unmet or any(each.source is Source.ADDED_AFFINITY for each in unmet):
        return None
    steps = [DropRequirement(told_of(each)) for each in unmet]
    if any(each.asked.key in _PLATFORM for each in steps):
        return None
    if obstacles.decision.pod.of_daemon_set and any(each.asked.key == NODE_NAME for each in steps):
        return None
    return steps


def label_node(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Set the labels that a node lacks. None for its name, and for labels that identify a node."""
    node, choices = obstacles.decision.node(position), choices_of(obstacles.decision)
    if node is None:
        return None
    wanted = best_alternatives(choices, node)
    steps: dict[str, Step] = {}
    for each in wanted:
        if each.met_by(node):
            continue
        if isinstance(each.requirement, FieldRequirement) or each.requirement.key in _FACTS:
            return None
        step = _label(each.requirement.key, wanted, node)
        if step is None:
            return None
        steps[step.key] = step
    return [*steps.values()] or None


def raise_max_skew(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Raise maxSkew of the pod's own constraints that a node fails. None if the node lacks the topology key."""
    steps: list[Step] = []
    node = obstacles.decision.node(position)
    for place, each, value_id in _failed_constraints(obstacles, position):
        if value_id == ABSENT or node is None:
            return None
        key, max_skew = each.constraint.topology_key, each.constraint.max_skew
        steps.append(RaiseMaxSkew(place, key, node.labels[key], max_skew, int(each.skews[value_id])))
    return steps or None


def relax_spread(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Make the pod's own constraints that a node fails preferences. None if the node fails none of them."""
    failed = _failed_constraints(obstacles, position)
    return [RelaxSpread(place, each.constraint.topology_key) for place, each, _ in failed] or None


def spread_less(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Raise maxSkew where that can help. Otherwise make the constraint a preference."""
    return raise_max_skew(obstacles, position) or relax_spread(obstacles, position)


def run_pod(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Run a pod on a node that all required affinity terms select. None if no such pod is possible."""
    decision = obstacles.decision
    node, terms = decision.node(position), decision.pod.affinity.required_affinity
    if node is None or not 0 < len(terms) <= MAX_TERMS or any(each.topology_key not in node.labels for each in terms):
        return None
    matchers = [term.matcher for term in terms]
    labels, namespace = _labels(matchers), _namespace(decision, matchers)
    if labels is None or namespace is None:
        return None
    domains = {term.topology_key: node.labels[term.topology_key] for term in terms}
    return [RunPod(namespace, labels, node.name, domains)]


FIXES: Final[Mapping[str, Fix]] = {
    NodeUnschedulable.name: uncordon,
    TaintToleration.name: tolerate_taints,
    NodeAffinity.name: drop_requirements,
    NodeResourcesFit.name: lower_requests,
    PodTopologySpread.name: spread_less,
    InterPodAffinity.name: run_pod,
}
"""Plugin -> the function that changes the pod, or the node's state, so that the plugin passes the node."""


def _label(key: str, wanted: Sequence[Asked], node: Node) -> SetLabel | None:
    asked = [
        each.requirement
        for each in wanted
        if not isinstance(each.requirement, FieldRequirement) and each.requirement.key == key
    ]
    labels = label_meeting(key, asked)
    return None if labels is None else SetLabel(node.name, key, labels.get(key), node.labels.get(key))


def _failed_constraints(obstacles: Obstacles, position: int) -> Iterator[tuple[int, MeasuredConstraint, int]]:
    """Yield the pod's own constraints that a node fails: their place in the pod, and the node's domain."""
    decision = obstacles.decision
    places = [place for place, each in enumerate(decision.pod.spread) if each.when_unsatisfiable == DO_NOT_SCHEDULE]
    measured = measured_constraints(decision, decision.batch.part(np.array([position])))
    for place, each in zip(places, measured, strict=False):  # default constraints have no index in the pod
        value_id = ABSENT if each.column is None else int(each.column.topology_ids()[0])
        if value_id == ABSENT or each.skews[value_id] > each.constraint.max_skew:
            yield place, each, value_id


def label_meeting(key: str, asked: Sequence[Requirement | Comparison]) -> Mapping[str, str] | None:
    """Return the label of a key that meets all requirements (empty: the label must be missing), or None if none can."""
    values: list[str | None] = []
    for each in asked:
        if isinstance(each, Comparison):
            values.append(str(each.bound + (1 if each.greater else -1)))
        elif each.operator is Operator.IN:
            values += each.values
    for value in (*values, None, _ANY_VALUE):
        labels = {} if value is None else {key: value}
        if all(each.matches(labels) for each in asked):
            return labels
    return None


def _labels(matchers: Sequence[PodMatcher]) -> Mapping[str, str] | None:
    """Return labels that all selectors match, or None if there are none, or the selectors are too large."""
    selectors = [each.selector for each in matchers]
    if any(each.nothing for each in selectors) or sum(each.size for each in selectors) > MAX_SELECTED:
        return None
    asked: dict[str, list[Requirement]] = {}
    for requirement in (each for selector in selectors for each in selector.requirements):
        asked.setdefault(requirement.key, []).append(requirement)
    found: dict[str, str] = {}
    for key, requirements in asked.items():
        label = label_meeting(key, requirements)
        if label is None:
            return None
        found |= label
    return found


def _namespace(decision: Diagnosis, matchers: Sequence[PodMatcher]) -> str | None:
    """Return a namespace that all terms select, preferably the pod's own, or None if none is found."""
    known = decision.mirror.namespaces
    named = {name for matcher in matchers for name in sorted(matcher.namespaces)[:_MAX_NAMESPACES]}
    candidates = dict.fromkeys((decision.pod.namespace, *sorted(named), *sorted(known)))
    for name in [*candidates][:_MAX_NAMESPACES]:
        labels = known.get(name, {})
        if all(name in each.namespaces or each.namespace_selector.matches(labels) for each in matchers):
            return name
    return None
