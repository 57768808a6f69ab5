"""For each plugin, the steps after which it passes one node, or None if no step of the kind helps there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from core.diagnosis.amounts.requirements import (
    Asked,
    Source,
    best_alternatives,
    best_unmet,
    choices_of,
    told_of,
)
from core.diagnosis.amounts.spread import measured_constraints
from core.diagnosis.amounts.taints import is_cordoned, untolerated_taints
from core.diagnosis.remedies.label_values import label_meeting
from core.diagnosis.remedies.obstacles import Obstacles
from core.diagnosis.remedies.pod_proposals import change_host_ports, drop_node_name, relax_spread, run_pod
from core.diagnosis.remedies.remedy import (
    DropRequirement,
    LowerRequest,
    RaiseMaxSkew,
    SetLabel,
    Step,
    TolerateTaint,
    Uncordon,
)
from core.diagnosis.remedies.supposing import HOSTNAME, UNSCHEDULABLE
from core.mirror.topology import ABSENT
from core.objects.affinity import FieldRequirement
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.columns import PODS
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.tainttoleration import TaintToleration

Fix: TypeAlias = Callable[[Obstacles, int], Sequence[Step] | None]

_FACTS: Final = frozenset(
    {
        HOSTNAME,
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
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
    """Tolerate all taints of a node that keep the pod off, except for the one that uncordoning removes."""
    decision = obstacles.decision
    cordoned = is_cordoned(decision, position)
    return [
        TolerateTaint(each.key, each.value, each.effect)
        for each in untolerated_taints(decision, position)
        if not (cordoned and each == UNSCHEDULABLE)
    ]


def uncordon(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Uncordon the node."""
    return [Uncordon(obstacles.decision.batch.names[position])]


def drop_requirements(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Remove the requirements that a node does not meet. None if they are the scheduler's, not the pod's."""
    node, choices = obstacles.decision.node(position), choices_of(obstacles.decision)
    unmet = () if node is None else best_unmet(choices, node)
    if not unmet or any(each.source is Source.ADDED_AFFINITY for each in unmet):
        return None
    return [DropRequirement(told_of(each)) for each in unmet]


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
    decision = obstacles.decision
    places = [place for place, each in enumerate(decision.pod.spread) if each.when_unsatisfiable == DO_NOT_SCHEDULE]
    steps: list[Step] = []
    measured = measured_constraints(decision, decision.batch.part(np.array([position])))
    for place, each in zip(places, measured, strict=False):  # default constraints have no index in the pod
        value_id = ABSENT if each.column is None else int(each.column.topology_ids()[0])
        if value_id == ABSENT:
            return None
        key, skew, max_skew = each.constraint.topology_key, int(each.skews[value_id]), each.constraint.max_skew
        node = decision.node(position)
        if skew > max_skew and node is not None:
            steps.append(RaiseMaxSkew(place, key, node.labels[key], max_skew, skew))
    return steps or None


def spread_less(obstacles: Obstacles, position: int) -> Sequence[Step] | None:
    """Raise maxSkew where that can help. Otherwise make the constraint a preference."""
    return raise_max_skew(obstacles, position) or relax_spread(obstacles, position)


FIXES: Final[Mapping[str, Fix]] = {
    NodeUnschedulable.name: uncordon,
    TaintToleration.name: tolerate_taints,
    NodeAffinity.name: drop_requirements,
    NodeResourcesFit.name: lower_requests,
    PodTopologySpread.name: spread_less,
    NodeName.name: drop_node_name,
    NodePorts.name: change_host_ports,
    InterPodAffinity.name: run_pod,
}
"""Plugin -> the function that changes the pod, or the node's state, so that the plugin passes the node."""


def _label(key: str, wanted: Sequence[Asked], node: Node) -> SetLabel | None:
    """Return the label that meets all requirements on a key, or None if no value can."""
    asked = [
        each.requirement
        for each in wanted
        if not isinstance(each.requirement, FieldRequirement) and each.requirement.key == key
    ]
    labels = label_meeting(key, asked)
    return None if labels is None else SetLabel(node.name, key, labels.get(key), node.labels.get(key))
