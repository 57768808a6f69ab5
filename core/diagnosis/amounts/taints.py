"""Taints that keep the pod off, as TaintToleration judges them, and cordoned nodes."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from core.diagnosis.diagnosis import Diagnosis
from core.mirror.topology import BoolArray
from core.objects.pod import Taint
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.tainttoleration import DO_NOT_SCHEDULE, TaintsAndTolerations, TaintToleration

EXAMPLES: Final = 3


class NodeTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint that keeps the pod off a node: an untolerated NoSchedule or NoExecute taint."""

    key: str
    value: str
    effect: str


class TaintInCluster(NodeTaint, frozen=True, gc=False):
    """A taint that keeps the pod off, with the nodes that have it."""

    nodes: int
    examples: Sequence[str]


class CordonedNodes(msgspec.Struct, frozen=True, gc=False):
    """The nodes that NodeUnschedulable rejects (spec.unschedulable)."""

    nodes: int
    examples: Sequence[str]


def untolerated_taints(decision: Diagnosis, position: int) -> Sequence[Taint]:
    """Return the taints of a node that keep the pod off, in the order of the node's spec."""
    state, node = decision.state_of(TaintToleration.name), decision.node(position)
    if not isinstance(state, TaintsAndTolerations) or node is None:
        return ()
    return state.untolerated(node.taints, DO_NOT_SCHEDULE)


def taints_on_node(decision: Diagnosis, position: int) -> Sequence[NodeTaint]:
    """Return the taints of a node that keep the pod off."""
    return [NodeTaint(each.key, each.value, each.effect) for each in untolerated_taints(decision, position)]


def is_cordoned(decision: Diagnosis, position: int) -> bool:
    """Return whether NodeUnschedulable rejects a node."""
    refused = decision.refusing.get(NodeUnschedulable.name)
    return refused is not None and bool(refused[position])


def taints_in_cluster(decision: Diagnosis, limit: int) -> Sequence[TaintInCluster]:
    """Return up to `limit` taints that keep the pod off some node, ordered by number of nodes, most first."""
    state = decision.state_of(TaintToleration.name)
    if not isinstance(state, TaintsAndTolerations):
        return ()
    values, places = state.taints.places(decision.batch)
    numbers = np.bincount(places, minlength=len(values))
    nodes: dict[Taint, int] = {}
    at: dict[Taint, list[int]] = {}
    for place in np.flatnonzero(numbers).tolist():
        for taint in state.untolerated(values[place], DO_NOT_SCHEDULE):
            nodes[taint] = nodes.get(taint, 0) + int(numbers[place])
            at.setdefault(taint, []).append(place)
    most = sorted(nodes, key=lambda taint: (-nodes[taint], taint))[:limit]
    return [
        TaintInCluster(each.key, each.value, each.effect, nodes[each], _examples(decision, np.isin(places, at[each])))
        for each in most
    ]


def cordoned_in_cluster(decision: Diagnosis) -> CordonedNodes | None:
    """Return the cordoned nodes, or None if NodeUnschedulable rejects none."""
    refused = decision.refusing.get(NodeUnschedulable.name)
    if refused is None:
        return None
    return CordonedNodes(int(np.count_nonzero(refused)), _examples(decision, refused))


def _examples(decision: Diagnosis, which: BoolArray) -> list[str]:
    return [decision.batch.names[position] for position in np.flatnonzero(which)[:EXAMPLES].tolist()]
