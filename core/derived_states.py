"""States that plugins derive from a mirror, created while the mirror is still empty.

A state that is created at a plugin's first request must read all pods: 0.05 to 0.4 s each at 150,000 pods, during which
no other request is served. States of nodes alone take milliseconds, so they may be created late.
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
"""By plugin. Only plugins whose states are slow to create are listed."""


def derive_states(profile: Profile, mirror: ClusterMirror) -> None:
    """Create the states that the plugins of a profile need. Events then keep the states up to date."""
    for plugin in profile.plugins:
        for part in (plugin.name, *COMPOSITES.get(plugin.name, ())):
            for make in DERIVED_STATES.get(part, ()):
                mirror.derived(make)
        if isinstance(plugin, LoadPlugin):
            for make in plugin.states:
                mirror.derived(make)
