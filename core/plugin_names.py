"""The former names of plugins: predicates, priorities and removed plugins. Present names may be replaced by them.

Source: k8s.io/kubernetes v1.13 pkg/scheduler/algorithm/predicates/predicates.go, v1.17
pkg/scheduler/algorithm/priorities/priorities.go, and v1.18 pkg/scheduler/framework/plugins/legacy_registry.go, which
maps them to plugins. Names that appear only in the design document of equivalence classes are included.

The removed plugins: v1.30 pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go. Each counted the volumes of one
in-tree type on a node, unless the type was migrated to its CSI driver. NodeVolumeLimits counts migrated volumes as
volumes of the driver. v1.31 took them out of the default plugins and rejects configurations that enable them
(pkg/scheduler/apis/config/validation/validation.go, invalidPluginsByVersion). v1.32 does not have them
(kubernetes#124500, kubernetes#124003).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec


class Side(Enum):
    """The use of a plugin."""

    FILTER = "filter"
    SCORE = "score"


class FormerName(msgspec.Struct, frozen=True):
    """A former name: the present plugin, one side of it, and a strategy if it scores by resources."""

    plugin: str
    side: Side
    scoring_strategy: str = ""


_PREDICATES: Final = {
    "PodFitsResources": "NodeResourcesFit",
    "PodFitsHost": "NodeName",
    "HostName": "NodeName",
    "PodFitsHostPorts": "NodePorts",
    "PodMatchNodeSelector": "NodeAffinity",
    "MatchNodeSelector": "NodeAffinity",
    "MatchInterPodAffinity": "InterPodAffinity",
    "PodToleratesNodeTaints": "TaintToleration",
    "CheckNodeUnschedulable": "NodeUnschedulable",
    "NoDiskConflict": "VolumeRestrictions",
    "MaxEBSVolumeCount": "NodeVolumeLimits",
    "MaxGCEPDVolumeCount": "NodeVolumeLimits",
    "MaxAzureDiskVolumeCount": "NodeVolumeLimits",
    "MaxCinderVolumeCount": "NodeVolumeLimits",
    "MaxPDVolumeCountPredicate": "NodeVolumeLimits",
    "MaxCSIVolumeCount": "NodeVolumeLimits",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits",
    "NoVolumeZoneConflict": "VolumeZone",
    "CheckVolumeBinding": "VolumeBinding",
    "EvenPodsSpread": "PodTopologySpread",
    "CheckServiceAffinity": "ServiceAffinity",
}
_REMOVED_PLUGINS: Final = {
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
}
"""Plugins that only filtered."""
_PRIORITIES: Final = {
    "TaintTolerationPriority": "TaintToleration",
    "NodeAffinityPriority": "NodeAffinity",
    "InterPodAffinityPriority": "InterPodAffinity",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "ImageLocalityPriority": "ImageLocality",
}
_STRATEGIES: Final = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
}

FORMER_NAMES: Final[Mapping[str, FormerName]] = {
    **{name: FormerName(plugin, Side.FILTER) for name, plugin in (_PREDICATES | _REMOVED_PLUGINS).items()},
    **{name: FormerName(plugin, Side.SCORE) for name, plugin in _PRIORITIES.items()},
    **{name: FormerName("NodeResourcesFit", Side.SCORE, strategy) for name, strategy in _STRATEGIES.items()},
}
"""Former name -> its meaning."""


def todays_name(name: str) -> str:
    """Return the present name of a plugin, which is used in all output."""
    former = FORMER_NAMES.get(name)
    return name if former is None else former.plugin
