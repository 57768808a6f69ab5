"""Which plugins decide, and how much each score weighs."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from core.events import Kind
from core.framework.interface import AnyFilter, AnyScore, Plugin
from core.objects.node import Node
from core.objects.pod import Pod
from core.plugins.imagelocality import ImageLocality
from core.plugins.interpodaffinity.plugin import InterPodAffinity
from core.plugins.nodeaffinity import NodeAffinity
from core.plugins.nodeconditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from core.plugins.nodename import NodeName
from core.plugins.nodeports import NodePorts
from core.plugins.noderesources.balanced_allocation import NodeResourcesBalancedAllocation
from core.plugins.noderesources.fit import NodeResourcesFit
from core.plugins.nodeunschedulable import NodeUnschedulable
from core.plugins.nodevolumelimits.plugin import NodeVolumeLimits
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.serviceaffinity import ServiceAffinity
from core.plugins.tainttoleration import TaintToleration
from core.plugins.volumebinding.plugin import VolumeBinding
from core.plugins.volumerestrictions.plugin import VolumeRestrictions
from core.plugins.volumezone import VolumeZone

PLUGINS: Final[Mapping[str, Callable[[], Plugin]]] = {
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "InterPodAffinity": InterPodAffinity,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "PodTopologySpread": PodTopologySpread,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "ImageLocality": ImageLocality,
    "VolumeRestrictions": VolumeRestrictions,
    "VolumeZone": VolumeZone,
    "ServiceAffinity": ServiceAffinity,
    "CheckNodeCondition": CheckNodeCondition,
    "CheckNodeMemoryPressure": CheckNodeMemoryPressure,
    "CheckNodeDiskPressure": CheckNodeDiskPressure,
    "CheckNodePIDPressure": CheckNodePIDPressure,
}
"""Every plugin by its name, with its default arguments."""


class Profile(msgspec.Struct, frozen=True):
    """The enabled predicates in the order in which they are asked, and the enabled scores with weights (>= 1)."""

    filters: tuple[AnyFilter, ...]
    scores: tuple[tuple[AnyScore, int], ...]

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """All plugins; one that filters and scores is there once."""
        plugins: tuple[Plugin, ...] = (*self.filters, *(plugin for plugin, _ in self.scores))
        return tuple({id(plugin): plugin for plugin in plugins}.values())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that decisions follow from: nodes and pods always, then the others by name."""
        read = {kind for plugin in self.plugins for kind in plugin.kinds}
        return (Node, Pod, *sorted(read - {Node, Pod}, key=lambda kind: kind.__name__))


def affinity_profile(
    *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
) -> Profile:
    """Return the profile of a registration beside a scheduler: inter-pod affinity and nothing else."""
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=hard_pod_affinity_weight,
        ignore_preferred_terms_of_existing_pods=ignore_preferred_terms_of_existing_pods,
    )
    return Profile(filters=(plugin,), scores=((plugin, 1),))
