"""NodeName: a pod that names a node passes only there.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodename/node_name.go.
"""

from typing import Final

import msgspec
import numpy as np

from core.explaining.decision import Decision
from core.explaining.explained import Event, Explained, Measured
from core.framework.interface import SKIP, SUCCESS, Code, FilterPlugin, Status, Verdicts
from core.mirror.cluster import ClusterMirror
from core.mirror.node_info import NO_SLOT, NodeBatch
from core.objects.pod import Pod
from core.releases.release import Rules

_STATUSES: Final = (
    SUCCESS,
    Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match the requested node name",)),
)


class RequestedNode(msgspec.Struct, frozen=True, gc=False):
    """The node that a pod names, with its slot if it is known. Stale after the next event."""

    name: str
    slot: int


def _requested(decision: Decision) -> str:
    state = decision.state_of(NodeName.name)
    return "" if state is None else str(state.name)


class NodeName(Explained, FilterPlugin[RequestedNode]):
    """Filters by `spec.nodeName`. A pod without one passes everywhere."""

    name = "NodeName"
    former_filters = ("PodFitsHost", "HostName")
    points = ("filter",)
    class_fields = ("node_name",)
    invalidated_by = ()  # no update of a node changes its name
    keeps_off = "spec.nodeName"
    events = (Event("Node", ("Add",)),)
    measured = Measured(
        in_cluster={
            "node_name": lambda decision, _: _requested(decision),
            "node_is_known": lambda decision, _: _requested(decision) in {"", *decision.mirror.nodes.slots},
        }
    )

    def pre_filter(self, mirror: ClusterMirror, pod: Pod) -> tuple[Status, RequestedNode | None]:
        """Look up the node. SKIP for a pod that names none."""
        if not pod.node_name:
            return SKIP, None
        return SUCCESS, RequestedNode(pod.node_name, mirror.nodes.slots.get(pod.node_name, NO_SLOT))

    def filter(self, state: RequestedNode, batch: NodeBatch) -> Verdicts:
        """Reject every node except the named one."""
        codes = (batch.slots != state.slot).astype(np.uint8)  # all strangers have NO_SLOT, corrected below
        for position in batch.unmirrored:
            codes[position] = batch.names[position] != state.name
        return Verdicts(codes, _STATUSES)

    def is_first_in(self, rules: Rules) -> bool:
        """Return whether it comes before NodeUnschedulable."""
        return rules.node_name_first

    def name_needed(self, decision: Decision) -> str:
        """Return the name that the pod asks for."""
        return decision.pod.node_name
