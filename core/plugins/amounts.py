"""What all plugins together measured for a pod: on one node of a decision, and summarised over its nodes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol

import msgspec

from core.explaining.bound_claims import BoundElsewhere, BoundElsewhereInCluster
from core.explaining.decision import Decision
from core.explaining.explained import Counts
from core.explaining.requirements import UnmetRequirement
from core.framework.claims import named_claims
from core.plugins.load.explaining import UsageInCluster, UsageOnNode
from core.plugins.nodeaffinity.explaining import NearestNode, RequirementInCluster
from core.plugins.nodedeclaredfeatures import FeatureInCluster
from core.plugins.nodeports import PortInCluster, PortOnNode
from core.plugins.noderesources.explaining import ResourceInCluster, ResourceOnNode, WaitingResize
from core.plugins.nodeunschedulable import CordonedNodes
from core.plugins.nodevolumelimits.plugin import DriverInCluster, DriverOnNode
from core.plugins.podtopologyspread.explaining import SpreadInCluster, SpreadOnNode
from core.plugins.tainttoleration import NodeTaint, TaintInCluster
from core.plugins.volumebinding.claim_facts import ClaimFact
from core.plugins.volumerestrictions import InUse


class _InWords(Protocol):
    @property
    def text(self) -> str: ...


def _texts(*facts: Iterable[_InWords]) -> Iterator[str]:
    return (each.text for each in chain.from_iterable(facts))


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
    facts: Sequence[str] = ()
    """Any plugin: what it measured, in words, names of pods as PodText."""
    counts: Sequence[Counts] = ()
    """Any plugin: the numbers in its `facts`, for programs."""

    def lines(self, when: Callable[[int], str]) -> Iterator[str]:
        """Yield the obstacles in words, plugin by plugin. `when` writes seconds since 1970 as a time."""
        yield from (each.text for each in self.resources if each.missing)
        if self.taints:
            yield f"taints that are not tolerated: {', '.join(each.text for each in self.taints)}"
        if self.cordoned:
            yield "cordoned"
        if self.requirements:
            yield f"lacks {', '.join(each.text for each in self.requirements)}"
        yield from _texts(self.ports, self.spread, self.bound_elsewhere, self.drivers)
        yield from (f"disk {each.name}: in use by {', '.join(each.pods) or 'pods'}" for each in self.disks)
        if self.missing_features:
            yield f"does not declare {', '.join(self.missing_features)}"
        if self.usage is not None:
            yield self.usage.text(when)
        yield from self.facts


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
    facts: Sequence[str] = ()
    """As in NodeAmounts."""
    counts: Sequence[Counts] = ()
    """As in NodeAmounts."""

    def lines(self, nodes: int) -> Iterator[str]:
        """Yield the obstacles on `nodes` nodes in words, plugin by plugin, the devices first: few nodes have some."""
        if self.exclusion:
            yield self.exclusion
        yield from self.facts
        yield from (each.text for each in self.resources if each.nodes < nodes)
        yield from (f"the request of {each}" for each in self.overflows)
        cordoned = () if self.cordoned is None else (self.cordoned,)
        yield from _texts(self.resizes, self.taints, cordoned, self.requirements)
        for impossible in self.impossible:
            yield f"required node affinity that no node can match, whatever its labels: {impossible}"
        if self.nearest is not None:
            yield self.nearest.text
        spread = (each for each in self.spread if each.nodes_refused or each.nodes_without_key)
        yield from _texts(self.ports, spread, self.bound_elsewhere, self.claims, self.drivers)
        for used in self.claims_in_use:
            yield f"ReadWriteOncePod claim {used.name}: in use by {', '.join(used.pods) or 'other pods'}"
        if self.node_name:
            yield f"spec.nodeName: only {self.node_name}{'' if self.node_is_known else ', which does not exist'}"
        yield from _texts(self.missing_features)
        if self.usage is not None and (self.usage.too_old or self.usage.not_measured):
            yield self.usage.text


_ADDED_UP: Final = ("bound_elsewhere", "facts", "counts")


def merged(decision: Decision, facts: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the facts of all plugins. Of one fact of several the first counts; claims, words, counts add up."""
    found: dict[str, Any] = {}
    for name, fact in facts:
        if name in _ADDED_UP:
            found[name] = (*found.get(name, ()), *fact)
        else:
            found.setdefault(name, fact)
    order = [f"{decision.pod.namespace}/{each.name}" for each in named_claims(decision.pod)]
    found["bound_elsewhere"] = sorted(found.get("bound_elsewhere", ()), key=lambda each: order.index(each.claim))
    return found
