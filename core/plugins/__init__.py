"""The plugins, each in a module or a folder of its own with all that is particular to it. This is the list of them."""

from collections.abc import Mapping
from typing import Final

from core.framework.interface import FilterPlugin, Plugin, ScorePlugin
from core.plugins import in_tree, nodeconditions
from core.plugins.dynamicresources.plugin import DynamicResources
from core.plugins.dynamicresources.totals import DeviceTotals
from core.plugins.imagelocality import ImageLocality
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.load.load_plugin import LoadVariationRiskBalancing, TargetLoadPacking
from core.plugins.load.loadaware import LoadAware
from core.plugins.nodeaffinity.plugin import NodeAffinity
from core.plugins.nodedeclaredfeatures import NodeDeclaredFeatures
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.noderesources.strategies import NodeResourcesBalancedAllocation
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.serviceaffinity import ServiceAffinity
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions import VolumeRestrictions
from core.plugins.volumezone import VolumeZone

DEFAULTS: Final[Mapping[str, type[Plugin]]] = {
    each.name: each
    for each in (
        in_tree.SchedulingGates,
        in_tree.PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        DynamicResources,
        in_tree.DefaultPreemption,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        in_tree.DefaultBinder,
        NodeDeclaredFeatures,
    )
}
"""kube-scheduler's default plugins by name, in its order. Kindred lacks those of `in_tree`."""
_OTHERS: Final[tuple[type[Plugin], ...]] = (
    ServiceAffinity,
    nodeconditions.CheckNodeCondition,
    nodeconditions.CheckNodeMemoryPressure,
    nodeconditions.CheckNodeDiskPressure,
    nodeconditions.CheckNodePIDPressure,
    TargetLoadPacking,
    LoadVariationRiskBalancing,
    LoadAware,
)
PLUGINS: Final[Mapping[str, type[Plugin]]] = {
    each.name: each
    for each in (*DEFAULTS.values(), *_OTHERS)
    if issubclass(each, FilterPlugin | ScorePlugin) and each is not DynamicResources
}
"""Every plugin that a profile may have, kube-scheduler's in its order. Made without arguments, a plugin has upstream's
defaults."""
DEVICES: Final = DynamicResources
"""The plugin that allocates devices in kube-scheduler. What it has allocated is known there alone until it is bound, so
no verdict in a response depends on devices. Explanations judge by it. Its score ranks the nodes that kube-scheduler's
own plugin has passed, see core/device_ranking.py."""
DEVICE_TOTALS: Final = DeviceTotals
"""Counts the devices of nodes for scores by resources."""
EXPLAINED: Final[Mapping[str, type[Plugin]]] = {**PLUGINS, DEVICES.name: DEVICES}
"""Every plugin that explanations judge by."""
