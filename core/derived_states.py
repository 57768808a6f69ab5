"""The states that plugins keep over a mirror, made before there is anything in it.

Made late, in a plugin's first request, they are read from all pods at once: 0.05 to 0.4 s each at 150,000 pods, in
which no other request is served. States of nodes alone take milliseconds, and may be made late.
"""

from collections.abc import Callable, Mapping
from typing import Final

from core.mirror.changes import Listener
from core.mirror.cluster import ClusterMirror
from core.plugins.imagelocality import ImageStates
from core.plugins.load.load_plugin import LoadPlugin
from core.plugins.nodeports import HostPortsInUse
from core.plugins.noderesources.columns import ResourceColumns
from core.plugins.nodevolumelimits import volumes_in_use as attached
from core.plugins.podtopologyspread.domains import NodeDomains
from core.plugins.podtopologyspread.pod_counts import PodCounts
from core.plugins.volumebinding.migrated_plugins import MigratedPlugins
from core.plugins.volumebinding.offers import Offers
from core.plugins.volumerestrictions import volumes_in_use as taken
from core.profile import COMPOSITES, Profile

DERIVED_STATES: Final[Mapping[str, tuple[Callable[[ClusterMirror], Listener], ...]]] = {
    "ImageLocality": (ImageStates,),
    "NodePorts": (HostPortsInUse,),
    "NodeResourcesBalancedAllocation": (ResourceColumns,),
    "NodeResourcesFit": (ResourceColumns,),
    "NodeVolumeLimits": (attached.VolumesInUse,),
    "PodTopologySpread": (PodCounts, NodeDomains),
    "VolumeBinding": (Offers, MigratedPlugins),
    "VolumeRestrictions": (taken.VolumesInUse,),
}
"""By the names of the plugins that are slow to begin."""


def derive_states(profile: Profile, mirror: ClusterMirror) -> None:
    """Make the states that the plugins of a profile need; events then keep them up to date."""
    for plugin in profile.plugins:
        for part in (plugin.name, *COMPOSITES.get(plugin.name, ())):
            for make in DERIVED_STATES.get(part, ()):
                mirror.derived(make)
        if isinstance(plugin, LoadPlugin):
            for make in plugin.states:
                mirror.derived(make)
