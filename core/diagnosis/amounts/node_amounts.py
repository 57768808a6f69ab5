"""The measurements of the filter plugins on one node of a decision."""

from collections.abc import Sequence

import msgspec

from core.diagnosis.amounts.ports import PortOnNode, ports_on_node
from core.diagnosis.amounts.requirements import UnmetRequirement, unmet_on_node
from core.diagnosis.amounts.resources import ResourceOnNode, resources_on_node
from core.diagnosis.amounts.spread import SpreadOnNode, spread_on_node
from core.diagnosis.amounts.taints import NodeTaint, is_cordoned, taints_on_node
from core.diagnosis.amounts.usage import UsageOnNode, usage_on_node
from core.diagnosis.amounts.volumes import (
    BoundElsewhere,
    DriverOnNode,
    InUse,
    bound_elsewhere_on_node,
    disks_on_node,
    drivers_on_node,
)
from core.diagnosis.diagnosis import Diagnosis
from core.plugins.nodedeclaredfeatures import NeededFeatures, NodeDeclaredFeatures


class NodeAmounts(msgspec.Struct, frozen=True, gc=False):
    """The measurements of the plugins that apply to the pod, except for inter-pod affinity, which is in the terms.

    An unknown node has no amounts.
    """

    resources: Sequence[ResourceOnNode] = ()
    """NodeResourcesFit: `pods` first, then the resources that the pod requests."""
    taints: Sequence[NodeTaint] = ()
    """TaintToleration: the taints that keep the pod off."""
    cordoned: bool = False
    """NodeUnschedulable."""
    requirements: Sequence[UnmetRequirement] = ()
    """NodeAffinity: the unmet requirements. Of several terms, only the one with the fewest is included."""
    ports: Sequence[PortOnNode] = ()
    """NodePorts: conflicting ports, with the pods that hold them."""
    spread: Sequence[SpreadOnNode] = ()
    """PodTopologySpread: the pod's constraints."""
    bound_elsewhere: Sequence[BoundElsewhere] = ()
    """VolumeBinding and VolumeZone: claims whose volumes the node cannot reach."""
    drivers: Sequence[DriverOnNode] = ()
    """NodeVolumeLimits: the CSI drivers of the pod's volumes."""
    disks: Sequence[InUse] = ()
    """VolumeRestrictions: disks of the pod that pods of the node have mounted."""
    missing_features: Sequence[str] = ()
    """NodeDeclaredFeatures: the needed features that the node does not declare."""
    usage: UsageOnNode | None = None
    """TargetLoadPacking, LoadVariationRiskBalancing, LoadAware: the last measurement.

    None if no such plugin is enabled.
    """


def node_amounts(decision: Diagnosis, position: int, limit: int) -> NodeAmounts:
    """Return the amounts of one node, with up to `limit` pods and ports each."""
    if decision.node(position) is None:
        return NodeAmounts()
    with decision.mirror.work.uncharged():  # the decision was already charged for this work
        return NodeAmounts(
            resources=resources_on_node(decision, position),
            taints=taints_on_node(decision, position),
            cordoned=is_cordoned(decision, position),
            requirements=unmet_on_node(decision, position),
            ports=ports_on_node(decision, position, limit),
            spread=spread_on_node(decision, position),
            bound_elsewhere=bound_elsewhere_on_node(decision, position),
            drivers=drivers_on_node(decision, position),
            disks=disks_on_node(decision, position, limit),
            missing_features=_missing_features(decision, position),
            usage=usage_on_node(decision, position),
        )


def _missing_features(decision: Diagnosis, position: int) -> Sequence[str]:
    state, node = decision.state_of(NodeDeclaredFeatures.name), decision.node(position)
    if not isinstance(state, NeededFeatures) or node is None:
        return ()
    return sorted(state.needed - node.declared_features)
