"""The measurements of the filter plugins: on one node of a decision, and summarised over its nodes."""

from collections.abc import Sequence

import msgspec
import numpy as np

from core.diagnosis.amounts.claims import ClaimFact, claims_without_volume
from core.diagnosis.amounts.exclusion import exclusion
from core.diagnosis.amounts.requirements import (
    CordonedNodes,
    NearestNode,
    NodeTaint,
    RequirementInCluster,
    TaintInCluster,
    UnmetRequirement,
    cordoned_in_cluster,
    impossible_terms,
    is_cordoned,
    nearest_node,
    requirements_in_cluster,
    taints_in_cluster,
    taints_on_node,
    unmet_on_node,
)
from core.diagnosis.amounts.resources import (
    PortInCluster,
    PortOnNode,
    ResourceInCluster,
    ResourceOnNode,
    WaitingResize,
    overflows,
    ports_in_cluster,
    ports_on_node,
    resources_in_cluster,
    resources_on_node,
    waiting_resizes,
)
from core.diagnosis.amounts.spread import SpreadInCluster, SpreadOnNode, spread_in_cluster, spread_on_node
from core.diagnosis.amounts.volumes import (
    BoundElsewhere,
    BoundElsewhereInCluster,
    DriverInCluster,
    DriverOnNode,
    InUse,
    bound_elsewhere_in_cluster,
    bound_elsewhere_on_node,
    claims_in_use,
    disks_on_node,
    drivers_in_cluster,
    drivers_on_node,
)
from core.diagnosis.diagnosis import Diagnosis
from core.mirror.node_info import NO_SLOT
from core.mirror.node_values import RESOURCES, NodeUsage
from core.objects.node import NodeMetrics
from core.plugins.load.load_plugin import LoadPlugin
from core.plugins.nodedeclaredfeatures import NeededFeatures, NodeDeclaredFeatures
from core.plugins.nodename import NodeName, RequestedNode


class MeasuredResource(msgspec.Struct, frozen=True, gc=False):
    """The usage of one resource: cpu in millicores, memory in bytes."""

    resource: str
    average: int
    deviation: int | None
    """Standard deviation in the window. None if the source has one sample."""
    capacity: int
    """The capacity of the node, else its allocatable amount. 0 if the node reports neither."""


class UsageOnNode(msgspec.Struct, frozen=True, gc=False):
    """The last measurement of a node."""

    measured_at: int | None
    """Seconds since 1970. None if the node was not measured, so the plugins ignore it."""
    too_old: bool
    """Whether the measurement is too old, so the plugins ignore it."""
    resources: Sequence[MeasuredResource]
    pods_not_covered: int
    """Pods that are not measured yet. The plugins add their predicted usage."""


class UsageInCluster(msgspec.Struct, frozen=True, gc=False):
    """The nodes by measurement. The plugins ignore nodes without a usable one."""

    measured: int
    too_old: int
    not_measured: int


def usage_on_node(decision: Diagnosis, position: int) -> UsageOnNode | None:
    """Return the measurement of a node, or None if no plugin follows node load."""
    plugin = _load_plugin(decision)
    node = decision.node(position)
    if plugin is None or node is None:
        return None
    slot = int(decision.batch.slots[position])
    metrics = decision.mirror.objects(NodeMetrics).get(node.name)
    if metrics is None or slot == NO_SLOT:
        return UsageOnNode(None, too_old=False, resources=(), pods_not_covered=0)
    resources = []
    for name in RESOURCES:
        usage = getattr(metrics, name)
        if usage is not None:
            capacity = node.capacity.get(name, node.allocatable.get(name, 0))
            resources.append(MeasuredResource(name, usage.average, usage.deviation, capacity))
    pods = plugin.unmeasured(decision.mirror).pods(slot)
    return UsageOnNode(metrics.measured_at, metrics.too_old, resources, pods)


def usage_in_cluster(decision: Diagnosis) -> UsageInCluster | None:
    """Return how many nodes have a usable measurement, or None if no plugin follows node load."""
    if _load_plugin(decision) is None:
        return None
    usage = decision.mirror.derived(NodeUsage)
    measured = np.zeros(len(decision.batch), np.bool_)
    for resource in range(len(RESOURCES)):
        measured |= usage.of(resource, decision.batch).measured
    too_old = int(np.count_nonzero(usage.outdated(decision.batch)))
    number = int(np.count_nonzero(measured))
    return UsageInCluster(number, too_old, len(decision.batch) - number - too_old)


def _load_plugin(decision: Diagnosis) -> LoadPlugin | None:
    return next((each for each in decision.profile.plugins if isinstance(each, LoadPlugin)), None)


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
    """TargetLoadPacking, LoadVariationRiskBalancing, LoadAware: the last measurement. None if none is enabled."""


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
            missing_features=_missing_on_node(decision, position),
            usage=usage_on_node(decision, position),
        )


def _missing_on_node(decision: Diagnosis, position: int) -> Sequence[str]:
    state, node = decision.state_of(NodeDeclaredFeatures.name), decision.node(position)
    if not isinstance(state, NeededFeatures) or node is None:
        return ()
    return sorted(state.needed - node.declared_features)


class FeatureInCluster(msgspec.Struct, frozen=True, gc=False):
    """A feature that the pod needs, with the number of nodes that do not declare it."""

    feature: str
    nodes: int


class ClusterAmounts(msgspec.Struct, frozen=True, gc=False):
    """The measurements of the plugins that apply to the pod, except for inter-pod affinity, which is in the terms."""

    resources: Sequence[ResourceInCluster] = ()
    """NodeResourcesFit: `pods` first, then the resources that the pod requests."""
    overflows: Sequence[str] = ()
    """NodeResourcesFit: requests that no int64 holds."""
    resizes: Sequence[WaitingResize] = ()
    """NodeResourcesFit: pods on nodes that hold more than they use, or more than they ask, until they are resized."""
    taints: Sequence[TaintInCluster] = ()
    """TaintToleration: the taints that keep the pod off some node."""
    cordoned: CordonedNodes | None = None
    """NodeUnschedulable. None if it rejects no node."""
    requirements: Sequence[RequirementInCluster] = ()
    """NodeAffinity: the requirements that exclude some node."""
    impossible: Sequence[str] = ()
    """NodeAffinity: parts of the pod's required node affinity that no node can match."""
    nearest: NearestNode | None = None
    """NodeAffinity: the node with the fewest unmet requirements. None if NodeAffinity rejects no node."""
    ports: Sequence[PortInCluster] = ()
    """NodePorts: ports in use that conflict with the pod's."""
    spread: Sequence[SpreadInCluster] = ()
    """PodTopologySpread: the pod's constraints."""
    bound_elsewhere: Sequence[BoundElsewhereInCluster] = ()
    """VolumeBinding and VolumeZone: claims whose volumes some node cannot reach."""
    drivers: Sequence[DriverInCluster] = ()
    """NodeVolumeLimits: the CSI drivers of the pod's volumes for which some node has a limit."""
    claims: Sequence[ClaimFact] = ()
    """VolumeBinding and VolumeZone: claims without a volume, if such a plugin rejects some node."""
    claims_in_use: Sequence[InUse] = ()
    """VolumeRestrictions: the pod's ReadWriteOncePod claims that other pods use."""
    node_name: str = ""
    """NodeName: the only node that the pod may be on."""
    node_is_known: bool = True
    """NodeName: whether there is a node of this name."""
    missing_features: Sequence[FeatureInCluster] = ()
    """NodeDeclaredFeatures: the needed features that some node does not declare."""
    exclusion: str = ""
    """Two rules that exclude each other, if no single rule rejects every node. Empty otherwise."""
    usage: UsageInCluster | None = None
    """TargetLoadPacking, LoadVariationRiskBalancing, LoadAware: nodes by measurement. None if none is enabled."""


def cluster_amounts(decision: Diagnosis, limit: int) -> ClusterAmounts:
    """Return the amounts, with up to `limit` taints, requirements, ports, domains and pods each."""
    state = decision.state_of(NodeName.name)
    node_name = state.name if isinstance(state, RequestedNode) else ""
    with decision.mirror.work.uncharged():  # the decision was already charged for this work
        return ClusterAmounts(
            resources=resources_in_cluster(decision),
            overflows=overflows(decision),
            resizes=waiting_resizes(decision, limit),
            taints=taints_in_cluster(decision, limit),
            cordoned=cordoned_in_cluster(decision),
            requirements=requirements_in_cluster(decision, limit),
            impossible=impossible_terms(decision, limit),
            nearest=nearest_node(decision),
            ports=ports_in_cluster(decision, limit),
            spread=spread_in_cluster(decision, limit),
            bound_elsewhere=bound_elsewhere_in_cluster(decision),
            drivers=drivers_in_cluster(decision),
            claims=claims_without_volume(decision),
            claims_in_use=claims_in_use(decision, limit),
            node_name=node_name,
            node_is_known=not node_name or node_name in decision.mirror.nodes.slots,
            missing_features=_missing_features(decision),
            exclusion=exclusion(decision),
            usage=usage_in_cluster(decision),
        )


def _missing_features(decision: Diagnosis) -> Sequence[FeatureInCluster]:
    state = decision.state_of(NodeDeclaredFeatures.name)
    if not isinstance(state, NeededFeatures):
        return ()
    found = []
    for feature in sorted(state.needed):

        def lacks(declared: frozenset[str] | None, wanted: str = feature) -> bool:
            return wanted not in (declared or ())

        nodes = int(np.count_nonzero(state.declared.judged(decision.batch, lacks)))
        if nodes:
            found.append(FeatureInCluster(feature, nodes))
    return found
