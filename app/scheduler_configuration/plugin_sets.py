"""The plugins of a scheduler profile at each extension point, with their weights.

Source: k8s.io/kubernetes v1.36 pkg/scheduler/apis/config/v1/default_plugins.go (mergePluginSet) and
pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from app.scheduler_configuration.schema import Point, WrittenPluginSet, WrittenProfile
from core.profile import todays_name

DEFAULTS: Final[Mapping[str, int]] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
    "NodeDeclaredFeatures": 0,
}
"""Every default plugin with its weight. 0 for plugins without a weight, and for one that first scores in 1.37."""

KNOWN: Final = frozenset({
    *DEFAULTS, "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount",
    "DeferredPodScheduling",
})  # fmt: skip
"""Every in-tree plugin."""

_FILTER: Final = frozenset({"filter"})
_PRE_FILTER: Final = frozenset({"preFilter", "filter"})
_PRE_SCORE: Final = frozenset({"preScore", "score"})
IMPLEMENTED: Final[Mapping[str, frozenset[str]]] = {
    "SchedulingGates": frozenset({"preEnqueue"}),
    "PrioritySort": frozenset({"queueSort"}),
    "NodeUnschedulable": _FILTER,
    "NodeName": _FILTER,
    "TaintToleration": _FILTER | _PRE_SCORE,
    "NodeAffinity": _PRE_FILTER | _PRE_SCORE,
    "NodePorts": _PRE_FILTER,
    "NodeResourcesFit": _PRE_FILTER | _PRE_SCORE,
    "VolumeRestrictions": _PRE_FILTER,
    "NodeVolumeLimits": _PRE_FILTER,
    "VolumeBinding": _PRE_FILTER | _PRE_SCORE | {"reserve", "preBind"},
    "VolumeZone": _PRE_FILTER,
    "PodTopologySpread": _PRE_FILTER | _PRE_SCORE,
    "InterPodAffinity": _PRE_FILTER | _PRE_SCORE,
    "DynamicResources": _PRE_FILTER | {"preEnqueue", "postFilter", "score", "reserve", "preBind"},
    "DefaultPreemption": frozenset({"preEnqueue", "postFilter"}),
    "NodeResourcesBalancedAllocation": _PRE_SCORE,
    "ImageLocality": frozenset({"score"}),
    "DefaultBinder": frozenset({"bind"}),
    "NodeDeclaredFeatures": _PRE_FILTER,
}
"""Default plugin -> the extension points that it implements."""

NEEDS_PRE: Final[Mapping[tuple[Point, Point], frozenset[str]]] = {
    ("preFilter", "filter"): frozenset({
        "InterPodAffinity", "PodTopologySpread", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "VolumeBinding",
    }),
    ("preScore", "score"): frozenset({"InterPodAffinity", "PodTopologySpread", "TaintToleration"}),
}  # fmt: skip
"""Two points -> the plugins that fail at the second point if they did not run at the first. Other plugins do not."""
_OF_WEIGHTS: Final[Sequence[Point]] = ("score", "multiPoint")
"""Points whose plugin sets have weights. The first one wins: getValidScoreWeights."""
_NOTHING: Final = WrittenPluginSet()


class Profile(WrittenProfile, frozen=True):
    """A profile of the scheduler, with its defaults and configured plugins merged.

    `percentage_of_nodes_to_score`, if set, wins over the global one.
    """

    index: int = 0

    def at(self, field: str = "") -> str:
        """Return the path of a field of the profile."""
        return f"profiles[{self.index}]" + (f".{field}" if field else "")

    def order(self, point: Point) -> list[str]:
        """Return the plugins that run at an extension point, in order: default plugins, and plugins configured there.

        The extension points of other plugins are unknown. If configured at multiPoint, they count at every point.
        """
        written, disabled = [*self.enabled(point)], self.disabled(point)
        if "*" in disabled:
            return written
        expanded = [
            plugin
            for plugin in self.at_multi_point()
            if plugin not in disabled and point in IMPLEMENTED.get(plugin, (point,))
        ]
        overriding = [plugin for plugin in written if plugin in expanded]
        first = [*overriding, *expanded, *written]  # a repeated plugin keeps its first place
        return [*dict.fromkeys(first)]

    def runs(self, plugin: str, point: Point) -> bool:
        """Return whether a default plugin, or a plugin configured there, runs at an extension point."""
        return plugin in self.order(point)

    def switched_off(self, plugin: str, point: Point) -> bool:
        """Return whether a default plugin of a point is disabled there."""
        return point in IMPLEMENTED.get(plugin, ()) and not self.runs(plugin, point)

    def weight(self, plugin: str) -> int:
        """Return the weight of a plugin's score, also if the plugin is disabled. Plugins outside the tree have 1."""
        for point in _OF_WEIGHTS:
            if plugin in (written := self.enabled(point)):
                return written[plugin] or 1  # a configured weight replaces the default one, too
        return DEFAULTS.get(plugin, 1) or 1

    def scoring(self) -> set[str]:
        """Return the plugins that score."""
        known = {plugin for plugin in DEFAULTS if self.runs(plugin, "score")} - {"VolumeBinding"}
        # VolumeBinding scores only with the gate StorageCapacityScoring. Extension points of other plugins are unknown.
        return known | set(self.enabled("score"))

    def filtering(self) -> set[str]:
        """Return the plugins that filter, as far as their extension points are known."""
        return {plugin for plugin in IMPLEMENTED if self.runs(plugin, "filter")} | set(self.enabled("filter"))

    def post_filtering(self) -> set[str]:
        """Return the plugins that run if no node is left, as far as their extension points are known."""
        known = {plugin for plugin in IMPLEMENTED if self.runs(plugin, "postFilter")}
        return known | set(self.enabled("postFilter"))

    def enabled(self, point: Point) -> dict[str, int]:
        """Return the plugins configured as enabled: present name -> weight, 0 without one."""
        return {todays_name(each.name): each.weight for each in self._at(point).enabled}

    def disabled(self, point: Point) -> list[str]:
        """Return the names configured as disabled. A former name disables nothing: no release has such a plugin."""
        return [each.name for each in self._at(point).disabled]

    def _at(self, point: Point) -> WrittenPluginSet:
        return self.plugins.get(point, _NOTHING)

    def at_multi_point(self) -> list[str]:
        """Return the plugins of multiPoint in order: defaults, merged with the configured ones (mergePluginSet)."""
        disabled, written = self.disabled("multiPoint"), self.enabled("multiPoint")
        kept = [] if "*" in disabled else [plugin for plugin in DEFAULTS if plugin not in disabled]
        return [*dict.fromkeys((*kept, *written))]
