"""The enabled plugins, and the weight of each score.

Source of the profile `full`: k8s.io/kubernetes pkg/scheduler/apis/config/v1/default_plugins.go.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from inspect import signature
from typing import Any, Final, TypeAlias, TypeGuard

import msgspec

from core.events import Kind
from core.explaining.explained import Explained
from core.framework.evaluation import Composite
from core.framework.interface import AnyFilter, AnyScore, FilterPlugin, Plugin, ScorePlugin
from core.mirror.cluster import ClusterMirror
from core.objects.node import Node
from core.objects.pod import DO_NOT_SCHEDULE, Pod
from core.plugins import DEFAULTS, DEVICES, PLUGINS
from core.plugins.noderesources.arguments import ScoringStrategy
from core.plugins.podtopologyspread.plugin import PodTopologySpread
from core.plugins.serviceaffinity import ServiceAffinity
from core.releases.release import Rules

# The former names of plugins: predicates, priorities and removed plugins. Present names may be replaced by them.
#
# Source: k8s.io/kubernetes v1.13 pkg/scheduler/algorithm/predicates/predicates.go, v1.17
# pkg/scheduler/algorithm/priorities/priorities.go, and v1.18 pkg/scheduler/framework/plugins/legacy_registry.go,
# which maps them to plugins. Names that appear only in the design document of equivalence classes are included.
#
# The removed plugins: v1.30 pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go. Each counted the volumes of
# one in-tree type on a node, unless the type was migrated to its CSI driver. NodeVolumeLimits counts migrated volumes
# as volumes of the driver. v1.31 took them out of the default plugins and rejects configurations that enable them
# (pkg/scheduler/apis/config/validation/validation.go, invalidPluginsByVersion). v1.32 does not have them
# (kubernetes#124500, kubernetes#124003).


class Side(Enum):
    """The use of a plugin."""

    FILTER = "filter"
    SCORE = "score"


class FormerName(msgspec.Struct, frozen=True):
    """A former name: the present plugin, one side of it, and a strategy if it scores by resources."""

    plugin: str
    side: Side
    scoring_strategy: str = ""


FORMER_NAMES: Final[Mapping[str, FormerName]] = {
    **{old: FormerName(name, Side.FILTER) for name, each in PLUGINS.items() for old in each.former_filters},
    **{
        old: FormerName(name, Side.SCORE, strategy)
        for name, each in PLUGINS.items()
        for old, strategy in each.former_scores
    },
}
"""Former name -> its meaning."""


def todays_name(name: str) -> str:
    """Return the present name of a plugin, which is used in all output."""
    former = FORMER_NAMES.get(name)
    return name if former is None else former.plugin


COMPOSITES: Final[Mapping[str, Sequence[str]]] = {
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
}
"""Predicates that consist of other plugins: name -> those plugins, in the order of their reasons."""

PROFILES: Final[Mapping[str, str]] = {
    "affinity": "InterPodAffinity=2",
    "full": (
        "NodeUnschedulable,NodeName,TaintToleration=3,NodeAffinity=2,NodePorts,NodeResourcesFit=1,VolumeRestrictions,"
        "NodeVolumeLimits,VolumeBinding=1,VolumeZone,PodTopologySpread=2,InterPodAffinity=2,"
        "NodeResourcesBalancedAllocation=1,ImageLocality=1,NodeDeclaredFeatures"
    ),
}
"""The built-in profiles by name: for a registration beside a scheduler, and the scheduler's defaults.

Plugins that a release does not have are left out under its rules, see Profile.under.
"""
MAX_WEIGHT: Final = 100

_item: Final = re.compile(r"(?:(?P<side>filter|score):)?(?P<name>\w+)(?:=(?P<weight>.*))?")
_weight: Final = re.compile("[0-9]{1,9}")

Arguments: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Plugin -> keyword arguments of its constructor."""

NO_ARGUMENTS: Final[Arguments] = {}


class ProfileError(ValueError):
    """A text is not a valid profile. The message names the invalid part, and the valid names."""


class Profile(msgspec.Struct, frozen=True, dict=True):
    """The enabled predicates in the order of evaluation, and the enabled scores with weights (>= 1)."""

    filters: tuple[AnyFilter, ...]
    scores: tuple[tuple[AnyScore, int], ...]
    in_default_order: bool = False
    """Whether the predicates are in kube-scheduler's default order, which depends on the release."""

    def under(self, rules: Rules) -> "Profile":
        """Return the profile for a release: without plugins that the release does not have, and in its order.

        The plugins are the same objects. If nothing differs, the result is this profile.
        """
        found = self._by_rules.get(id(rules))
        if found is None:
            found = self._by_rules[id(rules)] = rules, self._in(rules)
        return found[1]

    @cached_property
    def _by_rules(self) -> dict[int, tuple[Rules, "Profile"]]:
        """Identity of rules -> these rules and the profile under them. Memoised: each request reads it."""
        return {}

    def _in(self, rules: Rules) -> "Profile":
        filters = [each for each in self.filters if each.filters_in(rules)]
        scores = [each for each in self.scores if each[0].scores_in(rules)]
        if self.in_default_order:
            filters.sort(key=lambda plugin: not plugin.is_first_in(rules))
        if (filters, scores) == ([*self.filters], [*self.scores]):
            return self
        return Profile(tuple(filters), tuple(scores), self.in_default_order)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """All plugins. A plugin that both filters and scores appears once."""
        plugins: tuple[Plugin, ...] = (*self.filters, *(plugin for plugin, _ in self.scores))
        return tuple({id(plugin): plugin for plugin in plugins}.values())

    @cached_property
    def spreads_all(self) -> bool:
        """Whether pods without topology spread constraints may be kept off nodes by default ones."""
        spread = (each for each in self.filters if isinstance(each, PodTopologySpread))
        return any(DO_NOT_SCHEDULE in each.default_actions for each in spread)

    @cached_property
    def keeps_services_together(self) -> bool:
        """Whether the first pod of a service may keep the others off nodes."""
        return any(isinstance(each, ServiceAffinity) and each.keys for each in self.filters)

    def of_pod(self, mirror: ClusterMirror, pod: Pod) -> "Profile":
        """Return the profile without the plugins that do not concern a pod. If all do, it is this profile."""
        left_out = frozenset(each.name for each in self._of_some_pods if not each.concerns(mirror, pod))
        if not left_out:
            return self
        found = self._without.get(left_out)
        if found is None:
            filters = tuple(each for each in self.filters if each.name not in left_out)
            scores = tuple(each for each in self.scores if each[0].name not in left_out)
            found = self._without[left_out] = Profile(filters, scores, self.in_default_order)
        return found

    @cached_property
    def _of_some_pods(self) -> tuple[Plugin, ...]:
        return tuple(each for each in self.plugins if type(each).concerns is not Plugin.concerns)

    @cached_property
    def _without(self) -> dict[frozenset[str], "Profile"]:
        """Names of plugins -> the profile without them. Memoised: each explanation reads it."""
        return {}

    @cached_property
    def explained(self) -> tuple[Explained, ...]:
        """The plugins that explain themselves, those of a composite in its place. See Explained."""
        parts = (part for each in self.plugins for part in (each.parts if isinstance(each, Composite) else (each,)))
        return tuple(part for part in parts if isinstance(part, Explained))

    @cached_property
    def filter_parts(self) -> tuple[AnyFilter, ...]:
        """The predicates, those of a composite in its place."""
        return tuple(part for each in self.filters for part in (each.parts if isinstance(each, Composite) else (each,)))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of objects that decisions depend on: nodes and pods always, then the others by name."""
        read = {kind for plugin in self.plugins for kind in plugin.kinds}
        return (Node, Pod, *sorted(read - {Node, Pod}, key=lambda kind: kind.__name__))


def full_profile(arguments: Arguments = NO_ARGUMENTS) -> Profile:
    """Return the profile of a whole scheduler: upstream's default plugins and weights. Raises ProfileError."""
    return parse_profile("full", arguments)


_WEIGHT_OF_DEVICES: Final = 2


def with_devices(profile: Profile, *, scores: bool = True) -> Profile:
    """Return a profile for explanations: with the plugin that judges devices, in kube-scheduler's order."""
    plugin, filters = DEVICES(), [*profile.filters]
    filters.insert(_place([each.name for each in filters]), plugin)
    judging = Profile(tuple(filters), profile.scores, profile.in_default_order)
    return with_device_score(judging, plugin) if scores else judging


def with_device_score(profile: Profile, plugin: AnyScore) -> Profile:
    """Return a profile with the score of devices, in kube-scheduler's order and with its default weight."""
    scores = [*profile.scores]
    scores.insert(_place([each.name for each, _ in scores]), (plugin, _WEIGHT_OF_DEVICES))
    return Profile(profile.filters, tuple(scores), profile.in_default_order)


def _place(names: Sequence[str]) -> int:
    """Return where the plugin of devices is among some of kube-scheduler's plugins."""
    every = [*DEFAULTS]
    later = frozenset(every[every.index(DEVICES.name) :])
    return next((at for at, name in enumerate(names) if name in later), len(names))


def parse_profile(text: str, arguments: Arguments = NO_ARGUMENTS) -> Profile:
    """Return the profile for a name, or for a list `[filter:|score:]NAME[=WEIGHT],...`.

    A profile's name in the list means all its plugins: `full,TargetLoadPacking=5` is `full` with one more score. A
    plugin's name without a side enables all sides of the plugin, as upstream's multiPoint does. A former name has one
    side. The default weight is 1. The predicates run in the order of the list, each once. Raises ProfileError.
    """
    items = _items(text)
    plugins = _PluginSet(_with_strategies(items, arguments))
    filters: dict[str, AnyFilter] = {}
    scores: dict[str, tuple[AnyScore, int]] = {}
    for item in items:
        plugin = plugins.get(item.plugin)
        _check_sides(item, plugin)
        if item.side is not Side.SCORE and _filters(plugin):
            filters[plugin.name] = plugin
        if item.side is not Side.FILTER and _scores(plugin):
            if plugin.name in scores:
                raise ProfileError(f"{item.text}: {plugin.name} scores already, with weight {scores[plugin.name][1]}")
            scores[plugin.name] = (plugin, item.weight or 1)
    return Profile(
        filters=tuple(filters.values()),
        scores=tuple(scores.values()),
        in_default_order=text.split(",", maxsplit=1)[0].strip() == "full",
    )


def profile_arguments(text: str, arguments: Arguments = NO_ARGUMENTS) -> Arguments:
    """Return the arguments for the plugins, including those that former names imply. Raises ProfileError."""
    return _with_strategies(_items(text), arguments)


def with_argument(arguments: Arguments, name: str, value: object) -> Arguments:
    """Return the arguments with a value for each plugin that takes an argument of this name."""
    taking = [plugin for plugin, each in PLUGINS.items() if name in signature(each).parameters]
    return {**arguments, **{plugin: {**arguments.get(plugin, {}), name: value} for plugin in taking}}


class _Item(msgspec.Struct, frozen=True):
    """An entry of the list. `plugin` is the present name. `side` is None if the entry enables every side."""

    text: str
    plugin: str
    side: Side | None
    weight: int | None
    scoring_strategy: str = ""


class _PluginSet:
    """The plugins of one profile. Each is created once, at its first use."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._made: dict[str, Plugin] = {}

    def get(self, name: str) -> Plugin:
        """Return a plugin with its arguments. Raises ProfileError for invalid arguments."""
        plugin = self._made.get(name)
        if plugin is None:
            plugin = self._made[name] = self._composite(name) if name in COMPOSITES else self._plugin(name)
        return plugin

    def _plugin(self, name: str) -> Plugin:
        try:
            return PLUGINS[name](**self._arguments.get(name, {}))
        except ValueError as error:
            raise ProfileError(f"{name}: {error}") from None

    def _composite(self, name: str) -> Composite:
        parts = [self.get(part) for part in COMPOSITES[name]]
        return Composite(name, [part for part in parts if _filters(part)])


def _items(text: str) -> list[_Item]:
    parts = [PROFILES.get(part.strip(), part) for part in text.split(",")]
    return [_parsed(part.strip()) for part in ",".join(parts).split(",")]


def _parsed(text: str) -> _Item:
    found = _item.fullmatch(text)
    if found is None:
        raise ProfileError(f"expected [filter:|score:]NAME[=WEIGHT], got {text!r}; {_what_there_is()}")
    name, side = found["name"], None if found["side"] is None else Side(found["side"])
    weight = _weight_of(text, found["weight"])
    if name in PLUGINS or name in COMPOSITES:
        return _Item(text, name, side, weight)
    former = FORMER_NAMES.get(name)
    if former is None:
        raise ProfileError(f"unknown plugin {name}; {_what_there_is()}")
    if side not in {None, former.side}:
        raise ProfileError(f"{text}: {name} is the name of a {former.side.value}")
    return _Item(text, former.plugin, former.side, weight, former.scoring_strategy)


def _weight_of(item: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not _weight.fullmatch(text) or not 1 <= int(text) <= MAX_WEIGHT:
        raise ProfileError(f"{item}: the weight must be 1..{MAX_WEIGHT}, got {text!r}")
    return int(text)


def _what_there_is() -> str:
    return (
        f"there are the profiles {', '.join(PROFILES)}, the plugins {', '.join(sorted({*PLUGINS, *COMPOSITES}))}, "
        f"and their former names {', '.join(sorted(FORMER_NAMES))}"
    )


def _with_strategies(items: Iterable[_Item], arguments: Arguments) -> Arguments:
    """Add the scoring strategies that former names imply. Raises ProfileError if the arguments set another strategy."""
    merged = {name: dict(each) for name, each in arguments.items()}
    for item in items:
        if item.scoring_strategy:
            implied = ScoringStrategy(type=item.scoring_strategy)
            strategy = merged.setdefault(item.plugin, {}).setdefault("scoring_strategy", implied)
            if strategy.type != implied.type:
                raise ProfileError(
                    f"{item.text}: is {item.plugin} with the scoringStrategy {implied.type}, but it is {strategy.type}"
                )
    return merged


def _check_sides(item: _Item, plugin: Plugin) -> None:
    if item.side is Side.FILTER and not _filters(plugin):
        raise ProfileError(f"{item.text}: {plugin.name} does not filter")
    if item.side is Side.SCORE and not _scores(plugin):
        raise ProfileError(f"{item.text}: {plugin.name} does not score")
    if item.weight is not None and (item.side is Side.FILTER or not _scores(plugin)):
        raise ProfileError(f"{item.text}: only scores have a weight")


def _filters(plugin: Plugin) -> TypeGuard[AnyFilter]:
    return isinstance(plugin, FilterPlugin)


def _scores(plugin: Plugin) -> TypeGuard[AnyScore]:
    return isinstance(plugin, ScorePlugin)
