"""The rules of explanations by kube-scheduler's configuration: the plugins for a pod, by its spec.schedulerName."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Final, NamedTuple

from msgspec.structs import replace

from app.explain.scheduler_plugins import (
    DYNAMIC_RESOURCES,
    FILTERS,
    FULL,
    SCORES,
    SchedulerPlugins,
    scheduler_plugins,
)
from app.objects.plugin_args import plugin_arguments
from app.scheduler_configuration.plugin_sets import Profile
from app.scheduler_configuration.scheduler_config import DEFAULT_SCHEDULER, Extender, SchedulerConfig, choose_extender
from app.scheduler_configuration.schema import Point
from app.settings.settings import Settings
from app.verbs.scopes import DecideScope, decide_scopes, device_schedulers, with_devices
from core.diagnosis.explained_profile import NOTHING, ExplainedProfile, SchedulerRules, joined
from core.diagnosis.not_judged import NotJudged
from core.objects.pod import Pod
from core.profile import COMPOSITES, profile_arguments
from core.profile import Profile as Plugins
from core.scheduling_cycle import ALL

_FILTERING: Final[Sequence[Point]] = ("preFilter", "filter")
_SCALE: Final = 10
"""kube-scheduler's factor for an extender's score: MaxNodeScore / MaxExtenderPriority."""


class _Entry(NamedTuple):
    """A profile of the configuration, with its plugins."""

    profile: Profile
    runs: SchedulerPlugins


class SchedulerProfiles:
    """The explained rules by the profiles of a KubeSchedulerConfiguration. Without a profile: `every`."""

    def __init__(self, config: SchedulerConfig, settings: Settings, every: ExplainedProfile) -> None:
        """Make the plugins of all profiles. Raises UnreadableError that names the field, and SettingsError."""
        self._every: Final = every
        self._config = config
        self._max_score = settings.max_score
        self._scopes = decide_scopes(settings)
        self._kindred = kindred_of(config)
        self._others = [each for each in config.order() if each is not self._kindred]
        given = with_devices(plugin_arguments(settings), device_schedulers(settings, config))
        arguments = profile_arguments(settings.profile, given)
        self._entries: Mapping[str, _Entry] = {
            profile.name: _Entry(profile, scheduler_plugins(profile, config.extenders, every.profile, arguments))
            for profile in config.profiles
        }
        self._found: dict[tuple[str, tuple[bool, ...]], ExplainedProfile] = {}
        """(schedulerName, for each extender whether kube-scheduler calls it for the pod) -> rules."""

    def of(self, pod: Pod) -> ExplainedProfile:
        """Return the rules for a pod. For an unknown scheduler, `every` with a note."""
        name = pod.scheduler_name or DEFAULT_SCHEDULER
        entry = self._entries.get(name)
        if entry is None:
            return ExplainedProfile(self._every.profile, self._every.served, SchedulerRules(name))
        key = name, tuple(each.is_asked_about(pod.requests) for each in self._config.extenders)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._explained(entry, pod.requests)
        return found

    def _explained(self, entry: _Entry, resources: Collection[str]) -> ExplainedProfile:
        profile, runs = entry
        scope = self._scopes.of(profile.name) if self._scopes is not None else None
        kindred = self._kindred if self._kindred is not None and self._kindred.is_asked_about(resources) else None
        asked = self._asked(kindred, decides=scope is not None)
        scheduler = runs.plugins
        if asked.filters and scope is not None:  # kube-scheduler gets one node and ignores its score
            scheduler = Plugins(scheduler.filters, ())
        weights = self._weights(scheduler, asked, kindred)
        _, percentage = self._config.percentage_of(profile)
        asked_filters, asked_scores = _names(asked)
        rules = SchedulerRules(
            profile.name,
            has_profile=True,
            filters=frozenset(plugin.name for plugin in scheduler.filters),
            scores=frozenset(plugin.name for plugin, _ in scheduler.scores),
            asked_filters=asked_filters,
            asked_scores=asked_scores,
            off=_off(scheduler, asked_filters, asked_scores),
            never_judged_off=_never_judged_off(profile),
            extender=self._kindred.url_prefix if self._kindred is not None else "",
            percentage_of_nodes_to_score=ALL if asked.filters and scope is DecideScope.ANY_NODE else percentage,
        )
        rules = self._with_gaps(rules, runs, resources)
        judged = joined(scheduler, asked, weights, in_default_order=runs.in_default_order)
        return ExplainedProfile(judged, self._every.served, rules)

    def _with_gaps(self, rules: SchedulerRules, runs: SchedulerPlugins, resources: Collection[str]) -> SchedulerRules:
        """Return the rules with a list of all rules that run in the cluster but not in Kindred."""
        others = [each for each in self._others if each.is_asked_about(resources)]
        filters, scores = (runs.filter_otherwise & rules.filters, runs.score_otherwise & rules.scores)
        early = (each for each in runs.early if each.plugin not in rules.asked_filters)
        return replace(
            rules,
            not_judged=(*runs.not_judged, *early, *_of_extenders(others), *_twice(filters & rules.asked_filters)),
            not_scored=(*runs.not_scored, *_scores_of_extenders(others), *_twice(scores & rules.asked_scores)),
        )

    def _asked(self, kindred: Extender | None, *, decides: bool) -> Plugins:
        """Return the part of the serving profile that the scheduler's configuration calls."""
        served = self._every.served
        if kindred is None:
            return NOTHING
        filters = served.filters if kindred.filter_verb else ()
        scores = kindred.prioritize_verb and kindred.weight > 0
        return Plugins(filters, served.scores if scores or (decides and filters) else ())

    def _weights(self, scheduler: Plugins, asked: Plugins, kindred: Extender | None) -> Mapping[str, int]:
        """Return plugin -> weight, as integers in the same proportion as in kube-scheduler's total.

        If kube-scheduler scores by itself and Kindred's weights are integers beside its weights, its weights stay.
        """
        own = {plugin.name: Fraction(weight) for plugin, weight in scheduler.scores}
        served = {plugin.name: weight for plugin, weight in asked.scores}
        if not own or kindred is None:
            return {**{name: int(weight) for name, weight in own.items()}, **served}
        # Kindred's score of a node is the mean of its plugins, up to max_score. Source: prioritizeNodes in
        # pkg/scheduler/schedule_one.go.
        share = Fraction(kindred.weight * self._max_score * _SCALE, ALL * max(sum(served.values()), 1))
        total = own | {name: own.get(name, Fraction(0)) + weight * share for name, weight in served.items()}
        common = lcm(*(weight.denominator for weight in total.values()))
        return {name: int(weight * common) for name, weight in total.items()}


def kindred_of(config: SchedulerConfig) -> Extender | None:
    """Return the extender that is Kindred: by its name, or the only extender for all pods."""
    chosen, _ = choose_extender(config, "", "")
    if chosen is None or (chosen.managed_resources and "kindred" not in chosen.host):
        return None
    return chosen


def _names(asked: Plugins) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plugins that Kindred filters and scores with. A composite counts as its parts."""
    filters = {plugin.name for plugin in asked.filters}
    parts = {part for name in filters for part in COMPOSITES.get(name, ())}
    return frozenset(filters | parts), frozenset(plugin.name for plugin, _ in asked.scores)


def _off(scheduler: Plugins, asked_filters: frozenset[str], asked_scores: frozenset[str]) -> Plugins:
    """Return the plugins of `full` that do not run."""
    filters = FILTERS - asked_filters - {plugin.name for plugin in scheduler.filters}
    scores = SCORES - asked_scores - {plugin.name for plugin, _ in scheduler.scores}
    return Plugins(
        tuple(plugin for plugin in FULL.filters if plugin.name in filters),
        tuple((plugin, weight) for plugin, weight in FULL.scores if plugin.name in scores),
    )


def _never_judged_off(profile: Profile) -> frozenset[str]:
    runs = any(profile.runs(DYNAMIC_RESOURCES, point) for point in _FILTERING)
    return frozenset() if runs else frozenset({DYNAMIC_RESOURCES})


def _twice(plugins: frozenset[str]) -> Iterator[NotJudged]:
    """Yield plugins that kube-scheduler and Kindred run with different arguments. kube-scheduler's count."""
    for name in sorted(plugins):
        yield NotJudged(name, "Kindred runs it, too, with other arguments, which are not judged here")


def _of_extenders(others: Sequence[Extender]) -> Iterator[NotJudged]:
    for each in others:
        if each.filter_verb:
            yield NotJudged(f"extender {each.url_prefix}", "another extender, whose filter is not judged here")


def _scores_of_extenders(others: Sequence[Extender]) -> Iterator[NotJudged]:
    for each in others:
        if each.prioritize_verb:
            yield NotJudged(f"extender {each.url_prefix}", f"another extender, whose scores weigh {each.weight}")
